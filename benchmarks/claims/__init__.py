"""Sentences on pages that state a finding, held against the result files.

A claim is a function in a module of this package. It asserts, of the files it loads, what the sentence says, and returns the sentence
as it must stand on the page, with figures filled in from the same files:

    @claim("docs/results.md")
    def depth_helps_the_shared_model() -> str:
        shared = [row["shared_accuracy"] for row in load("deepafl")["deepafl"]]
        assert shared == sorted(shared)
        return "Depth helps the shared model, layer after layer."

tests/test_claims.py fails where a rerun contradicts a claim, or where the page has other words: then the page is mended. Links,
stars and line breaks do not count as words.
"""

import re
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

from benchmarks.provenance import ROOT


class Claim(NamedTuple):
    """A sentence of a page: `sentence` raises AssertionError where the result files say otherwise."""

    page: str
    sentence: Callable[[], str]

    @property
    def name(self) -> str:
        return f"{self.page}: {self.sentence.__name__}"


_claims: list[Claim] = []


def claim(page: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """The function states a finding that this page, named from the project's root, has in words."""

    def register(sentence: Callable[[], str]) -> Callable[[], str]:
        _claims.append(Claim(page, sentence))
        return sentence

    return register


def claims() -> list[Claim]:
    """All of them, from every module of this package."""
    for module in iter_modules(__path__):
        if not module.name.startswith("_"):
            import_module(f"{__name__}.{module.name}")
    return _claims


def problem(claim: Claim, root: Path = ROOT) -> str | None:
    """What is wrong with a claim, in a line; None where it holds and its page says so."""
    try:
        sentence = claim.sentence()
    except AssertionError as error:
        asserted = traceback.extract_tb(error.__traceback__)[-1].line
        return f"{claim.name}: the result files say otherwise ({asserted}){f': {error}' if str(error) else ''}"
    if words(sentence) not in words((root / claim.page).read_text()):
        return f"{claim.name}: the page should say: {sentence}"
    return None


def words(text: str) -> str:
    """A page or a sentence by its words alone: without where links lead, stars and line breaks."""
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("*", "").split())


def unclaimed(page: Path, stated: list[str]) -> list[str]:
    """Sentences of a page's prose that have a figure and are part of no claim: where to look for findings, no more than that."""
    text = re.sub(r"```.*?```|<!-- made by.*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "#", "![", "*Figures", "    "))]
    paragraphs = "\n".join(prose).split("\n\n")
    sentences = [each for paragraph in paragraphs for each in re.split(r"(?<=[.?!])\s+(?=[A-Z])", words(paragraph))]
    known = " ".join(words(sentence) for sentence in stated)
    return [sentence for sentence in sentences if re.search(r"\d", re.sub(r"`[^`]*`", "", sentence)) and sentence not in known]
