"""What is imported where it is needed: packages that only an extra brings, missed in words, and code of the user's own."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from gramfold.errors import GramfoldError


def require(module: str, extra: str, what: str) -> Any:
    """The module; where it is not installed, an error that says for `what` it is needed and which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or module).partition(".")[0]
        raise GramfoldError(f'{what} needs the package {missing}; install it with: pip install "gramfold[{extra}]"') from None


def import_from(place: str) -> ModuleType:
    """The module of this name, or in this file where it ends in .py; ImportError and the like where there is none."""
    if not place.endswith(".py"):
        return importlib.import_module(place)
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {place}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
