"""`gramfold`: collects the commands, and turns errors that a user can fix into one line and exit code 2."""

import json
import sys
import warnings
from importlib.util import find_spec
from typing import Annotated

import typer

import gramfold
from gramfold.cli.begin import begin
from gramfold.cli.benches import ANYTHING, from_clone, no_bench
from gramfold.cli.check import check
from gramfold.cli.explain import explain
from gramfold.cli.export import export
from gramfold.cli.extract import extract
from gramfold.cli.flower import flower
from gramfold.cli.fold import fold
from gramfold.cli.merge import merge
from gramfold.cli.methods import methods
from gramfold.cli.next import next_round
from gramfold.cli.personal import personal
from gramfold.cli.predict import predict
from gramfold.cli.report import report
from gramfold.cli.run import run
from gramfold.cli.serve import serve
from gramfold.errors import GramfoldError, IllConditionedWarning
from gramfold.renamed import options

# The root of all complaints about the command line. Older typers take it from the package click, newer ones from a copy of their
# own, so it is found from what every typer exports.
_UsageError: type[Exception] = next(kind for kind in reversed(typer.BadParameter.__mro__) if hasattr(kind, "format_message"))
STOPPED = 130

app = typer.Typer(
    name="gramfold",
    help="Personalised federated learning in closed form: one exact round, no gradients, a head for every client.",
    epilog="Start with: gramfold run",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(check)
app.command()(extract)
app.command()(predict)
app.command()(explain)
app.command()(export)
app.command()(serve)
app.command()(methods)
app.command()(report)
if find_spec("gramfold.cli.bench"):
    app.command()(from_clone("gramfold.cli.bench").bench)
else:
    app.command("bench", context_settings=ANYTHING)(no_bench)
app.command()(begin)
app.command()(fold)
app.command()(merge)
app.command("next")(next_round)
app.command()(personal)
app.add_typer(flower, name="flower")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gramfold {gramfold.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Options of gramfold itself; the work is in the commands."""


def main() -> None:
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    warnings.simplefilter("once", IllConditionedWarning)
    try:
        code = app(options(sys.argv[1:]), standalone_mode=False) or 0
    except GramfoldError as error:
        code = _print_error(str(error), error.code)
    except _UsageError as error:
        text: str = error.format_message()  # type: ignore[attr-defined]
        if type(error).__name__ == "NoArgsIsHelpError":  # not exported; its text is the help, unless typer has printed it already
            typer.echo(text, nl=bool(text))
            code = 2
        else:
            code = _print_error(text)
    except MemoryError as error:
        code = _print_error(
            f"out of memory ({error or 'no more than that is known'}); use fewer features, or more memory", "memory"
        )
    except (typer.Abort, KeyboardInterrupt):
        code = STOPPED
    if code == STOPPED:  # typer may also return it
        print("stopped", file=sys.stderr)
    sys.exit(code)


def _print_error(message: str, code: str = "command") -> int:
    """One line for people; for programs, where they asked for JSON, also an object with the error's code."""
    line = " ".join(message.split())
    if "--json" in sys.argv:
        print(json.dumps({"error": {"code": code, "message": line}}))
    print(f"error: {line}", file=sys.stderr)
    return 2


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"warning: {message}", file=sys.stderr)
