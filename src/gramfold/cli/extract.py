"""`gramfold extract`: raw samples to an .npz file of features."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold.cli import data as shared
from gramfold.errors import GramfoldError
from gramfold.extraction import FAIL, save_features


def extract(
    data: Annotated[str, typer.Argument(help="A folder of images, a CSV or Parquet table, or an .npz file with images.")],
    backbone: shared.Backbone = None,
    out: Annotated[Path, typer.Option(help="The .npz file to write.")] = Path("features.npz"),
    pooling: shared.Pooling = None,
    device: Annotated[str, typer.Option(help="cpu, or a torch device such as cuda.")] = "cpu",
    cache: shared.CacheFolder = None,
    unreadable: shared.Unreadable = FAIL,
    label_column: shared.LabelColumn = None,
    client_column: shared.ClientColumn = None,
    path_column: shared.PathColumn = None,
    text_column: shared.TextColumn_ = None,
    split_column: shared.SplitColumn = None,
    only: shared.OnlyColumns = None,
) -> None:
    """Send labelled images, texts or a table through a backbone once; `gramfold run --data` reads what comes out.

    Features are kept in a cache: an extraction that was stopped goes on where it was, and a second one reads.
    """
    if out.suffix != ".npz":
        raise GramfoldError(f"{out} must end in .npz")
    columns = shared.columns_from(label_column, client_column, path_column, text_column, split_column, only)
    dataset = shared.load_named(data, backbone, pooling, device, columns, cache, unreadable)
    if dataset.origin is None:
        raise GramfoldError(f"{data} holds features already")
    save_features(out, dataset)
    rows, width = dataset.inputs.shape
    typer.echo(f"{out}: {rows} samples of {width} numbers, {dataset.outputs} classes, from {dataset.origin}")
