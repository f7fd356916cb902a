"""Methods compared over seeds: the statistics are scipy's, and the tables say what was measured."""

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import gramfold as gf
from gramfold.evaluation import Difference, Estimate

VALUES = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12).filter(lambda values: np.std(values) > 1e-6)


@given(VALUES, st.sampled_from([0.9, 0.95, 0.99]))
def test_intervals_are_students(values, confidence):
    found = Estimate.of(values, confidence)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.standard_error == pytest.approx(stats.sem(values))
    low, high = stats.t.interval(confidence, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (found.ci_low, found.ci_high) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))


@given(VALUES, st.integers(0, 2**31))
def test_differences_are_those_of_the_paired_t_test(values, seed):
    others = np.random.default_rng(seed).uniform(0, 1, len(values))
    found, expected = Difference.between(values, others), stats.ttest_rel(values, others)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    interval = expected.confidence_interval(0.95)
    assert (found.ci_low, found.ci_high) == (pytest.approx(interval.low, abs=1e-9), pytest.approx(interval.high, abs=1e-9))


def test_too_few_values_and_equal_ones_claim_nothing():
    assert Estimate.of([]) == Estimate(0, None, None, None, None)
    assert Estimate.of([0.5]) == Estimate(1, 0.5, None, None, None)
    assert Difference.between([0.5, 0.6], [0.5, 0.6]).p_value is None
    assert Difference.between([0.5], [0.4]).p_value is None


@pytest.fixture(scope="module")
def comparison(blobs) -> gf.Comparison:
    return gf.compare(["afl", gf.Local(), "fedhip"], blobs, seeds=3, clients=5, partition="dirichlet:0.5", min_size=6)


def test_a_comparison_is_the_runs_it_is_made_of(comparison, blobs):
    assert (list(comparison.seeds), comparison.baseline, comparison.figure) == ([0, 1, 2], "afl", "accuracy")
    by_hand = []
    for seed in range(3):
        federation = gf.Federation.split(*blobs, clients=5, partition="dirichlet:0.5", random_state=seed, min_size=6)
        by_hand.append(gf.run(gf.FedHiP(), federation).mean_accuracy)
    assert comparison.values("fedhip") == by_hand
    difference = comparison.difference("fedhip")
    assert difference.p_value == pytest.approx(stats.ttest_rel(by_hand, comparison.values("afl")).pvalue)
    assert comparison.difference("local", "fedhip").mean == pytest.approx(np.mean(comparison.values("local")) - np.mean(by_hand))
    clients = comparison.difference("fedhip", by="client")
    assert clients.n == 15
    assert clients.mean == pytest.approx(difference.mean)  # as many clients in each cut
    with pytest.raises(gf.GramfoldError, match="no method is called 'pace'; compared are: afl, local, fedhip"):
        comparison.mean("pace")
    with pytest.raises(gf.GramfoldError, match="paired by seed or client"):
        comparison.difference("local", by="moon")


def test_a_cut_federation_is_cut_anew_and_a_given_one_is_one_run(blobs):
    X, y = blobs
    cut = gf.Federation.split(X, y, clients=4, partition="iid", random_state=5)
    found = gf.compare("afl", cut, seeds=2)
    assert list(found.seeds) == [5, 6]
    assert found.values("afl")[0] == gf.run(gf.AFL(), cut).mean_accuracy
    given_clients = gf.Federation.from_clients({"a": (X[:150], y[:150]), "b": (X[150:], y[150:])})
    one = gf.compare(["afl", "local"], given_clients)
    assert one.mean("afl").standard_error is None
    assert "s.e." not in repr(one)
    assert "One run" in one.to_markdown()
    with pytest.raises(gf.GramfoldError, match="clients were given"):
        gf.compare("afl", given_clients, seeds=3)


def test_federations_come_as_a_list_or_a_function_too(blobs):
    def make(seed: int) -> gf.Federation:
        return gf.Federation.split(*blobs, clients=3, partition="iid", random_state=seed)

    listed, called = gf.compare("afl", [make(3), make(4)]), gf.compare("afl", make, seeds=[3, 4])
    assert listed.values("afl") == called.values("afl")
    assert list(listed.seeds) == list(called.seeds) == [3, 4]


def test_methods_may_have_labels(blobs):
    found = gf.compare({"weak": gf.AFL(penalty=1.0), "strong": gf.AFL(penalty=100.0)}, blobs, 2, clients=3, baseline="strong")
    assert list(found.results) == ["weak", "strong"]
    assert found.to_dict()["methods"][1]["difference"] is None


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((["afl", gf.AFL(penalty=1.0)],), {}, "two methods are called afl; give them labels"),
        (([],), {}, "no method to compare"),
        ((["nothing"],), {}, "unknown method 'nothing'"),
        ((["afl"],), {"baseline": "pace"}, "no method is called 'pace'"),
        ((["afl"],), {"seed": 3}, r"say seeds=\[...\]"),
        ((["afl"],), {"seeds": 0}, "at least one seed"),
        ((["afl"],), {"seeds": [1, 1]}, "each of them once"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(blobs, arguments, options, message):
    with pytest.raises(gf.GramfoldError, match=message):
        gf.compare(*arguments, blobs, **options)


def test_options_of_a_cut_belong_to_arrays(federation):
    with pytest.raises(gf.GramfoldError, match=r"clients is for data given as \(X, y\)"):
        gf.compare("afl", federation, clients=3)
    with pytest.raises(gf.GramfoldError, match="data must be a Federation"):
        gf.compare("afl", [1, 2])


def test_tables_and_data_sets_are_compared_as_they_are(tmp_path):
    pd, rng, frames = pytest.importorskip("pandas"), np.random.default_rng(0), {}
    (tmp_path / "hospitals").mkdir()
    for name in ("north", "south"):
        age, ill = rng.normal(50, 9, 40), rng.integers(0, 2, 40)
        frames[name] = pd.DataFrame({"age": age + 5 * ill, "ill": ill})
        frames[name].to_csv(tmp_path / "hospitals" / f"{name}.csv", index=False)
    folder = tmp_path / "hospitals"
    expected = gf.compare("afl", gf.Federation.from_clients(folder, label_column="ill"), seeds=2).values("afl")
    whole = pd.concat([frame.assign(client=name) for name, frame in frames.items()])
    data = gf.load_data(folder, label_column="ill")
    files = [folder / "north.csv", folder / "south.csv"]
    for tables in (folder, str(folder / "*.csv"), files, frames, whole):
        assert gf.compare("afl", tables, seeds=2, label_column="ill").values("afl") == pytest.approx(expected)
    assert gf.compare("afl", data, seeds=2).values("afl") == pytest.approx(expected)
    assert gf.compare("afl", data, seeds=1, clients=4, partition="iid").results["afl"][0]["clients"][3]["name"] == "3"
    with pytest.raises(gf.GramfoldError, match="no labels"):
        gf.compare("afl", {"north": frames["north"][["age"]], "south": frames["south"][["age"]]})


def test_a_measure_that_nobody_has_is_refused(comparison):
    for ask in (comparison.difference, comparison.mean, comparison.values):
        with pytest.raises(gf.GramfoldError, match="no method has a figure of 'rocauc'; there are accuracy, "):
            ask("local", measure="rocauc")


def test_tables_for_papers(comparison, tmp_path):
    rows = list(csv.DictReader(io.StringIO(comparison.to_csv(tmp_path / "c.csv"))))
    assert [row["method"] for row in rows] == ["afl", "local", "fedhip"]
    assert float(rows[2]["mean_accuracy"]) == comparison.mean("fedhip").mean
    assert float(rows[2]["p_value"]) == comparison.difference("fedhip").p_value
    assert rows[0]["difference"] == ""
    assert (tmp_path / "c.csv").read_text() == comparison.to_csv()
    markdown = comparison.to_markdown().splitlines()
    assert markdown[0].startswith("| method | accuracy % | s.e. | 95 % CI |")
    assert "not corrected" in markdown[-1]
    latex = comparison.to_latex()
    assert latex.count(r"\\") == 4
    assert not re.search(r"(?<!\\)%", "\n".join(latex.splitlines()[2:]))
    assert len(repr(comparison)) < 1500


def test_labels_are_escaped_everywhere(blobs):
    found = gf.compare({"a_b & <i>c</i> | 5%": "afl", "plain": "local"}, blobs, 2, clients=3)
    assert r"a\_b \& $<$i>c$<$/i> | 5\%" in found.to_latex()
    assert "<i>" not in found._repr_html_()
    assert "<i>" not in found.plot()
    assert r"\| 5%" in found.to_markdown()


@pytest.mark.parametrize(("kind", "begins"), [("pdf", b"%PDF-"), ("png", b"\x89PNG\r\n")])
def test_a_plot_for_print_is_what_its_ending_says(comparison, tmp_path, kind, begins):
    pytest.importorskip("matplotlib")
    for name in ("one", "two"):
        comparison.plot(tmp_path / f"{name}.{kind}")
    written = [(tmp_path / f"{name}.{kind}").read_bytes() for name in ("one", "two")]
    assert written[0].startswith(begins)
    assert written[0] == written[1]  # no date: the same figures are the same file
    assert not comparison.plot().startswith("%PDF")


def test_a_plot_of_another_kind_is_refused(comparison, tmp_path):
    for name, said in (("c.jpeg", "not in '.jpeg'"), ("c", "ends in .pdf, .png or .svg")):
        with pytest.raises(gf.GramfoldError, match=said):
            comparison.plot(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_labels_in_a_plot_are_no_formulas(blobs, tmp_path):
    pytest.importorskip("matplotlib")
    gf.compare({"a $x": "afl", "b $_$": "local"}, blobs, 1, clients=3).plot(tmp_path / "c.pdf")
    assert (tmp_path / "c.pdf").stat().st_size > 1000


def test_the_plot_is_an_svg_of_its_own(comparison, tmp_path):
    comparison.plot(tmp_path / "c.svg")
    root = ElementTree.parse(tmp_path / "c.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert sum(part.get("class") == "interval" for part in root.iter()) == 3
    assert sum(part.get("class") == "dot" for part in root.iter()) == 9


def test_a_plot_has_the_titles_of_its_axes_and_nothing_is_cut_off(comparison, tmp_path):
    assert "accuracy %, mean over clients" in comparison.plot()
    image = pytest.importorskip("matplotlib.image")
    comparison.plot(tmp_path / "c.png")
    pixels = image.imread(tmp_path / "c.png")[..., :3].min(-1)
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    assert (border == 1).all()
    ink = np.flatnonzero((pixels < 0.5).any(1))
    assert ink.max() > 0.9 * len(pixels)  # the title under the axis


def test_a_notebook_shows_a_plot(comparison):
    chart = comparison.plot()
    assert chart._repr_svg_() == chart
    ElementTree.fromstring(chart._repr_svg_())


def test_a_frame_of_a_comparison(comparison):
    pytest.importorskip("pandas", reason="frames need pandas")
    frame = comparison.to_frame().set_index("method")
    assert frame.loc["local", "ci_low"] == comparison.mean("local").ci_low


def test_regressions_are_compared_by_their_errors(rng):
    X = rng.standard_normal((80, 4))
    found = gf.compare(["afl", "local"], (X, X @ rng.standard_normal(4)), 2, clients=3, partition="iid", regression=True)
    assert found.figure == "rmse"
    assert "RMSE" in found.to_markdown()
