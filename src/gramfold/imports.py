"""What is imported where it is needed: packages that only an extra brings, missed in words, and code of the user's own."""

import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gramfold.errors import FileError, InstallError, OptionError

if TYPE_CHECKING:
    from pandas import DataFrame


def require(module: str, extra: str, what: str) -> Any:
    """The module; where it is not installed, an error that says for `what` it is needed and which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or module).partition(".")[0]
        raise InstallError(f'{what} needs the package {missing}; install it with: pip install "gramfold[{extra}]"') from None


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


IN_FILE = re.compile(r"(.+\.py):([^\W\d]\w*)")


def names_code(text: Any) -> bool:
    """Whether it is FILE.py:NAME."""
    return isinstance(text, str) and IN_FILE.fullmatch(text) is not None


def object_at(place: str, what: str) -> Any:
    """What is called so at FILE.py:NAME or module:NAME. It runs that file: only for what a user names."""
    module, _, name = place.rpartition(":")
    if not module:
        raise OptionError(f"cannot read {what} {place!r}; write FILE.py:NAME or python:MODULE:NAME")
    if module.endswith(".py") and not Path(module).is_file():
        raise FileError(f"{what} {place}: no such file: {module}")
    if not module.endswith(".py") and "" not in sys.path:  # a module in the working folder, as python -m would find it
        sys.path.insert(0, "")
    try:
        return getattr(import_from(module), name)
    except Exception as error:  # whatever the user's own file raises
        raise OptionError(f"{what} {place} cannot be imported: {type(error).__name__}: {error}") from None


def frame(rows: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """Rows of plain values as a pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise InstallError("a data frame needs pandas: pip install pandas") from None
    return pandas.DataFrame(list(rows))
