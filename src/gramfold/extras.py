"""Packages that only an extra brings: imported where they are needed, and missed in words."""

import importlib
from typing import Any

from gramfold.errors import GramfoldError


def require(module: str, extra: str, what: str) -> Any:
    """The module; where it is not installed, an error that says for `what` it is needed and which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or module).partition(".")[0]
        raise GramfoldError(f'{what} needs the package {missing}; install it with: pip install "gramfold[{extra}]"') from None
