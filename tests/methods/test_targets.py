"""Several labels a sample, ordered classes, counts: what is folded is what pooled data gives, heads say what is of that kind."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, mean_poisson_deviance

import gramfold as gf
from gramfold.heads.ordered import monotone
from gramfold.heads.several import SeveralLabels
from gramfold.methods import on_targets
from gramfold.methods.targets.counts import Counting, chosen_link
from gramfold.moments import Moments

FAST = settings(max_examples=8)
PACE = gf.PACE(features="bias+linear")
METHODS = (PACE, gf.AFL(), gf.FedHiP(), gf.APFL(), gf.Local())
LABELS = ("loud", "rock", "sad")
SUMS = 1e-8  # two orders of one sum of a few hundred samples, and a solve with a condition below 1e4


def made(kind: str, n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    scores = X @ np.random.default_rng(1).standard_normal((6, 3))
    if kind == "labels":
        return X, (scores + rng.standard_normal((n, 3)) > 1).astype(int)
    if kind == "ordered":
        return X, np.array(["low", "mid", "high"])[np.digitize(scores[:, 0] + rng.standard_normal(n), [-1, 1])]
    return X, rng.poisson(np.exp(0.3 * scores[:, 0] + 0.5))


def cut(kind: str, parts: list[np.ndarray], seed: int = 0) -> gf.Federation:
    """Clients with these rows of the same samples; each tests on all."""
    X, y = made(kind, seed=seed)
    order = {"ordered": ["low", "mid", "high"]}.get(kind)
    clients = {str(k): (X[rows], y[rows], X, y) for k, rows in enumerate(parts)}
    return gf.Federation.from_clients(clients, targets=kind, labels=order)


def parts_of(n: int, clients: int, seed: int) -> list[np.ndarray]:
    return [np.sort(part) for part in np.array_split(np.random.default_rng(seed).permutation(n), clients)]


@pytest.mark.parametrize("kind", ["labels", "ordered", "counts"])
@pytest.mark.parametrize("method", [PACE, gf.AFL()], ids=["pace", "afl"])
@FAST
@given(clients=st.integers(2, 6), seed=st.integers(0, 99))
def test_the_shared_head_is_that_of_pooled_data_however_it_is_cut(kind, method, clients, seed):
    X, _ = made(kind)
    pooled = gf.run(method, cut(kind, [np.arange(240)])).global_head
    folded = gf.run(method, cut(kind, parts_of(240, clients, seed))).global_head
    np.testing.assert_allclose(folded.scores(X), pooled.scores(X), rtol=SUMS, atol=SUMS)


@pytest.mark.parametrize("kind", ["labels", "ordered", "counts"])
@FAST
@given(clients=st.integers(3, 5), seed=st.integers(0, 99))
def test_a_client_s_head_does_not_depend_on_how_the_others_are_cut(kind, clients, seed):
    X, _ = made(kind)
    mine, rest = np.arange(60), np.arange(60, 240)
    one = gf.run(PACE, cut(kind, [mine, rest])).heads["0"]
    many = gf.run(PACE, cut(kind, [mine, *(rest[part] for part in parts_of(180, clients, seed))])).heads["0"]
    np.testing.assert_allclose(many.scores(X), one.scores(X), rtol=SUMS, atol=SUMS)


@pytest.mark.parametrize("kind", ["labels", "ordered", "counts"])
@pytest.mark.parametrize("method", [PACE, gf.AFL()], ids=["pace", "afl"])
def test_forgetting_a_client_is_never_having_seen_it(kind, method):
    X, y = made(kind)
    parts = parts_of(240, 4, 0)
    result = gf.run(method, cut(kind, parts)).forget(X[parts[3]], y[parts[3]], "3")
    never = gf.run(method, cut(kind, parts[:3]))
    np.testing.assert_allclose(result.global_head.scores(X), never.global_head.scores(X), rtol=SUMS, atol=SUMS)
    again = result.update(add={"3": (X[parts[3]], y[parts[3]])})
    all_four = gf.run(method, cut(kind, parts))
    np.testing.assert_allclose(again.global_head.scores(X), all_four.global_head.scores(X), rtol=SUMS, atol=SUMS)
    mine = again.personalize(X[parts[0]], y[parts[0]], "0")
    np.testing.assert_allclose(mine.scores(X), all_four.heads["0"].scores(X), rtol=SUMS, atol=SUMS)


def test_a_label_s_head_is_pace_s_of_two_classes_at_the_same_penalty():
    X, Y = made("labels")
    parts = parts_of(240, 3, 0)
    several = gf.run(PACE, cut("labels", parts))
    penalty = several.chosen["penalty"]
    clients = {str(k): (X[rows], Y[rows, 1], X, Y[:, 1]) for k, rows in enumerate(parts)}
    alone = gf.run(replace(PACE, penalty=penalty), gf.Federation.from_clients(clients)).heads["0"]
    head = several.heads["0"]
    assert isinstance(head, SeveralLabels)
    np.testing.assert_allclose(head.parts[1].scores(X), alone.scores(X), rtol=SUMS, atol=SUMS)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("kind", ["labels", "ordered", "counts"])
def test_every_analytic_method_serves_it_and_its_run_and_heads_are_files(kind, method, tmp_path):
    X, y = made(kind)
    result = gf.run(method, cut(kind, parts_of(240, 3, 0)))
    result.save(tmp_path / "run")
    loaded = gf.load_result(tmp_path / "run")
    assert loaded.to_dict()["measures"] == result.to_dict()["measures"]
    for name, head in result.heads.items():
        np.testing.assert_array_equal(loaded.heads[name].predict(X), head.predict(X))
        np.testing.assert_array_equal(loaded.heads[name].scores(X), head.scores(X))
    late, later = result.join(X[:40], y[:40], "late"), loaded.join(X[:40], y[:40], "late")
    np.testing.assert_allclose(late.scores(X), later.scores(X), rtol=1e-12, atol=1e-12)
    assert loaded.run.task == result.run.task


# --- several labels ---


def test_figures_of_several_labels_are_scikit_learn_s():
    X, Y = made("labels")
    result = gf.run(PACE, cut("labels", parts_of(240, 3, 0)))
    head, client = result.heads["0"], result.clients["0"]
    shares, said = head.predict_proba(X), head.predict(X)
    assert client.average_precision == pytest.approx(average_precision_score(Y, shares, average="macro"))
    assert client.f1 == pytest.approx(f1_score(Y, said, average="macro"))
    assert client.accuracy == pytest.approx(head.score(X, Y)) == pytest.approx((said == Y).all(1).mean())
    assert result.measures == ["average_precision", "f1", "log_loss", "accuracy"]
    assert ((shares > 0) & (shares < 1)).all()
    low, high = client.intervals["average_precision"]
    assert low < client.average_precision < high
    assert "AP" in str(result)


def test_lists_of_labels_rows_and_frames_are_the_same_targets():
    import pandas as pd

    X, Y = made("labels")
    sets = [{LABELS[j] for j in np.flatnonzero(row)} for row in Y]
    frame = pd.DataFrame(Y, columns=list(LABELS))
    tasks = [gf.Federation.split(X, y, clients=3).task for y in (sets, [sorted(one) for one in sets], frame)]
    assert {task.names for task in tasks} == {LABELS}
    heads = [gf.run(PACE, gf.Federation.split(X, y, clients=3)).global_head.scores(X) for y in (sets, frame, Y)]
    np.testing.assert_array_equal(heads[0], heads[1])
    np.testing.assert_array_equal(heads[0], heads[2])
    found = gf.run(PACE, gf.Federation.from_clients({"a": (X[:120], sets[:120]), "b": (X[120:], sets[120:])})).heads["a"]
    assert isinstance(found, SeveralLabels)
    assert set(found.predict_sets(X)[0]) == {LABELS[j] for j in np.flatnonzero(found.predict(X)[0])}


def test_thresholds_are_those_of_the_best_left_out_f1():
    """On a rare label a half is far from the best threshold."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    Y = (X[:, :2] + 1.5 * rng.standard_normal((3000, 2)) > 2.6).astype(int)
    federation = gf.Federation.split(X, Y, clients=3, targets="labels")
    result = gf.run(PACE, federation)
    tests = [(result.heads[client.name], client.test()) for client in federation]
    at_a_half = [f1_score(test.targets, head.predict_proba(test.inputs) >= 0.5, average="macro") for head, test in tests]
    assert result.mean_f1 > np.mean(at_a_half) + 0.1


def test_a_label_that_a_client_has_never_seen_is_unlikely_there_and_not_impossible():
    X, Y = made("labels")
    Y = Y.copy()
    Y[:80, 2] = 0
    clients = {"never": (X[:80], Y[:80]), "often": (X[80:], Y[80:])}
    head = gf.run(PACE, gf.Federation.from_clients(clients, targets="labels")).heads["never"]
    shares = head.predict_proba(X)[:, 2]
    assert shares.min() > 0
    assert shares.mean() < Y[80:, 2].mean() / 2


def test_explanations_are_of_one_label():
    X, Y = made("labels")
    head = gf.run(PACE, gf.Federation.split(X, Y, clients=3)).heads["0"]
    assert head.explain(X[:2], of=1) is not None
    with pytest.raises(gf.GramfoldError, match="say which label is to be explained"):
        head.explain(X[:2])


# --- ordered classes ---


def test_the_order_of_a_categorical_is_kept():
    import pandas as pd

    X, y = made("ordered")
    ordered = pd.Series(pd.Categorical(y, ["low", "mid", "high"], ordered=True))
    federation = gf.Federation.split(X, ordered, clients=3, partition="iid")
    assert federation.task.labels == ("low", "mid", "high")
    result = gf.run(PACE, federation)
    assert result.measures[:3] == ["accuracy", "rank_error", "rps"]
    assert result.mean_rank_error < 0.6
    given_alike = gf.Federation.from_clients({"a": (X[:120], ordered[:120]), "b": (X[120:], ordered[120:])})
    assert given_alike.task.labels == ("low", "mid", "high")
    turned = pd.Series(pd.Categorical(y, ["high", "mid", "low"], ordered=True))
    with pytest.raises(gf.GramfoldError, match="order their classes differently"):
        gf.Federation.from_clients({"a": (X[:120], ordered[:120]), "b": (X[120:], turned[120:])})


def test_probabilities_respect_the_order_and_measures_are_of_ranks():
    X, y = made("ordered")
    result = gf.run(PACE, cut("ordered", parts_of(240, 3, 0)))
    head, client = result.heads["0"], result.clients["0"]
    shares, codes = head.predict_proba(X), np.array([["low", "mid", "high"].index(label) for label in y])
    np.testing.assert_allclose(shares.sum(1), 1)
    assert client.rank_error == pytest.approx(np.abs(shares.argmax(1) - codes).mean())
    above, lies = 1 - shares.cumsum(1)[:, :-1], codes[:, None] > np.arange(2)
    assert client.rps == pytest.approx(((above - lies) ** 2).sum(1).mean())
    assert gf.run(gf.AFL(), cut("ordered", parts_of(240, 3, 0))).mean_rps > 0


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=5))
def test_monotone_probabilities_never_rise_and_change_nothing_that_does_not(rows):
    found = monotone(np.array(rows))
    assert (np.diff(found, axis=1) <= 1e-15).all()
    np.testing.assert_allclose(monotone(found), found, atol=1e-15)


# --- counts ---


def test_counts_are_never_negative_and_their_deviance_is_scikit_learn_s():
    X, y = made("counts")
    for method in METHODS:
        result = gf.run(method, cut("counts", parts_of(240, 3, 0)))
        told = result.heads["0"].predict(X)
        assert told.min() >= 0
        expected = mean_poisson_deviance(y, np.maximum(told, 1e-3))
        assert result.clients["0"].deviance == pytest.approx(expected)
    head = gf.run(PACE, cut("counts", parts_of(240, 3, 0))).heads["0"]
    ends = head.predict_interval(X)
    assert (ends[:, 0] >= 0).all()
    assert np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_the_link_is_that_of_the_scale_on_which_counts_are_linear(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([np.ones((3000, 1)), rng.uniform(-1, 1, (3000, 3))], axis=1)
    straight = X @ [3.0, 0.5, 0.5, 0.5]
    counts = {
        "log": rng.poisson(rng.gamma(2, np.exp(straight) / 2)),  # spreads as its mean does
        "root": rng.poisson(straight**2 * 4),  # a Poisson's spread, around the square of a line
        "identity": np.rint(10 + 15 * straight + 2 * rng.standard_normal(3000)).astype(int),  # the same spread everywhere
    }
    method = on_targets(gf.AFL(), gf.Federation.split(X, counts["log"], clients=2, targets="counts").task)
    assert isinstance(method, Counting)
    for link, y in counts.items():
        assert chosen_link(Moments.from_features(X, method.columns(y[:, None].astype(float))))[0] == link


def test_the_mean_count_is_right_on_a_curved_scale():
    """Values that lie around a logarithm have a larger mean than what the logarithm's mean stands for."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3))
    y = rng.poisson(rng.gamma(2, np.exp(1.5 + 0.3 * X[:, 0]) / 2))
    head = gf.run(PACE, gf.Federation.split(X, y, clients=2, targets="counts")).global_head
    assert head.predict(X).mean() == pytest.approx(y.mean(), rel=0.1)


# --- what is refused, in one line ---


def test_what_is_not_served_is_said_in_one_line():
    X, Y = made("labels")
    times = np.array([(True, 3.0)] * 240, dtype=[("event", "?"), ("time", "f8")])
    with pytest.raises(gf.GramfoldError, match=r"survival times .* are not served yet"):
        gf.Federation.split(X, times)
    with pytest.raises(gf.GramfoldError, match="survival"):
        gf.Federation.from_clients({"a": (X, times), "b": (X, times)})
    with pytest.raises(gf.GramfoldError, match="survival"):
        gf.Federation.split(X, Y[:, 0], targets="survival")
    with pytest.raises(gf.GramfoldError, match=r"for one-hot rows use .argmax\(1\)"):
        gf.Federation.split(X, np.eye(3, dtype=int)[Y[:, 0]])
    with pytest.raises(gf.GramfoldError, match="for values use regression=True"):
        gf.Federation.split(X, X[:, :2])
    with pytest.raises(gf.GramfoldError, match="ordered classes that are words need their order"):
        gf.Federation.split(X, made("ordered")[1], targets="ordered")
    with pytest.raises(gf.GramfoldError, match="counts are whole numbers from 0 up, and sample 0 has -1"):
        gf.Federation.split(X, np.full(240, -1), targets="counts")
    with pytest.raises(gf.GramfoldError, match="fedcgs does not serve several labels a sample; use pace"):
        gf.run("fedcgs", gf.Federation.split(X, Y, clients=3))
    with pytest.raises(gf.GramfoldError, match="groups is for classes and values"):
        gf.run(gf.PACE(groups=True), gf.Federation.split(X, Y, clients=3))
    with pytest.raises(gf.GramfoldError, match="sample 1 has 2 for label 0"):
        gf.Federation.split(X[:2], [[1, 0], [2, 1]], targets="labels")
