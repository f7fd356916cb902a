"""The README and the docs run as they are written: every Python block, and the commands of the guide.

A page's blocks run in order, in one namespace and an empty folder. What a reader has of their own (an encoder, images) a page
defines in a comment that begins with "<!-- python". Commands are parsed on all pages; those of the guide also run, in the same
folder, unless they name a file or a device of the reader's.
"""

import re
import shlex
import warnings
from pathlib import Path

import pytest
import typer

from gramfold.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?:```python|<!-- python)\n(.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    gramfold\b(.*)$", re.MULTILINE)
READERS_OWN = re.compile(r"\b[A-Z]{2,}\b|--device|--engine|^flower")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands(page: Path) -> list[list[str]]:
    return [shlex.split(found, comments=True) for found in COMMAND.findall(page.read_text())]


WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text())]
LINES = [(page, line) for page in PAGES for line in commands(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_a_page_runs_from_top_to_bottom(page, gramfold):
    text = page.read_text()
    namespace: dict[str, object] = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in BLOCK.finditer(text):
            before = text.count("\n", 0, block.start(1))  # so that a traceback has the page's line
            exec(compile("\n" * before + block[1], name(page), "exec"), namespace)
    if page.parent.name == "guide":
        for line in commands(page):
            if not READERS_OWN.search(" ".join(line)):
                assert gramfold(*line)[0] == 0, line


@pytest.mark.parametrize(("page", "line"), LINES, ids=lambda part: " ".join(part) if isinstance(part, list) else name(part))
def test_a_command_is_one_that_gramfold_knows(page, line):
    command, words = typer.main.get_command(app), list(line)
    while known := getattr(command, "commands", None):
        assert words, f"{name(page)}: gramfold {shlex.join(line)} names no command"
        command = known[words.pop(0)]
    command.make_context("gramfold", words)


def test_the_pages_have_code_and_commands():
    """That the patterns above find something: every page of the guide has Python to run."""
    assert {page for page in PAGES if page.parent.name == "guide"} < set(WITH_CODE)
    assert len(LINES) > 20
