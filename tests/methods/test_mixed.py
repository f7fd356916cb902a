"""The mixed model over clients: what programs for pooled rows print, and the intervals that it promises."""

import numpy as np
import pytest

import gramfold as gf

Table = dict[str, tuple[np.ndarray, np.ndarray]]


def drawn(seed: int = 0, clients: int = 40, spreads: tuple[float, ...] = (1.5, 0.6, 0.0), noise: float = 1.0) -> Table:
    """An offset and a slope of each client's own; `spreads` are in the columns' units."""
    rng = np.random.default_rng(seed)
    made = {}
    for k in range(clients):
        n = int(rng.integers(5, 30))
        X = rng.standard_normal((n, len(spreads) - 1)) * [1.0, 10.0] + [0.0, 100.0]
        own = rng.standard_normal(len(spreads)) * spreads
        centred = np.column_stack([np.ones(n), X - [0.0, 100.0]])
        made[f"client {k:03d}"] = X, centred @ (np.array([3.0, 1.0, -0.2]) + own) + noise * rng.standard_normal(n)
    return made


def run(data: Table, **options: object) -> gf.Result:
    federation = gf.Federation.from_clients(data, regression=True, test_size=0.0)
    return gf.run(gf.MixedModel(**options), federation)


def test_it_is_what_statsmodels_finds_in_pooled_rows():
    models = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    data = drawn()
    result = run(data, slopes=False)
    X, y = (np.concatenate(parts) for parts in zip(*data.values(), strict=True))
    owner = np.repeat(list(data), [len(rows) for rows, _ in data.values()])
    centred = np.column_stack([np.ones(len(X)), X - X.mean(0)])
    theirs = models.MixedLM(y, centred, groups=owner).fit(reml=True, gtol=1e-9)
    ours = result.chosen
    assert ours["residual_variance"] == pytest.approx(theirs.scale, rel=1e-4)
    assert ours["variances"]["offset"] == pytest.approx(float(np.asarray(theirs.cov_re)[0, 0]), rel=1e-3)
    assert ours["log_likelihood"] == pytest.approx(theirs.llf, abs=1e-4)
    for j, name in enumerate(("offset", "0", "1")):
        estimate, reach = ours["fixed"][name]
        assert estimate == pytest.approx(theirs.fe_params[j], rel=1e-4)
        assert reach / 1.959964 == pytest.approx(theirs.bse_fe[j], rel=1e-3)
    for name, effect in theirs.random_effects.items():
        found, reach = result.heads[name].chosen["deviations"]["offset"]
        assert found == pytest.approx(float(np.asarray(effect)[0]), abs=1e-3)
        conditional = float(np.sqrt(np.asarray(theirs.random_effects_cov[name])[0, 0]))
        assert conditional <= 1.001 * reach / 1.959964  # ours knows that the fixed effects are estimates, too


def test_variances_are_found_and_what_does_not_vary_is_left_alone():
    found = run(drawn(clients=300)).chosen["variances"]
    assert found["offset"] == pytest.approx(1.5**2, rel=0.25)
    assert found["0"] == pytest.approx(0.6**2, rel=0.25)
    assert found["1"] < 2e-4


def test_where_clients_are_alike_it_is_least_squares_of_all_rows():
    data = drawn(seed=7, spreads=(0.0, 0.0, 0.0), clients=8)
    result = run(data, slopes=False)
    X, y = (np.concatenate(parts) for parts in zip(*data.values(), strict=True))
    assert result.chosen["variances"]["offset"] == 0.0
    rows = np.column_stack([np.ones(len(X)), X])
    pooled = rows @ np.linalg.lstsq(rows, y, rcond=None)[0]
    for head in (result.global_head, *result.heads.values()):
        np.testing.assert_allclose(np.asarray(head.predict(X)).reshape(-1), pooled, rtol=1e-8)


def test_deviations_and_predictions_lie_within_their_intervals_as_often_as_promised():
    rng = np.random.default_rng(3)
    data, truth, later = {}, {}, {}
    for k in range(400):
        X, own = rng.standard_normal((14, 2)), rng.standard_normal(3) * [1.0, 0.5, 0.3]
        y = np.column_stack([np.ones(14), X]) @ (np.array([1.0, 2.0, 3.0]) + own) + rng.standard_normal(14)
        data[str(k)], truth[str(k)], later[str(k)] = (X[:10], y[:10]), own, (X[10:], y[10:])
    result = run(data)
    inside = []
    for name, head in result.heads.items():
        told = head.chosen["deviations"]
        inside.append([abs(told[key][0] - truth[name][j]) <= told[key][1] for j, key in enumerate(("offset", "0", "1"))])
    assert np.abs(np.mean(inside, axis=0) - 0.95).max() < 0.035  # three standard errors of 400
    covered = []
    for name, (X, y) in later.items():
        low, high = _ends(result.heads[name], X, 0.8)
        covered += list((low <= y) & (y <= high))
    assert abs(np.mean(covered) - 0.8) < 0.04


def _ends(head: gf.Head, X: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    ends = np.asarray(head.predict_interval(X, coverage=coverage))
    return ends[..., 0].reshape(-1), ends[..., 1].reshape(-1)


def test_a_small_client_is_nearer_to_everybody_than_a_large_one():
    rng = np.random.default_rng(1)
    data = drawn(seed=1)
    X = rng.standard_normal((200, 2)) * [1.0, 10.0] + [0.0, 100.0]
    y = 13.0 + X[:, 0] - 0.2 * (X[:, 1] - 100.0) + rng.standard_normal(200)  # ten above everybody
    result = run(data | {"small": (X[:2], y[:2]), "large": (X, y)})
    small, large = (result.heads[name].chosen["deviations"]["offset"] for name in ("small", "large"))
    assert 0 < small[0] < large[0]
    assert small[1] > 2 * large[1]


def test_the_order_of_clients_changes_nothing_and_neither_does_a_secure_sum():
    data = drawn(clients=6)
    probe = np.array([[0.3, 104.0]])
    first = run(data)
    turned = run(dict(reversed(data.items())))
    federation = gf.Federation.from_clients(data, regression=True, test_size=0.0)
    masked = gf.run(gf.MixedModel(), federation, secure=gf.SecureSum())
    for name, head in first.heads.items():
        np.testing.assert_allclose(turned.heads[name].predict(probe), head.predict(probe), rtol=1e-7)
        np.testing.assert_allclose(masked.heads[name].predict(probe), head.predict(probe), rtol=1e-4)


def test_a_client_that_comes_late_gets_its_own_deviation():
    data = drawn()
    late = drawn(seed=5, clients=1)["client 000"]
    result = run(data)
    with_it = run(data | {"late": late})
    joined = result.join(*late)
    np.testing.assert_allclose(
        np.asarray(joined.predict(late[0])), np.asarray(with_it.heads["late"].predict(late[0])), atol=0.3, rtol=0.1
    )


def test_a_result_is_a_file_and_heads_export(tmp_path):
    data = drawn(clients=5)
    result = run(data)
    result.save(tmp_path / "run")
    again = gf.load_result(tmp_path / "run")
    assert again.chosen["variances"] == pytest.approx(result.chosen["variances"])
    head = again.heads["client 000"]
    assert head.chosen["deviations"]["offset"] == pytest.approx(result.heads["client 000"].chosen["deviations"]["offset"])


@pytest.mark.parametrize(
    ("options", "regression", "words"),
    [({}, False, "continuous targets"), ({"slopes": 2}, True, "True or False")],
)
def test_what_it_is_not_for_is_said(options, regression, words):
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 2
    federation = gf.Federation.from_clients({"a": (X, y), "b": (X, y)}, regression=regression)
    with pytest.raises(gf.GramfoldError, match=words):
        gf.run(gf.MixedModel(**options), federation)
