"""`gramfold predict`: a head's classes and probabilities for data, as a table."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gramfold import wire
from gramfold.checking import check_rows
from gramfold.cli import data as shared
from gramfold.errors import FileError
from gramfold.extraction import FAIL, default_cache, read_data
from gramfold.heads import Head, load_head
from gramfold.heads.several import SeveralLabels
from gramfold.imports import require
from gramfold.numerics.arrays import to_numpy
from gramfold.origin import TABLE
from gramfold.report.text import cell
from gramfold.sources import Columns
from gramfold.sources.base import Source

BLOCK = 4096
"""Samples that are looked at together."""


def predict(
    head: Annotated[Path, typer.Argument(help="A head's file, such as --heads of gramfold run writes.")],
    data: Annotated[
        str, typer.Argument(help="A folder of images, a CSV or Parquet table, or an .npz file of features or images.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .csv or .parquet file to write.")] = Path("predictions.csv"),
    device: Annotated[str, typer.Option(help="cpu, or a torch device such as cuda, for the backbone.")] = "cpu",
    backbone: shared.Backbone = None,
    every_class: Annotated[bool, typer.Option("--every-class", help="Also write every class's probability.")] = False,
    novelty: Annotated[
        bool,
        typer.Option("--novelty", help="Also write how unusual each sample is: the share of training samples that were less so."),
    ] = False,
    cache: shared.CacheFolder = None,
    unreadable: shared.Unreadable = FAIL,
    path_column: shared.PathColumn = None,
    text_column: shared.TextColumn_ = None,
) -> None:
    """Write the class of every sample, and how sure the head is; it knows which backbone or encoder its numbers come from."""
    if out.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise FileError(f"{out} must end in .csv or .parquet")
    loaded = load_head(head)
    given = None if path_column is None and text_column is None else Columns(path=path_column, text=text_column)
    with shared.show_extraction("samples") as progress:
        rows, kept, source = read_data(
            loaded, data, columns=given, cache=cache or default_cache(), unreadable=unreadable, device=device, backbone=backbone,
            progress=progress,
        )  # fmt: skip
    say_strange(loaded, source)
    names = [str(i) if source is None else source.called(int(i)) for i in kept]
    table = {"sample": names, **predictions(loaded, rows, every_class)}
    if novelty:
        table["novelty"] = in_blocks(loaded.novelty, rows).tolist()
    write_table(out, table)
    typer.echo(f"{out}: {len(names)} samples")


def say_strange(head: Head, source: Source | None) -> None:
    """A line for what is serious about new rows of a table beside those that the head was made of."""
    if source is None or head.origin is None or head.origin.kind != TABLE:
        return
    for finding in check_rows(head.origin, source.items, source.name):
        typer.echo(f"check: {finding}", err=True)


def in_blocks(told: Callable[[Any], Any], rows: Any) -> np.ndarray:
    return np.concatenate([to_numpy(told(rows[first : first + BLOCK])) for first in range(0, len(rows), BLOCK)])


def predictions(head: Head, rows: Any, every_class: bool = False) -> dict[str, list[Any]]:
    """Columns: the class and its probability where there is one (or the values), and every class's if asked for."""
    scores = in_blocks(head.scores, rows)
    if head.labels is None:
        return {f"value{i}" if scores.shape[1] > 1 else "value": column.tolist() for i, column in enumerate(scores.T)}
    if isinstance(head, SeveralLabels):
        return _labels(head, scores)
    best = scores.argmax(1)
    table: dict[str, list[Any]] = {"class": np.asarray(head.labels)[best].tolist()}
    if head.probabilistic:
        shares = head.probabilities(scores)
        table["probability"] = shares[np.arange(len(best)), best].tolist()
        if every_class:
            table |= {f"probability of {label}": shares[:, i].tolist() for i, label in enumerate(head.labels)}
    return table


def _labels(head: SeveralLabels, scores: np.ndarray) -> dict[str, list[Any]]:
    """The labels of each sample, and how likely each of all is, or its score."""
    table: dict[str, list[Any]] = {"labels": [";".join(map(str, found)) for found in head.sets(scores)]}
    told, what = (head.probabilities(scores), "probability") if head.probabilistic else (scores, "score")
    return table | {f"{what} of {label}": told[:, i].tolist() for i, label in enumerate(head.labels or ())}


def write_table(path: Path, table: dict[str, list[Any]]) -> None:
    """Columns as CSV or Parquet, by the file's name."""
    if path.suffix.lower() == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(cell, table))
        writer.writerows(map(cell, row) for row in zip(*table.values(), strict=True))
        content = text.getvalue().encode()
    else:
        arrow, parquet = require("pyarrow", "tables", "writing Parquet"), require("pyarrow.parquet", "tables", "writing Parquet")
        buffer = io.BytesIO()
        parquet.write_table(arrow.table(table), buffer)
        content = buffer.getvalue()
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    wire.write_atomically(path, content, public=True)
