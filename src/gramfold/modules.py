"""Code of the user's own, found by the name of a module or the path of a file."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType


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
