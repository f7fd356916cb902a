"""Learning the metric of Fourier features: exact sums, whatever the cut; columns with units; estimates that come true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_friedman1

import gramfold as gf
from gramfold.features import MetricMap
from gramfold.federation import Samples, Task
from gramfold.methods import ClientData, learning
from gramfold.methods.learning import Learning, Plan, columns

LEARNED = "bias+linear+fourier:48@learned:1"
APART = {"groups": False, "personal": False}
"""What PACE asks about how clients differ depends on the cut, by nature."""
METHODS = [
    gf.AFL(features=LEARNED), gf.FedHiP(features=LEARNED), gf.APFL(features=LEARNED),
    gf.PACE(features=LEARNED, regime="sum", **APART), gf.PACE(features="columns+" + LEARNED, **APART),
    gf.APFL(features=LEARNED, refinement=LEARNED),
]  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:700, ::2], y[:700]


def cut(X, y, others: int) -> gf.Federation:
    """One client that stays as it is, the rest cut among `others`."""
    owner = np.arange(len(X) - 150) % others
    parts = {f"other {k}": (X[150:][owner == k], y[150:][owner == k]) for k in range(others)}
    return gf.Federation.from_clients({"same": (X[:150], y[:150]), **parts}, test_size=0.0, labels=range(10))


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_head_does_not_depend_on_how_the_others_are_cut(method, rows):
    X, y = rows
    heads = [gf.run(method, cut(X, y, others)).heads["same"] for others in (2, 9)]
    scores = [head.scores(X) for head in heads]
    # the metric is a root of a sum, and what follows a few solves: rounding grows to about 1e-10
    assert np.abs(scores[0] - scores[1]).max() <= 1e-8 * np.abs(scores[0]).max()
    assert isinstance(heads[0].streams[0].map, MetricMap)


def pilot(X: np.ndarray, outputs: int, seed: int = 0) -> tuple[Learning, np.ndarray]:
    """A learning that has come to its gradients, from made-up moments."""
    rng = np.random.default_rng(seed)
    method = gf.AFL(features=f"rows+bias+linear+fourier:{2 * X.shape[1]}@learned:1")
    task = Task(X.shape[1], None, outputs, seed, len(X))
    Y = rng.standard_normal((len(X), outputs))
    broadcast = method.begin(task)
    for _ in range(2):
        broadcast = method.aggregate(method.local(ClientData("all", Samples(X, Y)), broadcast), broadcast)
    assert isinstance(broadcast, Learning)
    assert broadcast.weights is not None
    return broadcast, Y


@settings(max_examples=10, deadline=None)
@given(n=st.integers(12, 40), d=st.integers(2, 6), outputs=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_gradients_moments_are_the_sum_of_outer_products_by_definition(n, d, outputs, seed):
    X = np.random.default_rng(seed).standard_normal((n, d))
    broadcast, Y = pilot(X, outputs, seed)
    upload = broadcast.local(ClientData("all", Samples(X, Y)))
    kept = X[learning.seen(Samples(X, Y))]
    map, step = broadcast.pilot, 1e-5
    at = map.comparable(kept)

    def head(z: np.ndarray) -> np.ndarray:
        parts = [map.plain(z), *(block.map(block.metric.apply(z)) for block in map.blocks)]
        return np.concatenate(parts, axis=1) @ broadcast.weights

    jacobians = np.stack([(head(at + step * e) - head(at - step * e)) / (2 * step) for e in np.eye(d)], axis=1)
    lengths = np.sqrt((jacobians**2).sum(1, keepdims=True))
    jacobians *= np.minimum(1.0, np.sqrt(broadcast.longest) / np.maximum(lengths, 1e-300))
    expected = np.einsum("nio,njo->ij", jacobians, jacobians)
    assert np.abs(upload.gram - expected).max() <= 1e-6 * max(np.abs(expected).max(), 1e-12)  # finite differences


def test_one_random_combination_a_sample_stands_for_many_outputs(rng):
    X = rng.standard_normal((4000, 5))
    broadcast, Y = pilot(X, 20)
    upload = broadcast.local(ClientData("all", Samples(X, Y)))
    kept = X[learning.seen(Samples(X, Y))]
    each = [broadcast.pilot.gradients(kept, np.tile(column, (len(kept), 1))) for column in broadcast.weights.T]
    exact = sum(gradients.T @ gradients for gradients in each)
    assert np.abs(upload.gram - exact).max() < 0.1 * np.abs(exact).max()


def test_uploads_of_parts_add_up_to_that_of_the_whole(rng):
    X = rng.standard_normal((300, 6))
    broadcast, Y = pilot(X, 15)
    whole = broadcast.local(ClientData("all", Samples(X, Y)))
    order = rng.permutation(300)
    parts = [broadcast.local(ClientData(str(k), Samples(X[order[k::7]], Y[order[k::7]]))) for k in range(7)]
    total = parts[0]
    for part in parts[1:]:
        total += part
    np.testing.assert_allclose(total.gram, whole.gram, rtol=0, atol=1e-10 * np.abs(whole.gram).max())


def test_units_of_columns_do_not_matter(monkeypatch):
    monkeypatch.setattr(
        "gramfold.methods.learning.client.seen", lambda train: np.ones(train.n, bool)
    )  # lots do depend on the numbers
    monkeypatch.setattr("gramfold.methods.differences.phase.seen", lambda train: np.ones(train.n, bool))
    X, y = make_friedman1(900, 8, noise=0.5, random_state=0)
    units = np.logspace(-2, 2, 8)
    errors = []
    for scale, shift in ((1.0, 0.0), (units, 100 * units)):
        federation = gf.Federation.split(X * scale + shift, y, clients=4, partition="iid", regression=True, random_state=0)
        errors.append(gf.run(gf.PACE(features="columns+bias+linear+fourier:128@learned:1"), federation).weighted_rmse)
    assert errors[1] == pytest.approx(errors[0], rel=3e-3), "scales are counted in bins"
    assert errors[0] < 2.0, "the mean alone is off by 5"


def test_a_table_is_standardised_and_an_embedding_is_not(rng):
    X, y = make_friedman1(900, 8, random_state=0)
    table = gf.Federation.split(X * np.logspace(-2, 2, 8), y, clients=4, partition="iid", regression=True, random_state=0)
    result = gf.run(gf.PACE(), table)
    assert "centre" in result.heads["0"].streams[0].map.arrays
    assert result.chosen["inputs"] == "standardised columns"
    lengths = np.exp(rng.standard_normal((600, 1)))  # what a sample is, its direction alone says
    centres = rng.standard_normal((3, 8))
    labels = rng.integers(0, 3, 600)
    Z = lengths * (centres[labels] + 0.7 * rng.standard_normal((600, 8)))
    result = gf.run(gf.PACE(), gf.Federation.split(Z, labels, clients=4, partition="iid", random_state=0))
    assert result.chosen["inputs"] == "rows of one length"


def test_clients_of_two_samples_of_one_class_and_late_ones_have_heads(rows):
    X, y = rows
    one_class = np.flatnonzero(y == 3)[:20]
    federation = gf.Federation.from_clients(
        {"two": (X[:2], y[:2]), "one class": (X[one_class], y[one_class]), "most": (X[100:600], y[100:600])},
        test_size=0.0, labels=range(10),
    )  # fmt: skip
    result = gf.run(gf.PACE(features=LEARNED), federation)
    for name in ("two", "one class", "most"):
        assert np.isfinite(result.heads[name].predict_proba(X)).all()
    head = result.join(X[600:650], y[600:650])
    assert (head.predict(X[650:]) == y[650:]).mean() > 0.7


def test_a_learned_head_survives_its_file_and_is_a_torch_module(rows, tmp_path):
    X, y = rows
    result = gf.run(gf.PACE(features=LEARNED), cut(X, y, 3))
    head = result.heads["same"]
    head.save(tmp_path / "head.safetensors")
    loaded = gf.load_head(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), head.predict_proba(X))
    import torch

    np.testing.assert_allclose(head.to_torch()(torch.as_tensor(X)).numpy(), head.scores(X), atol=1e-9)


def test_the_estimate_comes_from_samples_whose_labels_the_features_have_not_seen():
    """Labels that mean nothing: whoever had learned them by heart would promise more than chance."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((2000, 40)), rng.integers(0, 4, 2000)
    result = gf.run(
        gf.PACE(features="rows+bias+linear+fourier:256@learned:1"),
        gf.Federation.split(X, y, clients=4, partition="iid", random_state=0),
    )
    promised = np.mean([client.chosen["leave_one_out_accuracy"] for client in result.clients.values()])
    assert abs(promised - 0.25) < 0.07


def test_what_a_plan_is(rows):
    assert Plan.of("bias+linear") is None
    assert Plan.of("columns+bias+linear+fourier:64@learned:3") == Plan(64, 3, "columns")
    assert (
        gf.AFL(features="rows+bias+linear+fourier:8@learned").rounds,
        gf.AFL(features="rows+bias+linear+fourier:8@learned:2").rounds,
    ) == (2, 6)
    assert gf.AFL(features="bias+linear+fourier:8@learned").rounds == 3 + columns.ROUNDS
    for wrong in ("bias+linear@learned", "bias+linear+fourier:0@learned", "relu:64@learned", "bias+linear+fourier:64@taught"):
        with pytest.raises(gf.GramfoldError, match="@learned"):
            gf.AFL(features=wrong)
    with pytest.raises(gf.GramfoldError, match="@learned"):
        gf.Local(features="bias+linear+fourier:64@learned")


def test_a_learned_model_adds_and_forgets_in_the_features_it_has(rows):
    X, y = rows
    result = gf.run(gf.PACE(features=LEARNED), cut(X, y, 3))
    with pytest.warns(gf.LearnedFeaturesWarning, match="learn=False"):
        fewer = result.forget(X[:150], y[:150], "same")
    assert fewer.global_head.streams[0].map.fingerprint == result.global_head.streams[0].map.fingerprint
    again = fewer.update(add={"same": (X[:150], y[:150])})
    np.testing.assert_allclose(again.global_head.scores(X), result.global_head.scores(X), atol=1e-6)


def test_rows_or_columns_are_judged_by_features_that_curve(rng):
    """Neither way of making inputs comparable has a linear part: only together do two columns tell the classes apart."""
    X = rng.standard_normal((500, 5))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    result = gf.run(gf.PACE(), gf.Federation.split(X + 5, y, clients=4, partition="iid", random_state=0))
    assert result.chosen["inputs"] == "standardised columns"
    assert result.mean_accuracy > 0.75


def test_one_wild_cell_does_not_lead_a_table_astray(rng):
    X = rng.standard_normal((1200, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(1200)
    X[rng.integers(0, 1200, 12), 2] = 1e3 * rng.standard_normal(12)  # a column that says nothing
    result = gf.run(gf.PACE(), gf.Federation.split(X, y, clients=3, partition="iid", regression=True, random_state=0))
    assert result.weighted_rmse < 0.3


@pytest.mark.parametrize("times", [3.0, 1e6])
def test_one_client_with_other_units_costs_the_others_little(times):
    """By mistake, or to do harm: an eighth of all samples, every column so many times too large."""
    X, y = make_friedman1(1600, 10, noise=1.0, random_state=0)
    X *= np.logspace(-2, 2, 10)
    owner = np.arange(1600) % 8
    errors = []
    for factor in (1.0, times):
        clients = {f"{k}": (X[owner == k] * (factor if k == 0 else 1.0), y[owner == k]) for k in range(8)}
        result = gf.run(gf.PACE(), gf.Federation.from_clients(clients, test_size=0.25, regression=True))
        errors.append(np.mean([client.rmse for name, client in result.clients.items() if name != "0"]))
    assert errors[1] < 1.4 * errors[0]


def test_ordinary_data_that_nobody_thinks_of_has_a_model(rng):
    X = rng.standard_normal((400, 5))
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    odd = {
        "constant columns": np.c_[X, np.ones(400), np.full(400, 1e9)],
        "one column": X[:, :1],
        "whole numbers": (10 * X).astype(int),
        "yes and no": X > 0,
        "wild cells": np.where(rng.random(X.shape) < 0.01, 1e12, X),
    }
    for name, Z in odd.items():
        result = gf.run(gf.PACE(), gf.Federation.split(Z, y, clients=3, partition="iid", random_state=0))
        assert result.mean_accuracy > max(y.mean(), 1 - y.mean()) - 0.05, name
    three = {str(k): (X[3 * k : 3 * k + 3], y[3 * k : 3 * k + 3]) for k in range(40)}
    heads = gf.run(gf.PACE(), gf.Federation.from_clients(three, test_size=0.0, labels=[0, 1])).heads
    assert np.mean([(head.predict(X[200:]) == y[200:]).mean() for head in heads.values()]) > 0.7
