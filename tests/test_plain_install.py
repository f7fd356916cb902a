"""What a user gets who types `pip install .`: the newest of everything, no extras, and a command that works."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("plain install")]  # installed once

ROOT = Path(__file__).parents[1]
EXTRAS = {"torch", "flwr", "cryptography"}  # what only the extras torch and flower bring
IMPORT_ALL = """
import importlib, json, pkgutil
import gramfold

missing = {}
names = [found.name for found in pkgutil.walk_packages(gramfold.__path__, "gramfold.", onerror=lambda name: None)]
for name in names:
    if not name.endswith(".__main__"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing[name] = error.name.partition(".")[0]
print(json.dumps({"from": gramfold.__file__, "names": names, "missing": missing}))
"""


def environment() -> dict[str, str]:
    """Nothing of this run reaches the new place: neither our sources nor our pinned versions."""
    ours = ("PYTHONPATH", "PYTHONHOME", "PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV")
    return {key: value for key, value in os.environ.items() if key not in ours}


def call(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment(), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@cache
def modules(place: Path) -> dict[str, Any]:
    """Where gramfold is installed, its modules, and what those lack that cannot be imported."""
    done = call(place / "venv/bin/python", "-c", IMPORT_ALL, cwd=place)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A fresh environment with gramfold in it, installed as a user would."""
    folder = tmp_path_factory.mktemp("plain")
    assert call(sys.executable, "-m", "venv", folder / "venv", cwd=folder).returncode == 0
    pip = [folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    probe = call(*pip, "download", "--retries", "0", "--timeout", "15", "--no-deps", "hatchling", "--dest", folder, cwd=folder)
    if probe.returncode:
        pytest.skip("no package index can be reached")
    done = call(*pip, "install", ROOT, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def gramfold(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call(place / "venv/bin/gramfold", *arguments, cwd=place)


def test_a_run_works(place):
    done = gramfold(place, "run", "--clients", "3", "--methods", "afl,pace", "--out", "here")
    assert done.returncode == 0, done.stderr
    result = json.loads((place / "here" / "result.json").read_text())
    assert [method["name"] for method in result["methods"]] == ["afl", "pace"]
    assert (place / "here" / "report.html").exists()


@pytest.mark.parametrize("arguments", [["run", "--nope"], ["run", "--clients", "many"], ["report"], ["nope"]], ids=" ".join)
def test_a_wrong_command_gets_one_line_and_exit_code_2(place, arguments):
    done = gramfold(place, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_alone_it_prints_its_help_and_lists_its_methods(place):
    alone = gramfold(place)
    assert "closed form" in alone.stdout
    assert alone.stderr == ""
    listed = gramfold(place, "methods")
    assert listed.returncode == 0, listed.stderr
    assert "pace" in listed.stdout


def test_the_benches_of_the_papers_are_not_in_it_and_the_command_says_where_they_are(place):
    assert [name for name in modules(place)["names"] if "bench" in name] == ["gramfold.cli.benches"]
    (place / "bench.json").write_text('{"bench": "apfl"}')
    for arguments in (["bench", "apfl", "--quick"], ["bench", "-x"], ["report", "bench.json"]):
        done = gramfold(place, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: the benches are not installed: clone the repository")
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_ctrl_c_is_told_in_one_word(place):
    script = """
from gramfold.cli import main

@main.app.command()
def wait() -> None:
    raise KeyboardInterrupt

main.main()
"""
    done = call(place / "venv/bin/python", "-c", script, "wait", cwd=place)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


def test_every_module_imports_unless_it_needs_an_extra_and_says_so(place):
    found = modules(place)
    assert Path(found["from"]).is_relative_to(place), "the installed package, not the sources"
    assert len(found["names"]) > 50
    assert set(found["missing"].values()) <= EXTRAS, found["missing"]
    core = {"federation", "moments", "heads", "methods", "estimators", "cli.main"}
    assert not {f"gramfold.{name}" for name in core} & set(found["missing"])
