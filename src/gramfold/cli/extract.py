"""`gramfold extract`: raw samples to an .npz file of features."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold.cli.data import Reading, reads_data
from gramfold.errors import FileError, OptionError
from gramfold.extraction import save_features


@reads_data
def extract(
    data: Annotated[str, typer.Argument(help="A folder of images, a CSV or Parquet table, or an .npz file with images.")],
    reading: Reading,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npz file to write.")] = Path("features.npz"),
) -> None:
    """Send labelled images, texts or a table through a backbone once; `gramfold run` reads what comes out.

    Features are kept in a cache: an extraction that was stopped goes on where it was, and a second one reads.
    """
    if out.suffix != ".npz":
        raise FileError(f"{out} must end in .npz")
    dataset = reading.load(data)
    if dataset.origin is None:
        raise OptionError(f"{data} holds features already")
    save_features(out, dataset)
    rows, width = dataset.inputs.shape
    what = "classes" if dataset.labels is not None else "targets"
    typer.echo(f"{out}: {rows} samples of {width} numbers, {dataset.outputs} {what}, from {dataset.origin}")
