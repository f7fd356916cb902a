"""`gramfold begin`: the task file of a run as files."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from gramfold import files
from gramfold.cli.data import Reading, reads_data
from gramfold.cli.run import chosen_methods
from gramfold.errors import OptionError
from gramfold.files.reading import Reading as OfParts

Out = Annotated[Path, typer.Option("--out", "-o", help="The file to write.")]


@reads_data
def begin(
    reading: Reading,
    out: Out,
    data: Annotated[
        list[Path] | None, typer.Argument(metavar="[PART]...", help="All parts of the data, where they are at hand.")
    ] = None,
    method: Annotated[str, typer.Option(help="The method to run.")] = "pace",
    features: Annotated[str | None, typer.Option(help="Its feature map, such as bias+linear+fourier:2048.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter: METHOD.NAME=VALUE. May be repeated.")] = None,
    test_size: Annotated[float, typer.Option(help="Fraction of each client's data held out, if the data has no split.")] = 0.25,
    random_state: Annotated[int, typer.Option(help="The seed of everything random.", min=0)] = 0,
) -> None:
    """Begin a run as files: write the task file, which says what all parts are asked.

    Without parts, the first thing they are asked is to describe their data: gramfold fold, merge and next as in every round.
    """
    methods = chosen_methods(method, features, settings or [])
    if len(methods) != 1:
        raise OptionError("a run as files is of one method; begin one for each")
    if not 0 <= test_size < 1:
        raise OptionError(f"the test size must lie in [0, 1), got {test_size}")
    known = {field.name: getattr(reading, field.name) for field in fields(OfParts) if field.name not in ("test", "columns")}
    columns = tuple(name.strip() for name in (reading.columns or "").split(",") if name.strip())
    task = files.begin(methods[0], OfParts(**known, columns=columns, test=test_size), random_state, data or ())
    task.save(out)
    typer.echo(f"{out}: {task}")
