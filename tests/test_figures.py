"""Figures on pages say which commit they are of, and whether the code of their methods is another by now."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import kept, provenance
from benchmarks.provenance import age, changed_since, code_of
from benchmarks.tables import linked

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
LINES = [(page, line) for page in PAGES for line in re.findall(r"\*Figures: .*?\.\*", page.read_text())]


@pytest.mark.parametrize(("page", "line"), LINES, ids=[f"{page.stem}-{n}" for n, (page, _) in enumerate(LINES)])
def test_a_page_says_how_old_its_figures_are(page, line):
    assert line == linked(age(*re.findall(r"`([\w-]+)`", line)), page), "run: python -m benchmarks.tables"


def test_a_page_names_the_methods_whose_code_is_another():
    assert provenance.page() in (ROOT / "docs" / provenance.PAGE).read_text(), "run: python -m benchmarks.tables"


def test_a_result_file_is_older_when_its_methods_code_changes(tmp_path, monkeypatch):
    stamps = {"afl": {"commit": "1234567", "code": {"afl": code_of("afl"), "pace": "of another time"}}}
    (tmp_path / "provenance.json").write_text(json.dumps(stamps))
    monkeypatch.setattr(provenance, "STAMPS", tmp_path / "provenance.json")
    assert changed_since("afl") == ["pace"]
    assert age("afl") == "*Figures: `afl` (commit 1234567), [older than today's code](provenance.md).*"


def test_of_cells_of_which_some_are_older_a_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "KEPT", tmp_path)
    lines = [
        {"cell": str(n), "commit": f"c{n}", "machine": "", "code": {"afl": code}} for n, code in enumerate((code_of("afl"), "x"))
    ]
    kept.append("afl", lines[:1])
    assert age("afl") == "*Figures: `afl` (commit c0).*"
    kept.append("afl", lines[1:])
    assert age("afl") == "*Figures: `afl` (commits c0 to c1), in part [older than today's code](provenance.md).*"


def test_a_file_that_says_nothing_of_its_code_counts_as_older(tmp_path, monkeypatch):
    (tmp_path / "provenance.json").write_text(json.dumps({"core": {"commit": "1234567", "code": {}}}))
    monkeypatch.setattr(provenance, "STAMPS", tmp_path / "provenance.json")
    assert age("core") == "*Figures: `core` (commit 1234567), [older than today's code](provenance.md).*"
    assert age("gpu") == "*Figures: `gpu` (commit not recorded), [older than today's code](provenance.md).*"


def test_prose_does_not_age_figures(tmp_path, monkeypatch):
    before = '"""What it is."""\n\nx = 1  # why\n'
    after = '"""Another word."""\n# a comment\nx = 1  # why\n'
    for text in (before, after):
        (tmp_path / "errors.py").write_text(text)
        monkeypatch.setattr(provenance, "SOURCE", tmp_path)
        provenance._tree.cache_clear()
        provenance._bare.cache_clear()
        assert provenance._bare("gramfold.errors") == "x = 1  # why"
    provenance._tree.cache_clear()
    provenance._bare.cache_clear()


def test_methods_of_other_modules_have_other_code():
    assert code_of("afl") != code_of("fedavg") != code_of("pace")
