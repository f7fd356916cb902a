"""`gramfold next`: from the sum of all parts to the next task file, or to the final model."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold import files
from gramfold.cli.begin import Out
from gramfold.cli.fold import TaskPath


def next_round(
    task: TaskPath,
    parts: Annotated[Path, typer.Argument(metavar="PARTS", help="The part file of all parts, from gramfold merge.")],
    out: Out,
) -> None:
    """Make the next task file of the sum of all parts, or the final model where this was the last round: the line that is printed
    then says "finished"."""
    following = files.following(files.TaskFile.load(task), files.PartFile.load(parts))
    following.save(out)
    typer.echo(f"{out}: {following}")
