"""`gramfold run`: partition a data set into clients, run methods over them, compare."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gramfold import wire
from gramfold.cli.data import Reading, reads_data
from gramfold.engines import ENGINES, Result, RunOptions, open_engine
from gramfold.engines.events import to
from gramfold.errors import FileError, OptionError
from gramfold.federation import Dataset, Federation
from gramfold.methods import ANALYTIC, GRADIENT, METHODS, ON_IMAGES, Method, make_method
from gramfold.methods.protocol import instead
from gramfold.privacy import DP, Privacy, SecureSum
from gramfold.progress import display
from gramfold.report import comparison_table, result_table
from gramfold.results.comparison import Comparison
from gramfold.results.folder import REPORT, RESULT, page, seeds_page, write_page
from gramfold.results.saved import write_heads

EMBEDDED = ["digits"]
TABLES = ("comparison.csv", "comparison.tex", "comparison.md")
OUTPUTS = (RESULT, REPORT, *TABLES)
GROUPS = {"all": (*ANALYTIC, *ON_IMAGES), "gradient": GRADIENT}


@reads_data
def run(
    reading: Reading,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...",
            help="digits or digits-images (embedded; digits if none is given), an .npz file with labels and features or "
            "images, a folder of images, or "
            "CSV and Parquet tables: one, or a folder, a pattern or several of them, each a client; or FILE.py:NAME, a data set "
            "of torch or Hugging Face, or a function that makes one.",
        ),
    ] = None,
    clients: Annotated[int, typer.Option(help="How many clients to partition the data into.")] = 20,
    partition: Annotated[
        str | None,
        typer.Option(
            help="How to partition: dirichlet:ALPHA, classes:K, shards:K, quantity:ALPHA, iid, natural. "
            "By default natural if the file gives each sample's client, else dirichlet:0.1.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Which methods to run, separated by commas; or all (analytic), or gradient.")
    ] = "all",
    random_state: Annotated[int, typer.Option(help="The seed of everything random.", min=0)] = 0,
    seeds: Annotated[
        int | None,
        typer.Option(help="Run this many seeds, from --random-state on, and compare means with confidence intervals.", min=1),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for result.json and report.html, and the tables of --seeds.")
    ] = Path("gramfold-run"),
    features: Annotated[str | None, typer.Option(help="Feature map for all methods, such as bias+linear+fourier:2048.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A method's parameter: METHOD.NAME=VALUE. May be repeated.")
    ] = None,
    test_size: Annotated[float, typer.Option(help="Fraction of each client's data held out, if the file has no split.")] = 0.25,
    min_size: Annotated[int, typer.Option(help="Minimum samples per client; a partition with fewer is redrawn.", min=1)] = 2,
    drop_small: Annotated[bool, typer.Option("--drop-small", help="Drop clients below the minimum size.")] = False,
    engine: Annotated[str, typer.Option(help=f"Where to run: {', '.join(ENGINES)}.")] = "inprocess",
    cluster: Annotated[
        str | None,
        typer.Option(
            help="The scheduler of --engine dask, such as tcp://HOST:8786; by default workers on this machine.",
            show_default=False,
        ),
    ] = None,
    heads: Annotated[Path | None, typer.Option(help="Also save every client's head here, as METHOD/CLIENT.safetensors.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints of long runs; the same command resumes a stopped run.")
    ] = None,
    evaluate_every: Annotated[
        int, typer.Option(help="Test all clients every N rounds, for the report's curves only.", min=0)
    ] = 0,
    precision: Annotated[
        str | None, typer.Option(help="What numbers travel in: float64, float32, float16 or int8.", show_default=False)
    ] = None,
    secure: Annotated[bool, typer.Option("--secure", help="Hide all uploads but their sum from the server.")] = False,
    dp_eps: Annotated[float | None, typer.Option(help="Add noise: differential privacy with this eps for every sample.")] = None,
    dp_delta: Annotated[float, typer.Option(help="The delta of --dp-eps.")] = 1e-5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")] = False,
) -> None:
    """Run methods over one data set partitioned into clients, and compare them.

    Without options: scikit-learn's digits, 20 clients, a strongly skewed Dirichlet partition, every analytic method.
    """
    chosen = [replace(method, precision=precision) for method in chosen_methods(methods, features, settings or [])]
    privacy = Privacy(SecureSum() if secure else None, None if dp_eps is None else DP(dp_eps, dp_delta))
    check_outputs(out, OUTPUTS)
    if heads is not None:
        check_outputs(heads, [method.name for method in chosen])
    dataset, device = reading.load(data or EMBEDDED), reading.device
    chosen = _compatible(chosen, dataset, is_group=methods in GROUPS)
    warned: dict[str, str] = {}
    pages, console = [], Console() if sys.stdout.isatty() else Console(width=150)
    numbers = [random_state] if seeds is None else list(range(random_state, random_state + seeds))
    with display(len(chosen) * len(numbers), always=True) as shown:
        for number in numbers:
            federation = Federation.from_dataset(
                dataset, clients, partition, test_size, number, min_size=min_size, drop_small=drop_small
            )
            if number == random_state and federation.checked is not None:
                for finding in federation.check().serious:
                    print(f"check: {finding}", file=sys.stderr)
            keep = checkpoint if seeds is None or checkpoint is None else checkpoint / f"seed-{number}"
            # a cluster's workers write heads themselves
            written = heads if engine == "dask" and seeds is None else None
            options = RunOptions(privacy, device, keep, evaluate_every, cluster=cluster, heads=written)
            results: list[Result] = []
            with open_engine(engine, federation, options) as run_method:
                for method in chosen:
                    with shown.piece(method.name if seeds is None else f"{method.name}, seed {number}") as show:
                        outcome = run_method(method, progress=to(show), keep_heads=heads is not None)
                    if heads is not None and written is None:
                        folder = heads / method.name if seeds is None else heads / method.name / f"seed-{number}"
                        write_heads(folder, outcome.heads, outcome.cards())
                    results.append(replace(outcome, heads={}))
                    if outcome.warning is not None:
                        warned[method.name] = outcome.warning
            # what a network or a protection would hide is not shown here either
            hidden = engine == "flower" or secure or dp_eps is not None
            labels = None if hidden else federation.label_counts()
            pages.append(page(results, seed=number, engine=engine, device=device, **federation.description, labels=labels))
    content = pages[0]
    for name in TABLES:
        (out / name).unlink(missing_ok=True)  # of an earlier run
    if seeds is None:
        write_page(out, content)
        table = result_table(content, console.width)
    else:
        comparison = Comparison.of_pages(pages)
        content = seeds_page(pages, comparison.to_dict())
        write_page(out, content)
        for name, write in zip(TABLES, (comparison.to_csv, comparison.to_latex, comparison.to_markdown), strict=True):
            write(out / name)
        about = f"{content['data']['name']}: {content['partition']['clients']} clients, {content['partition']['kind']}"
        table = comparison_table(content["comparison"], f"{about}, {len(numbers)} seeds from {random_state}", console.width)
    if as_json:
        sys.stdout.write(json.dumps(wire.sealed(content), indent=1, allow_nan=False) + "\n")
        return
    console.print(table)
    for warned_of, warning in warned.items():
        console.print(f"{warned_of}: {warning}", highlight=False, soft_wrap=True, style="yellow")
    if seeds is not None:
        console.print(f"Tables: {', '.join(str(out / name) for name in TABLES)}", highlight=False, soft_wrap=True)
    console.print(f"Report: {out / 'report.html'}    Figures: {out / 'result.json'}", highlight=False, soft_wrap=True)


def chosen_methods(names: str, features: str | None, settings: Sequence[str]) -> list[Method]:
    """The methods of these names, with the parameters that were set."""
    group = [method.name for method in GROUPS.get(names, ())]
    listed = group or [name.strip() for name in names.split(",") if name.strip()]
    if not listed:
        raise OptionError(f"no method named; known: {', '.join(METHODS)}")
    if len(set(listed)) < len(listed):
        raise OptionError("a method is named twice")
    parameters: dict[str, dict[str, Any]] = {name: {} for name in listed}
    if features is not None:
        parameters |= {name: {"features": features} for name in listed if METHODS.get(name) in ANALYTIC}
    for setting in settings:
        left, equals, value = setting.partition("=")
        name, dot, key = left.rpartition(".")
        if not (equals and dot and key):
            raise OptionError(f"cannot read --set {setting!r}; write METHOD.NAME=VALUE, such as apfl.penalty=0.5")
        if name not in parameters:
            raise OptionError(f"--set {setting!r} names a method that is not run; running: {', '.join(listed)}")
        parameters[name][key] = _value(value)
    return [make_method(name, **given) for name, given in parameters.items()]


def _compatible(methods: list[Method], dataset: Dataset, is_group: bool) -> list[Method]:
    """The methods that support this data; naming one that does not is an error."""
    kind = "features" if dataset.inputs.ndim == 2 else "images"
    supported = [method for method in methods if kind in method.input_kinds]
    if not supported or (len(supported) < len(methods) and not is_group):
        unsupported = next(method.name for method in methods if kind not in method.input_kinds)
        remedy = instead(kind, dataset.inputs.shape[1:])
        raise OptionError(f"{dataset.name} holds {kind}, which {unsupported} does not support; {remedy}")
    return supported


def _value(text: str) -> Any:
    if text.lower() in ("none", "null", ""):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def check_outputs(folder: Path, ours: Sequence[str]) -> None:
    """Before any work, refuse to write into a folder with other content."""
    if folder.is_file():
        raise FileError(f"{folder} is a file, not a folder; choose another one")
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in ours and not wire.is_temporary(path))
        if others:
            raise FileError(f"{folder} exists and contains other files ({others[0]}); choose another folder")
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(parent, os.W_OK):
        raise FileError(f"cannot write to {parent}; choose another folder")
