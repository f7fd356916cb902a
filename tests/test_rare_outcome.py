"""A rare outcome: methods are told apart by AUC and log loss, with intervals, wherever figures are shown."""

import csv
import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

import gramfold as gf
from gramfold.report import card_markdown, render_page, result_table
from gramfold.report.charts import client_strips
from gramfold.results.folder import page
from rare_cases import SIZES, hospitals

METHODS = ["local", "afl", "fedhip"]


@pytest.fixture(scope="module")
def federation() -> gf.Federation:
    return gf.Federation.from_clients(hospitals(), random_state=0)


@pytest.fixture(scope="module")
def comparison(federation) -> gf.Comparison:
    return gf.compare(METHODS, federation)


@pytest.fixture(scope="module")
def result(federation):
    return gf.run("fedhip", federation)


def test_three_of_a_hundred(federation):
    ill = sum((client.train().targets == federation.task.labels.index("ill")).sum() for client in federation)
    assert 0.02 < ill / federation.task.samples < 0.04


def test_the_measures_follow_from_the_balance(result, blobs):
    assert result.measures == ["auc", "log_loss", "brier", "average_precision", "accuracy"]
    X, codes = blobs
    assert gf.run("afl", gf.Federation.split(X, codes % 2, clients=3, partition="iid")).measures[0] == "accuracy"
    assert gf.run("afl", gf.Federation.split(X, codes, clients=3, partition="iid")).measures == ["accuracy", "log_loss"]
    assert gf.run("afl", gf.Federation.split(X, X[:, 0], clients=3, regression=True)).measures == ["rmse", "r2"]


def test_a_comparison_is_led_by_auc_and_log_loss_with_intervals(comparison):
    assert comparison.figure == "auc"
    shown = comparison.to_dict()
    for row in shown["methods"]:
        assert row["ci_low"] < row["mean"] < row["ci_high"] <= 1.0
        assert list(row["measures"]) == ["auc", "log_loss", "brier", "average_precision", "accuracy"]
        loss = row["measures"]["log_loss"]
        assert loss["ci_low"] < loss["mean"] < loss["ci_high"]
    told = shown["methods"][1]["measures"]["log_loss"]["difference"]
    assert told["ci_low"] > 0, "a shared ridge alone is worse here than each hospital's own, and the interval tells"
    words = repr(comparison)
    assert words.splitlines()[1].split()[:2] == ["method", "AUC"]
    assert "log loss" in words
    assert "accuracy %" in words
    assert "1 client has test samples of one class alone, and so no AUC" in comparison.to_markdown()


def test_differences_are_of_pairs(comparison):
    """Methods have resampled the same test samples: their difference is told far better than by two intervals."""
    paired = comparison.difference("fedhip", "local")
    assert paired.mean == pytest.approx(comparison.mean("fedhip").mean - comparison.mean("local").mean)
    assert paired.ci_low < paired.mean < paired.ci_high
    apart = [comparison.mean(name) for name in ("fedhip", "local")]
    assert paired.ci_high - paired.ci_low < 0.5 * sum(one.ci_high - one.ci_low for one in apart)
    same = gf.Comparison([0], {"a": comparison.results["afl"], "b": comparison.results["afl"]}, "a").difference("b")
    assert (same.mean, same.ci_low, same.ci_high) == (0.0, 0.0, 0.0)


def test_columns_of_a_table_are_named_and_the_best_is_bold(comparison):
    written = comparison.to_latex(columns=["AUC", "95 % CI", "log loss"], bold=True)
    assert r"method & AUC & 95 \% CI & log loss \\" in written
    assert written.count(r"\textbf{") == 2
    best = max(METHODS, key=lambda name: comparison.mean(name).mean)
    assert re.search(rf"{best} & \\textbf{{{comparison.mean(best).mean:.3f}}}", written)
    with pytest.raises(gf.GramfoldError, match="the table has no column 'F1'; it has: AUC, 95 % CI"):
        comparison.to_latex(columns=["F1"])


def test_a_spreadsheet_has_every_measure(comparison):
    rows = list(csv.DictReader(io.StringIO(comparison.to_csv())))
    assert float(rows[1]["mean_log_loss"]) == comparison.mean("afl", "log_loss").mean
    assert float(rows[1]["mean_auc"]) == comparison.mean("afl").mean
    assert float(rows[1]["difference_log_loss_ci_low"]) == comparison.difference("afl", measure="log_loss").ci_low
    assert rows[0]["mean_accuracy"]


def test_seeds_too_and_no_interval_leaves_the_measures_bounds(federation):
    data = hospitals()
    X, y = (np.concatenate([part[i] for part in data.values()]) for i in (0, 1))
    found = gf.compare(["afl", "local"], (X, y), seeds=2, clients=4, partition="iid")
    assert found.figure == "auc"
    assert found.difference("local", measure="log_loss").n == 2
    for method in found.results:
        estimate = found.mean(method)
        assert 0.0 <= estimate.ci_low < estimate.ci_high <= 1.0


def test_clients_have_figures_and_intervals_by_the_same_names(result):
    north, island = result.clients["north"], result.clients["island"]
    assert north.intervals["auc"][0] < north.auc < north.intervals["auc"][1]
    assert island.auc is None
    assert island.accuracy == 1.0
    assert island.intervals["accuracy"][0] < 0.9, "25 of 25 are no certainty"
    entry = result.to_dict()
    by_name = {client["name"]: client for client in entry["clients"]}
    assert by_name["north"]["intervals"]["auc"] == list(north.intervals["auc"])
    assert by_name["island"]["auc"] is None
    assert entry["intervals"]["mean_auc"] == list(result.intervals["mean_auc"])
    known = [client.auc for client in result.clients.values() if client.auc is not None]
    assert (result.mean_auc, len(known)) == (pytest.approx(np.mean(known)), len(SIZES) - 1)
    assert entry["mean_brier"] == result.mean_brier
    assert result.worst_decile_log_loss == max(client.log_loss for client in result.clients.values())
    json.dumps(entry, allow_nan=False)
    assert "100.0 [" in result.table()
    assert result.rows()[0]["auc_low"] == north.intervals["auc"][0]


def test_the_page_and_the_card_show_them(result, federation):
    content = page([result], seed=0, engine="inprocess", **federation.description, labels=federation.label_counts())
    made = render_page(content)
    numbers = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', made).group(1))
    assert numbers["measure"] == {"less": False, "percent": False, "unit": "AUC", "title": "AUC", "least": 0, "most": 1.0}
    assert numbers["groups"][0]["methods"][0]["ends"][0][0] < result.clients["north"].auc
    assert [figure["named"] for figure in numbers["figures"] if figure.get("named")] == ["well"]
    assert "1 client has test samples of one class alone, and so no AUC: island." in made
    written = io.StringIO()
    console = Console(width=150, file=written)
    console.print(result_table(content, 150))
    assert f"{result.mean_auc:.3f}" in written.getvalue()
    assert f"{result.mean_auc:.3f}" in client_strips(content["methods"])
    card = card_markdown(result.cards()["island"])
    assert "100.0 % (95 % confidence: 86.7 to 100.0 %)" in card
    assert "test auc" in card_markdown(result.cards()["north"])


def test_the_probability_of_the_outcome_is_binned_where_it_lies(result):
    bins = result.to_dict()["positive"]
    assert bins["class"] == "well"
    tested = sum(client.test for client in result.clients.values())
    assert sum(bins["count"]) == tested
    assert sum(count > 0 for count in bins["count"]) > 3, "not all in one bin, though all are near one"
