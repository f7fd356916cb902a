"""`gramfold explain`: what every column adds to a head's predictions."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from gramfold import wire
from gramfold.cli import data as shared
from gramfold.cli.predict import say_strange, write_table
from gramfold.errors import FileError
from gramfold.extraction import default_cache, read_data
from gramfold.heads import load_head
from gramfold.report import render_explanation

ENDINGS = (".csv", ".parquet", ".pq", ".html")


def explain(
    head: Annotated[Path, typer.Argument(help="A head's file, such as --heads of gramfold run writes.")],
    data: Annotated[str, typer.Argument(help="A CSV or Parquet table, or an .npz file of features.")],
    of: Annotated[
        str | None, typer.Option(help="The class whose log-odds are explained: the second of two, else each sample's own.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Data whose mean predictions are compared with, instead of the average training sample.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write every sample's effects here: .csv or .parquet, or .html for a page.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON on standard output.")] = False,
    device: Annotated[str, typer.Option(help="cpu, or a torch device such as cuda, for the backbone.")] = "cpu",
    cache: shared.CacheFolder = None,
) -> None:
    """Say what every column adds to a head's predictions, on average and sample by sample."""
    if out is not None and out.suffix.lower() not in ENDINGS:
        raise FileError(f"{out} must end in {', '.join(ENDINGS)}")
    loaded = load_head(head)
    with shared.show_extraction("samples") as progress:
        options = {"cache": cache or default_cache(), "device": device, "progress": progress}
        rows, kept, source = read_data(loaded, data, **options)
        compared = None if baseline is None else read_data(loaded, baseline, **options)[0]
    say_strange(loaded, source)
    found = loaded.explain(rows, of, compared)
    names = [str(i) if source is None else source.called(int(i)) for i in kept]
    if out is not None and out.suffix.lower() == ".html":
        wire.write_atomically(out, render_explanation(f"{head.name} on {Path(data).name}", found, names).encode())
    elif out is not None:
        samples = found.rows()
        write_table(out, {"sample": names, **{key: [row[key] for row in samples] for key in samples[0]}})
    if as_json:
        content = found.to_dict()
        content["samples"] = [{"sample": name, **row} for name, row in zip(names, content["samples"], strict=True)]
        sys.stdout.write(json.dumps(content, indent=1, allow_nan=False) + "\n")
        return
    typer.echo(str(found))
    if out is not None:
        typer.echo(f"{out}: {len(names)} samples")
