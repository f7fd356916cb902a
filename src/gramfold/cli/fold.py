"""`gramfold fold`: a part's answer to a task file."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold import files
from gramfold.cli.begin import Out

TaskPath = Annotated[Path, typer.Argument(metavar="TASK", help="The task file of the round.")]
Data = Annotated[
    list[Path], typer.Argument(metavar="DATA...", help="A part of the data: a table, an .npz file; several are one part.")
]
Device = Annotated[str, typer.Option(help="cpu, or a torch device such as cuda.")]


def fold(task: TaskPath, data: Data, out: Out, device: Device = "cpu") -> None:
    """Fold a part of the data into a part file: the sum of what its clients send in this round.

    A client's rows belong in one part. A part file that is there already and answers the same is left as it is.
    """
    before = files.PartFile.load(out) if out.exists() else None
    part = files.fold(files.TaskFile.load(task), data, device, before)
    if part is before:
        out.touch()  # for make: it is newer than what it was made of
    else:
        part.save(out)
    typer.echo(f"{out}: {part}{', as it was' if part is before else ''}")
