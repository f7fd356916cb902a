"""`gramfold merge`: the sum of part files."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold import files
from gramfold.cli.begin import Out


def merge(
    parts: Annotated[list[Path], typer.Argument(metavar="PART...", help="Part files, merged ones among them.")],
    out: Out,
) -> None:
    """Add part files up, in any order and any tree; what answers another question, or is in already, is refused."""
    total = files.merge(parts, out)
    total.save(out)
    typer.echo(f"{out}: {total}")
