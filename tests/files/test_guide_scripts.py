"""The scripts of the guide's page on files run as they stand: the loop over rounds, make, and the Slurm jobs with a stand-in for
Slurm that runs what it is given at once."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gramfold as gf

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "files.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCRIPTS = {
    "rounds": next(text for kind, text in BLOCK.findall(PAGE) if kind == "bash" and "until" in text),
    "fold.sh": next(text for kind, text in BLOCK.findall(PAGE) if text.startswith("#!/bin/bash")),
    "jobs": next(text for kind, text in BLOCK.findall(PAGE) if "--parsable" in text),
    "Makefile": next(text for kind, text in BLOCK.findall(PAGE) if kind == "make"),
}
SBATCH = """#!/bin/bash
ids=1; command=
while (( $# )); do
  case $1 in
    --array=*) range=${1#--array=}; ids=$(seq ${range%-*} ${range#*-}) ;;
    --wrap) command=$2; shift ;;
    --*) ;;
    *) command="bash $1" ;;
  esac
  shift
done
for id in $ids; do SLURM_ARRAY_TASK_ID=$id bash -ec "$command" >&2 || exit 1; done
echo 42
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The page's three parts, and `gramfold` and `sbatch` to call."""
    pytest.importorskip("pyarrow", reason="needs the extra tables")
    monkeypatch.chdir(tmp_path)
    exec(next(text for kind, text in BLOCK.findall(PAGE) if kind == "python"), {})
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "gramfold").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gramfold "$@"\n')
    (commands / "sbatch").write_text(SBATCH)
    for path in commands.iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    return tmp_path


def call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr


def check_heads(folder: Path) -> None:
    assert sorted(int(path.stem) for path in (folder / "heads").glob("*.safetensors")) == list(range(12))
    assert gf.load_head(folder / "heads" / "3.safetensors").labels == tuple(range(10))


@pytest.mark.slow
def test_the_loop_over_rounds(folder):
    call("bash", "-euc", f"said=\n{SCRIPTS['rounds']}")
    check_heads(folder)


@pytest.mark.slow
def test_make_does_what_is_left_to_do(folder):
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    (folder / "Makefile").write_text(SCRIPTS["Makefile"])
    call("make", "-j", "2")
    check_heads(folder)
    before = (folder / "part-1.moments").stat().st_mtime_ns
    (folder / "part-0.moments").unlink()
    call("make", "final.model")
    assert (folder / "part-0.moments").exists()
    assert (folder / "part-1.moments").stat().st_mtime_ns == before


@pytest.mark.slow
def test_the_jobs_of_an_array(folder):
    (folder / "fold.sh").write_text(SCRIPTS["fold.sh"])
    call("bash", "-euo", "pipefail", "-c", SCRIPTS["jobs"])
    check_heads(folder)
