"""The report page: complete, safe, self-contained, and fine in a browser."""

import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import gramfold as gf
from gramfold.report import render_page, result_table


def result_of(federation: gf.Federation, *methods) -> dict:
    return {
        "gramfold": gf.__version__,
        "seed": 0,
        **federation.description,
        "methods": [gf.run(method, federation).to_dict() for method in methods],
    }


@pytest.fixture(scope="module")
def result() -> dict:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 6)), np.arange(80) % 4
    names = ["<b>north</b>", "south & co", "east"]
    federation = gf.Federation.from_clients({name: (X[i::3], y[i::3]) for i, name in enumerate(names)})
    return result_of(federation, gf.Local(), gf.AFL(), gf.FedHiP())


class Checker(HTMLParser):
    """Notes unbalanced tags and anything fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)
        self.outside += [value for key, value in attrs if key in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(result):
    checker = Checker()
    checker.feed(render_page(result))
    assert checker.open == []
    assert checker.outside == []


def test_names_of_clients_are_shown_never_interpreted(result):
    page = render_page(result)
    assert "<b>north</b>" not in page
    assert "&lt;b&gt;north&lt;/b&gt;" in page


def test_every_method_and_its_mean_are_on_the_page_and_in_the_table(result):
    page = render_page(result)
    table = result_table(result)
    for method in result["methods"]:
        assert method["name"] in page
        assert f"{100 * method['mean_accuracy']:.1f}" in page
    assert table.row_count == 3


def test_regression_results_have_a_page_too():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 5))
    federation = gf.Federation.split(X, X @ rng.standard_normal(5), clients=3, partition="iid", regression=True)
    page = render_page(result_of(federation, gf.AFL()))
    assert "RMSE" in page


@pytest.mark.browser
def test_a_browser_shows_the_page(result, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine")
    (tmp_path / "report.html").write_text(render_page(result))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
    shot = tmp_path / "page.png"
    subprocess.run(
        [browser, *flags, f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={shot}", "--window-size=1200,1400",
         (tmp_path / "report.html").as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    assert shot.stat().st_size > 20_000, "an empty page compresses to far less"
