"""Heads of tables whose features were learned: what two classes' scores mean, how far a regression goes, and both as files."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss

import gramfold as gf
from gramfold.export import onnx_model
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.evidence import LogOdds


def drawn(rng, n: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns in their own units, and the probability of the second class along a curve."""
    X = rng.standard_normal((n, 3)) * [1.0, 100.0, 0.01]
    chances = 1 / (1 + np.exp(-4 * np.sin(2 * X[:, 0]) - X[:, 1] / 100))
    return X, (rng.random(n) < chances).astype(int), chances


@pytest.fixture(scope="module")
def two_classes():
    rng = np.random.default_rng(0)
    X, y, _ = drawn(rng)
    site = np.arange(len(X)) % 4
    parts = {str(s): (X[site == s], y[site == s]) for s in range(4)}
    return gf.run(gf.PACE(), gf.Federation.from_clients(parts, test_size=0.0)), drawn(rng, 3000)


def test_probabilities_of_two_classes_are_near_the_true_ones(two_classes):
    result, (X, y, chances) = two_classes
    least = log_loss(y, chances)
    for head in (result.global_head, *result.heads.values()):
        assert log_loss(y, head.predict_proba(X)[:, 1]) < least + 0.06


def test_they_are_the_same_in_other_programs(two_classes, tmp_path):
    result, (X, *_) = two_classes
    head, probe = result.heads["0"], X[:40]
    assert head.chosen["log_odds"] > 0.3  # scores are probabilities
    np.testing.assert_allclose(gf.Head.unpack(head.pack()).scores(probe), head.scores(probe), atol=1e-12)
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(onnx_model(head).SerializeToString(), providers=["CPUExecutionProvider"])
    (scores,) = session.run(["scores"], {session.get_inputs()[0].name: probe.astype(np.float32)})
    np.testing.assert_allclose(scores, head.scores(probe.astype(np.float32)), atol=1e-5)
    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(head.to_torch()(torch.as_tensor(probe)).numpy(), head.scores(probe), atol=1e-9)


def test_a_score_as_a_probability_says_its_log_odds_and_little_beyond():
    discriminant = Discriminant(np.array([0.7, 0.3]), np.array([[-1.0], [1.0]]), np.array([[-0.3], [0.7]]))
    likely = np.array([0.3, 0.5, 0.9, 0.98, 1.0, 1.5, -1.0])
    said = LogOdds()(discriminant.place(np.column_stack([1 - likely, likely])))
    odds = said[:, 1] - said[:, 0]
    inside = likely[:4]
    np.testing.assert_allclose(odds[:4], np.log(inside / (1 - inside) * 0.7 / 0.3), atol=1e-9)
    assert odds[3] < odds[4] < odds[5] < odds[3] + 4
    assert odds[6] > -10


def test_a_regression_ends_a_little_beyond_what_its_client_has_seen(rng):
    X = rng.standard_normal((300, 2))
    y = 3 * X[:, 0] + 0.1 * rng.standard_normal(300)
    parts = {"a": (X[:150], y[:150]), "b": (X[150:], y[150:])}
    head = gf.run(gf.PACE(), gf.Federation.from_clients(parts, regression=True, test_size=0.0)).heads["a"]
    for far, seen in zip(head.predict(np.array([[1e6, 0.0], [-1e6, 0.0]])), (y[:150].max(), y[:150].min()), strict=True):
        assert abs(far - seen) < 1.5
    again = gf.Head.unpack(head.pack())
    np.testing.assert_array_equal(again.predict(X), head.predict(X))
    packet = head.pack()
    broken = replace(packet, arrays={**packet.arrays, "bounds": packet["bounds"][:, ::-1]})
    with pytest.raises(gf.GramfoldError, match="bounds"):
        gf.Head.unpack(broken)


def test_where_all_there_is_goes_along_straight_lines_curved_features_cost_nothing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 30))
    weights = rng.standard_normal(30)
    y = X @ weights + rng.standard_normal(900)
    federation = gf.Federation.split(X[:600], y[:600], clients=3, partition="iid", regression=True, test_size=0.0)
    spec = "bias+columns+fourier:256:0.5"
    straight, curved = (gf.run(gf.PACE(features=each), federation) for each in ("bias+columns", spec))
    alike = gf.run(gf.PACE(features=spec, penalty=curved.chosen["penalty"]), federation)

    def off(result: gf.Result) -> float:
        return float(np.sqrt(np.mean((np.asarray(result.global_head.predict(X[600:])).reshape(-1) - y[600:]) ** 2)))

    assert curved.chosen["curves_dearer"] >= 100
    assert "curves_dearer" not in alike.chosen
    assert off(curved) < 1.02 * off(straight) < 0.98 * off(alike)


def test_where_it_curves_curved_features_are_no_dearer():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 3))
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + 0.1 * rng.standard_normal(600)
    federation = gf.Federation.split(X, y, clients=3, partition="iid", regression=True, test_size=0.0)
    assert "curves_dearer" not in gf.run(gf.PACE(features="bias+columns+fourier:256:1"), federation).chosen
