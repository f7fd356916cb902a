"""How far clients' own offsets and slopes lie apart, found in PACE's rounds: and every law of differences, with groups and with
what is personal, on the other engine and as a program."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramfold as gf
from flower_cases import Sites
from gramfold.export import write_onnx
from gramfold.methods.differences.effects import CONFIDENCE
from gramfold.methods.pace.candidates import PARTS
from gramfold.methods.pace.effects import OwnEffects
from gramfold.solve.random_effects import left_out

OFFSET, SLOPE = 1.5, 1.0


def _rows(rng: np.random.Generator, n: int, differ: bool) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, 4))
    own = rng.standard_normal(2) * [OFFSET, SLOPE] if differ else np.zeros(2)
    return X, X @ [1.0, -1.0, 0.5, 0.0] + own[0] + own[1] * X[:, 0] + rng.standard_normal(n)


@cache
def lines(differ: bool = True, count: int = 40, n: int = 12) -> gf.Federation:
    """Small clients, each with an offset and a slope of its own; or all alike."""
    rng = np.random.default_rng(1)
    clients = {}
    for i in range(count):
        X, y = _rows(rng, n + 40, differ)
        clients[f"{i:02d}"] = X[:n], y[:n], X[n:], y[n:]
    return gf.Federation.from_clients(clients, regression=True)


@cache
def places() -> gf.Federation:
    """Classes that lie elsewhere in each of two groups."""
    rng = np.random.default_rng(2)
    clients = {}
    for i in range(8):
        centres = 1.5 * np.random.default_rng(i % 2).standard_normal((4, 6))
        codes = rng.integers(0, 4, 90)
        X = centres[codes] + (i % 2) + rng.standard_normal((90, 6))
        clients[f"{i}"] = X[:60], codes[:60], X[60:], codes[60:]
    return gf.Federation.from_clients(clients, labels=[0, 1, 2, 3])


@cache
def found(differ: bool = True) -> gf.Result:
    return gf.run(gf.PACE(), lines(differ))


GROUPED = gf.PACE(features="bias+linear", groups=True)
BY_HAND = gf.PACE(features="bias+linear", groups={f"{i}": f"scanner {i % 2}" for i in range(6)})


def predictions(result: gf.Result, federation: gf.Federation) -> np.ndarray:
    return np.concatenate([result.heads[client.name].scores(client.test().inputs) for client in federation])


def test_variances_are_about_those_that_were_drawn():
    varied = found().chosen["variances"]
    assert varied["offset"] == pytest.approx(OFFSET**2, rel=0.6)
    assert varied["0"] == pytest.approx(SLOPE**2, rel=0.6)
    assert varied.get("3", 0.0) < 0.1
    assert found().chosen["residual_variance"] == pytest.approx(1.0, rel=0.2)


def test_small_clients_are_the_better_for_effects_that_are_shrunk_as_clients_differ():
    without = gf.run(gf.PACE(parts=PARTS), lines())
    assert found().mean_rmse < 0.93 * without.mean_rmse
    assert found().mean_rmse < gf.run(gf.Local(), lines()).mean_rmse
    assert np.mean([client.chosen["effects"] for client in found().clients.values()]) > 0.5


def test_where_clients_are_alike_nothing_is_found_and_no_round_is_lost():
    assert "variances" not in found(False).chosen
    assert all("effects" not in client.chosen for client in found(False).clients.values())
    assert found(False).rounds < found().rounds


def test_deviations_lie_within_their_intervals_as_often_as_promised():
    rng, right = np.random.default_rng(1), []
    for client in lines():
        X = rng.standard_normal((52, 4))
        own = rng.standard_normal(2)
        rng.standard_normal(52)
        value, sure = found().heads[client.name].chosen["deviations"]["0"]
        right.append(abs(value - own[1] * SLOPE) < sure)
        assert X.shape == (52, 4)
    assert np.mean(right) > 0.85


def test_intervals_of_small_clients_are_as_wide_as_the_variances_have_them():
    """Too few samples for a quantile of their own errors: the shared head's are twice as wide as they need to be."""
    final: Any = found().run.broadcast
    covered, widths, shared = [], [], final.pooled.spread[0]
    for client in lines():
        test = client.test()
        low, high = found().heads[client.name].predict_interval(test.inputs, 0.95).T
        covered.append(np.mean((low <= test.targets[:, 0]) & (test.targets[:, 0] <= high)))
        widths.append(float(np.mean(high - low)))
    assert 0.9 < np.mean(covered) < 0.98
    assert np.mean(widths) < 0.75 * 2 * CONFIDENCE * shared


def test_every_sample_is_left_out_of_the_mixed_model():
    final: Any = found().run.broadcast
    effects = final.found.effects
    client = next(iter(lines()))
    rows, targets = effects.plain(client.train().inputs), np.asarray(client.train().targets)
    told, weights = effects.alone(rows, targets, True)
    wanted, _ = left_out(rows, targets, effects.by_column, effects.fit, True)
    np.testing.assert_allclose(told, wanted)
    # beside something else: a ridge whose penalties are one over the variances, solved without the sample
    beside, _ = effects.beside(rows, targets)
    rest = np.arange(12) != 3
    root = np.sqrt(effects.by_column)
    along = rows * root
    again = np.linalg.solve(along[rest].T @ along[rest] + np.eye(len(root)), along[rest].T @ targets[rest])
    np.testing.assert_allclose(beside[3], along[3] @ again, atol=1e-9)
    assert weights.shape == (5, 1)


# --- laws ---


def test_clients_in_another_order_have_the_same_effects():
    turned = {c.name: (c.train().inputs, c.train().targets, *c.test()) for c in reversed(list(lines()))}
    method = gf.PACE(parts=(*PARTS, OwnEffects()))
    one, other = gf.run(method, lines()), gf.run(method, gf.Federation.from_clients(turned, regression=True))
    np.testing.assert_allclose(predictions(other, lines()), predictions(one, lines()), atol=1e-7)


def test_a_secure_sum_finds_the_same_effects():
    method = gf.PACE(features="columns+bias+linear+fourier:32@learned", personal=True, parts=(*PARTS, OwnEffects()))
    plain, secure = gf.run(method, lines()), gf.run(method, lines(), secure=gf.SecureSum())
    assert secure.chosen["variances"] == pytest.approx(plain.chosen["variances"], rel=1e-4)
    np.testing.assert_allclose(predictions(secure, lines()), predictions(plain, lines()), atol=2e-2)


def test_a_late_client_has_effects_of_its_own():
    rng = np.random.default_rng(7)
    X, y = _rows(rng, 200, True)
    head = found().join(X[:12], y[:12], "late")
    everybody = found().global_head
    assert head.chosen["effects"] > 0
    assert np.mean((head.predict(X[12:]) - y[12:]) ** 2) < np.mean((everybody.predict(X[12:]) - y[12:]) ** 2)


def test_forgetting_says_that_effects_were_found_with_the_samples():
    with pytest.warns(gf.LearnedFeaturesWarning, match="personal=False"):
        left = found().without("00", lines())
    assert "00" not in left.clients


def test_a_saved_run_has_its_effects(tmp_path):
    found().save(tmp_path / "run")
    back = gf.load_result(tmp_path / "run")
    assert back.chosen["variances"] == found().chosen["variances"]
    client = next(iter(lines()))
    train, X = client.train(), client.test().inputs
    one, two = (each.join(train.inputs, train.targets[:, 0]).scores(X) for each in (back, found()))
    np.testing.assert_allclose(one, two, atol=1e-12)


@pytest.mark.parametrize(("federation", "method"), [(lines, gf.PACE()), (places, GROUPED)], ids=["effects", "groups"])
def test_a_head_is_a_program(federation, method, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    result = gf.run(method, federation())
    client = next(iter(federation()))
    head, X = result.heads[client.name], client.test().inputs
    assert "group" in head.chosen or head.chosen["effects"] > 0
    write_onnx(head, tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "head.onnx", providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    wanted = head.predict_proba(X) if head.labels is not None else head.scores(X)
    answers = session.run(None, {given.name: X.astype(np.float64 if "double" in given.type else np.float32)})
    apart = [np.abs(each.reshape(wanted.shape) - wanted).max() for each in answers if each.size == wanted.size]
    assert min(apart) < 1e-4  # one of its outputs: scores are another


@pytest.mark.parametrize(
    "method", [gf.PACE(), GROUPED, BY_HAND, gf.MixedModel()], ids=["personal", "groups", "groups by hand", "mixed model"]
)
def test_over_flower_clients_differ_as_in_process(method, tmp_path: Path):
    grouped = method in (GROUPED, BY_HAND)
    federation = places() if grouped else lines(True, 12, 60)
    expected, sites = gf.run(method, federation), Sites(tmp_path, federation)
    told = sites.run(method)["methods"][0]
    # values up to 10, after passes of a kernel ridge each, of which a metric is made, of which features are made
    assert sites.distance(method, expected) < (1e-8 if grouped else 1e-3)
    asked = "groups" if grouped else "variances"
    assert told["chosen"][asked] == pytest.approx(expected.chosen[asked])
    assert all("deviations" not in client["chosen"] for client in told["clients"])  # these stay at their site


def test_groups_are_updated_and_a_client_of_a_group_grows():
    result = gf.run(GROUPED, places())
    assert result.chosen["groups"] == 2
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 4, 60)
    X = 1.5 * np.random.default_rng(0).standard_normal((4, 6))[codes] + rng.standard_normal((60, 6))
    later = result.update(add={"new": (X, codes)})
    assert later.run.total.n == result.run.total.n + 60
    group = result.groups["0"]
    assert later.run.total.of_group(group).n == result.run.total.of_group(group).n + 60
