"""What stands in for the benches of the papers where gramfold was installed as a package: wheels leave them out."""

import importlib
from typing import Any

import typer

from gramfold.errors import GramfoldError

ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True}


def from_clone(module: str) -> Any:
    """This module of the benches; where it is not installed, an error that says where the benches are."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, "gramfold.bench"):
            raise
        raise GramfoldError(
            "the benches are not installed: clone the repository, and install gramfold from there with: pip install --editable ."
        ) from None


def no_bench(context: typer.Context) -> None:
    """Rerun a paper's experiments: in a clone of the repository only, since an installed package has no benches."""
    from_clone("gramfold.cli.bench")
