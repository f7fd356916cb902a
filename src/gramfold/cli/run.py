"""`gramfold run`: partition a data set into clients, run methods over them, compare."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gramfold import wire
from gramfold.cli.progress import show_progress
from gramfold.engines import ENGINES, Result, open_engine
from gramfold.engines.folder import REPORT, RESULT, make_folder, page, write_page
from gramfold.errors import GramfoldError
from gramfold.federation import Dataset, Federation, load_dataset
from gramfold.methods import ANALYTIC, GRADIENT, METHODS, ON_IMAGES, Method, make_method
from gramfold.methods.protocol import INSTEAD
from gramfold.report import result_table

OUTPUTS = (RESULT, REPORT)
GROUPS = {"all": (*ANALYTIC, *ON_IMAGES), "gradient": GRADIENT}


def run(
    data: Annotated[
        str, typer.Option(help="digits or digits-images (embedded), or an .npz file with labels and features or images.")
    ] = "digits",
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
    seed: Annotated[int, typer.Option(help="The seed of everything random.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="Folder for result.json and report.html.")] = Path("gramfold-run"),
    features: Annotated[str | None, typer.Option(help="Feature map for all methods, such as bias+linear+fourier:2048.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A method's parameter: METHOD.NAME=VALUE. May be repeated.")
    ] = None,
    test: Annotated[float, typer.Option(help="Fraction of each client's data held out, if the file has no split.")] = 0.25,
    min_size: Annotated[int, typer.Option(help="Minimum samples per client; a partition with fewer is redrawn.", min=1)] = 2,
    drop_small: Annotated[bool, typer.Option("--drop-small", help="Drop clients below the minimum size.")] = False,
    engine: Annotated[str, typer.Option(help=f"Where to run: {', '.join(ENGINES)}.")] = "inprocess",
    device: Annotated[str, typer.Option(help="cpu, or a torch device such as cuda.")] = "cpu",
    heads: Annotated[Path | None, typer.Option(help="Also save every client's head here, as METHOD/CLIENT.safetensors.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints of long runs; the same command resumes a stopped run.")
    ] = None,
    evaluate_every: Annotated[
        int, typer.Option(help="Test all clients every N rounds, for the report's curves only.", min=0)
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")] = False,
) -> None:
    """Run methods over one data set partitioned into clients, and compare them.

    Without options: scikit-learn's digits, 20 clients, a strongly skewed Dirichlet partition, every analytic method.
    """
    chosen = _methods(methods, features, settings or [])
    _check_outputs(out, OUTPUTS)
    if heads is not None:
        _check_outputs(heads, [method.name for method in chosen])
    dataset = load_dataset(data)
    chosen = _compatible(chosen, dataset, is_group=methods in GROUPS)
    small = "drop" if drop_small else "error"
    federation = Federation.from_dataset(dataset, clients, partition, test, seed, min_size=min_size, small=small)
    results: list[Result] = []
    options: dict[str, Any] = {"device": device, "checkpoint": checkpoint, "evaluate_every": evaluate_every}
    with open_engine(engine, federation, **options) as run_method, show_progress(len(chosen)) as progress:
        for method in chosen:
            with progress.method(method.name) as report_progress:
                outcome = run_method(method, progress=report_progress, keep_heads=heads is not None)
            results.append(outcome)
            for name, head in outcome.heads.items():
                folder = heads / method.name  # type: ignore[operator]
                make_folder(folder)
                head.save(folder / f"{wire.file_name(name)}.safetensors")
    content = page(results, seed=seed, engine=engine, device=device, **federation.description)
    write_page(out, content)
    if as_json:
        sys.stdout.write(json.dumps(content, indent=1, allow_nan=False) + "\n")
        return
    console = Console() if sys.stdout.isatty() else Console(width=150)
    console.print(result_table(content))
    console.print(f"Report: {out / 'report.html'}    Figures: {out / 'result.json'}", highlight=False, soft_wrap=True)


def _methods(names: str, features: str | None, settings: Sequence[str]) -> list[Method]:
    group = [method.name for method in GROUPS.get(names, ())]
    listed = group or [name.strip() for name in names.split(",") if name.strip()]
    if not listed:
        raise GramfoldError(f"no method named; known: {', '.join(METHODS)}")
    if len(set(listed)) < len(listed):
        raise GramfoldError("a method is named twice")
    parameters: dict[str, dict[str, Any]] = {name: {} for name in listed}
    if features is not None:
        parameters |= {name: {"features": features} for name in listed if METHODS.get(name) in ANALYTIC}
    for setting in settings:
        left, equals, value = setting.partition("=")
        name, dot, key = left.rpartition(".")
        if not (equals and dot and key):
            raise GramfoldError(f"cannot read --set {setting!r}; write METHOD.NAME=VALUE, such as apfl.lam=0.5")
        if name not in parameters:
            raise GramfoldError(f"--set {setting!r} names a method that is not run; running: {', '.join(listed)}")
        parameters[name][key] = _value(value)
    return [make_method(name, **given) for name, given in parameters.items()]


def _compatible(methods: list[Method], dataset: Dataset, is_group: bool) -> list[Method]:
    """The methods that support this data; naming one that does not is an error."""
    kind = "features" if dataset.inputs.ndim == 2 else "images"
    supported = [method for method in methods if kind in method.input_kinds]
    if not supported or (len(supported) < len(methods) and not is_group):
        unsupported = next(method.name for method in methods if kind not in method.input_kinds)
        raise GramfoldError(f"{dataset.name} holds {kind}, which {unsupported} does not support; {INSTEAD[kind]}")
    return supported


def _value(text: str) -> Any:
    if text.lower() in ("none", "null", ""):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _check_outputs(folder: Path, ours: Sequence[str]) -> None:
    """Before any work, refuse to write into a folder with other content."""
    if folder.is_file():
        raise GramfoldError(f"{folder} is a file, not a folder; choose another one")
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in ours)
        if others:
            raise GramfoldError(f"{folder} exists and contains other files ({others[0]}); choose another folder")
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(parent, os.W_OK):
        raise GramfoldError(f"cannot write to {parent}; choose another folder")
