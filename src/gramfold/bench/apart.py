"""Figures of a process of its own: its peak of memory is then nobody else's."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gramfold.bench.frame import Figures
from gramfold.errors import GramfoldError


def apart(module: str, about: Mapping[str, Any], what: str) -> Figures:
    """What the module's `main` prints, which is called with this as JSON. `what`: the run, in words, if it fails."""
    code = f"from {module} import main; main({json.dumps(json.dumps(dict(about)))})"
    found = {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, **found}, check=False)
    if done.returncode:
        raise GramfoldError(f"the run of {what} has failed: see above")
    figures: Figures = json.loads(done.stdout)
    return figures


def printed(work: Callable[..., Mapping[str, Any]], about: str) -> None:
    """In that process: print what it is for."""
    print(json.dumps(dict(work(**json.loads(about)))))


def peak_bytes() -> int:
    """The most memory this process has held (VmHWM: unlike ru_maxrss it does not begin with the parent's)."""
    return _of_status("VmHWM:")


def resident_bytes() -> int:
    """What it holds now."""
    return _of_status("VmRSS:")


def _of_status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
