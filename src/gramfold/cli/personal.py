"""`gramfold personal`: every client's own head, from a final model and a part of the data."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold import files
from gramfold.cli.fold import Data, Device
from gramfold.results.folder import page, write_page
from gramfold.results.result import Result
from gramfold.results.saved import write_heads


def personal(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The final model, from gramfold next.")],
    data: Data,
    heads: Annotated[Path, typer.Option(help="Folder for the clients' heads and their cards.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for this part's result.json and report.html.", show_default=False)
    ] = None,
    device: Device = "cpu",
) -> None:
    """Write every client's own head: of clients whose samples are in the model, or of newcomers."""
    final = files.TaskFile.load(model)
    result = files.personal(final, data, device)
    write_heads(heads, result.heads, result.cards())
    if out is not None:
        name, many = ", ".join(path.name for path in data), len(result.clients)
        about = {"data": {"name": name}, "partition": {"kind": "files", "clients": many}}
        write_page(out, page([result], seed=final.seed, engine="files", device=device, **about), False)
    typer.echo(f"{heads}: {_figures(result)}")


def _figures(result: Result) -> str:
    many = "1 head" if len(result.heads) == 1 else f"{len(result.heads)} heads"
    if result.classification:
        found = result.mean_accuracy
        return many if found is None else f"{many}, mean accuracy {100 * found:.1f} % on their own test samples"
    found = result.mean_rmse
    return many if found is None else f"{many}, mean RMSE {found:.4g} on their own test samples"
