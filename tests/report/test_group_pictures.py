"""Who is with whom and what each gained, on pages and cards."""

import json
import re

import numpy as np
import pytest

import gramfold as gf
from browser import LAPTOP, PHONE, Browser
from gramfold.report import render_page
from report_cases import result_of


@pytest.fixture(scope="module")
def federation() -> gf.Federation:
    """Six clients whose classes lie in one of two places."""
    rng = np.random.default_rng(0)
    clients = {}
    for i in range(6):
        centres = 2.0 * np.random.default_rng(i % 2).standard_normal((3, 8))
        codes = rng.integers(0, 3, 90)
        clients[f"site {i}"] = (centres[codes] + (i % 2) + rng.standard_normal((90, 8)), codes)
    return gf.Federation.from_clients(clients, labels=[0, 1, 2])


def given() -> gf.PACE:
    hand = {f"site {i}": "north" if i % 2 else "south" for i in range(5)}  # the sixth is in none
    return gf.PACE(features="bias+linear", groups=hand)


@pytest.fixture(scope="module")
def pages(federation, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    found = gf.PACE(features="bias+linear", groups=True)
    for name, method in (("found", found), ("given", given())):
        (folder / f"{name}.html").write_text(render_page(result_of(federation, method)))
    return folder


def numbers(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_found_groups_are_on_the_page_with_their_tree_and_why(pages):
    page = numbers((pages / "found.html").read_text())
    method = page["groups"][0]["methods"][0]
    assert [figure["kind"] for figure in page["figures"] if figure["kind"] in ("together", "joined")] == ["together", "joined"]
    assert method["groups"]["names"] == ["group 0", "group 1"]
    assert len(method["groups"]["tree"]) == 1  # one merge of two groups
    assert all("column" in why for why in method["groups"]["why"])
    assert method["groups"]["nats"] > 0


def test_groups_by_hand_have_their_names_and_a_client_may_be_in_none(pages):
    method = numbers((pages / "given.html").read_text())["groups"][0]["methods"][0]
    assert method["groups"]["names"] == ["north", "south"]
    assert method["groups"]["tree"] == []
    assert method["chosen"]["group"][5] is None


@pytest.mark.browser
@pytest.mark.parametrize(("name", "bands"), [("found", 2), ("given", 3)])
@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_a_browser_draws_a_band_for_each_group_and_a_dot_for_each_client(pages, tmp_path, name, bands, size):
    with Browser(tmp_path / "profile") as browser:
        browser.open(pages / f"{name}.html", size=size)
        figure = "[...document.querySelectorAll('figure')].find(each => each.textContent.includes('Who is with whom'))"
        assert browser.run(f"{figure}.querySelectorAll('.group rect').length") == bands
        drawn = f"[...{figure}.querySelectorAll('.dots path')].map(path => path.getAttribute('d').split('M').length - 1)"
        assert sum(browser.run(drawn)) == 6
        assert not browser.complaints


def test_a_card_says_what_a_client_gained_and_with_whom_it_is(federation):
    result = gf.run(given(), federation)
    cards = {name: gf.report.card_markdown(card) for name, card in result.cards().items()}
    gain = result.gained_by_joining["site 0"]
    assert f"| gained by joining | {gain:+.3g} nats a sample" in cards["site 0"]
    assert "| group | south" in cards["site 0"]
    assert "| group |" not in cards["site 5"]


def test_a_card_of_a_mixed_model_says_how_far_its_client_deviates():
    rng = np.random.default_rng(0)
    X, who = rng.standard_normal((400, 2)), np.arange(400) % 10
    y = X[:, 0] + 3.0 * who + rng.standard_normal(400)
    result = gf.run(gf.MixedModel(), gf.Federation.split(X, y, ids=who, regression=True))
    card = gf.report.card_markdown(result.cards()["0"])
    value, sure = result.heads["0"].chosen["deviations"]["offset"]
    assert f"offset {value:+.3g} ± {sure:.2g}" in card
