"""The pages can be read: the site builds without a complaint, it names what a program may use, and no link is broken."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gramfold

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = r"\"?(?:https?:)?//"
FETCHED = re.compile(
    rf"<(?:script|img|iframe)[^>]*\ssrc={ELSEWHERE}|<link[^>]*rel=\"?(?:stylesheet|preconnect)[^>]*href={ELSEWHERE}"
)


def anchors(page: Path) -> set[str]:
    """The headings of a page, as viewers of Markdown name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text()):
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_navigation_once():
    listed = re.findall(r"^ +- ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = sorted(page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(listed) == pages


def test_every_public_name_is_on_the_reference_page():
    listed = {line.rpartition(".")[2] for line in (ROOT / "docs/api.md").read_text().splitlines() if line.startswith("::: ")}
    assert listed == set(gramfold.__all__) - {"__version__"}


def test_the_version_to_cite_is_this_one():
    assert f"\nversion: {gramfold.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.slow
def test_the_site_builds_without_a_complaint_and_fetches_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    site, docs = tmp_path / "site", ROOT / "docs"
    pages = list(site.rglob("*.html"))
    assert {page.relative_to(docs).with_suffix("") for page in docs.rglob("*.md")} <= {
        page.relative_to(site).with_suffix("") for page in pages
    }
    for page in pages:
        assert not FETCHED.search(page.read_text()), page.name
    assert 'id="gramfold.Federation.split"' in (tmp_path / "site" / "api.html").read_text()
