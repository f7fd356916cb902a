"""The pages: complete, safe, self-contained. How they behave in a browser is in test_browser.py."""

import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

import gramfold as gf
from gramfold.report import render_page, result_table
from gramfold.report.bench import render_bench
from gramfold.report.clients import clients_of, gains
from report_cases import BENCH, HOSTILE, result_of


def numbers(page: str) -> dict:
    """What the page's script reads."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page).group(1))


@pytest.fixture(scope="module")
def result() -> dict:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 6)), np.arange(80) % 4
    federation = gf.Federation.from_clients({name: (X[i::3], y[i::3]) for i, name in enumerate(HOSTILE)})
    return result_of(federation, gf.Local(), gf.AFL(), gf.FedHiP(), labels=federation.label_counts())


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
    assert numbers(page)["groups"][0]["names"] == HOSTILE
    assert page.count("<script") == page.count("</script>") == 2, "the numbers and the page's own"
    assert not any(name in page for name in HOSTILE)
    excluded = render_page({**result, "sites": {"excluded": {HOSTILE[0]: HOSTILE[1]}}})
    assert "&lt;/script&gt;" in excluded
    assert "&quot; onload" in excluded


def test_every_method_and_its_mean_are_on_the_page_and_in_the_table(result):
    page = render_page(result)
    table = result_table(result)
    for method in result["methods"]:
        assert method["name"] in page
        assert f"{100 * method['mean_accuracy']:.1f}" in page
    assert table.row_count == 3


@pytest.mark.parametrize("room", [60, 80, 100, 150])
def test_a_narrow_terminal_has_fewer_columns_and_none_cut(result, room):
    written = io.StringIO()
    Console(width=room, file=written).print(result_table(result, room))
    shown = written.getvalue()
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= room
    for method in result["methods"]:
        assert method["name"] in shown
        assert f"{100 * method['mean_accuracy']:.1f}" in shown
    assert ("ECE" in shown) == (room == 150)


def test_regression_results_have_a_page_too():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 5))
    federation = gf.Federation.split(X, X @ rng.standard_normal(5), clients=3, partition="iid", regression=True)
    page = render_page(result_of(federation, gf.AFL()))
    assert "RMSE" in page


def test_clients_have_all_that_figures_need(result):
    clients = numbers(render_page(result))["groups"][0]
    counts = result["labels"]["counts"]
    assert clients["counts"] == [[int(part) for pair in counts[name].items() for part in pair] for name in HOSTILE]
    assert clients["methods"][1]["values"] == [round(100 * client["accuracy"], 2) for client in result["methods"][1]["clients"]]
    assert clients["methods"][1]["shared"] == clients["methods"][1]["values"], "AFL's heads are the shared one"
    assert clients["methods"][0]["shared"] is None
    assert clients["methods"][2]["shared"] == 1, "FedHiP's shared model is AFL's, and written once"
    assert clients["alone"] == 0


def test_results_of_old_have_a_page_too(result):
    old = json.loads(json.dumps({key: value for key, value in result.items() if key != "labels"}))
    for method in old["methods"]:
        method.pop("reliability", None)
        for client in method["clients"]:
            client.pop("shared_accuracy", None)
    kinds = {figure["kind"] for figure in numbers(render_page(old))["figures"]}
    assert "strips" in kinds
    assert not kinds & {"labels", "reliability"}
    assert render_page({**old, "methods": []})


def test_who_gains_is_counted(result):
    methods = [{"name": name, "mean_accuracy": 0.5, "clients": clients} for name, clients in (
        ("local", [{"accuracy": 0.5}, {"accuracy": 0.5}, {"accuracy": None}]),
        ("pace", [{"accuracy": 0.75, "shared_accuracy": 0.75}, {"accuracy": 0.25, "shared_accuracy": 0.5}, {"accuracy": None}]),
    )]  # fmt: skip
    assert gains(methods)[1][1] == ["pace", "1", "0", "1", "0", "0", "1", "1", "-12.5"]
    header, _ = gains(methods[:1])
    assert header == [("method", "")], "nothing to compare with"


def test_skew_is_left_out_where_labels_are_not_known(result):
    assert clients_of(result["methods"])["skew"] is None
    assert all(0 <= value < 1 for value in clients_of(result["methods"], result["labels"])["skew"])


# --- a bench's page ---


def test_a_bench_has_published_figures_beside_measured_ones():
    page = render_bench(BENCH)
    assert "93.46 \N{PLUS-MINUS SIGN} 0.25<small>published 58.10</small>" in page
    assert "Accuracy &lt;50&gt;" in page
    assert "</td><b>pace" not in page
    figures = numbers(page)["figures"]
    assert [figure["kind"] for figure in figures] == ["lines", "lines", "heat"]
    assert [figure.get("log") for figure in figures] == [True, False, None]
    checker = Checker()
    checker.feed(page)
    assert checker.open == checker.outside == []


def test_a_bench_that_has_only_begun_has_a_page():
    assert "Bench apfl" in render_bench({"bench": "apfl"})


def test_the_command_takes_a_bench(gramfold, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "bench.json").write_text(json.dumps(BENCH))
    assert gramfold("report", "there")[:2] == (0, "wrote there/report.html\n")
    assert gramfold("report", "there/bench.json", "--out", "again.html")[0] == 0
    assert (tmp_path / "again.html").read_text() == (tmp_path / "there" / "report.html").read_text() == render_bench(BENCH)
    code, _, err = gramfold("report", "there", "there")
    assert (code, len(err.strip().splitlines())) == (2, 1)
