"""Where columns lie, from counts: quantiles of all samples whatever the cut, and no more say for a client than it has samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramfold as gf
from gramfold.federation import Samples
from gramfold.methods.learning.columns import COUNTS, ROUNDS, Columns
from gramfold.uploads import NamedSums


def measured(*clients: np.ndarray, weights: list[np.ndarray] | None = None) -> Columns:
    known = Columns(clients[0].shape[1])
    for _ in range(ROUNDS):
        total = None
        for i, rows in enumerate(clients):
            train = Samples(rows, np.zeros(len(rows)), None if weights is None else weights[i])
            upload = known.count(train)
            known.check(upload)
            total = upload if total is None else total.__iadd__(upload)
        known = known.after(total)
        if known.measured:
            return known
    raise AssertionError("not measured in time")


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 999), centre=st.floats(-1e6, 1e6), spread=st.floats(1e-3, 1e6), n=st.integers(20, 400),
    shape=st.sampled_from(["normal", "uniform", "lognormal", "two"]),
)  # fmt: skip
def test_the_scale_is_that_of_the_quantiles(seed, centre, spread, n, shape):
    rng = np.random.default_rng(seed)
    drawn = {
        "normal": rng.standard_normal(n), "uniform": rng.random(n), "lognormal": np.exp(rng.standard_normal(n)),
        "two": rng.integers(0, 2, n),
    }[shape]  # fmt: skip
    column = centre + spread * drawn
    known = measured(column[:, None])
    low, high = np.quantile(column, [0.25, 0.75], method="inverted_cdf")
    tolerance = 0.25 * (high - low) + 1e-4 * abs(centre)  # samples are far apart at the ends, and bins are bins
    if n >= 200 and shape != "two":
        assert abs(known.scale[0] - (high - low) / 1.349) <= tolerance
    assert low - tolerance <= known.centre[0] <= high + tolerance


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), cut=st.integers(1, 59))
def test_the_cut_does_not_matter(seed, cut):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((60, 3)) * [1e-9, 1.0, 1e9] + [0.0, 1e4, 0.0]
    whole, parts = measured(rows), measured(rows[:cut], rows[cut:])
    assert np.array_equal(whole.centre, parts.centre)
    assert np.array_equal(whole.scale, parts.scale)


def test_odd_columns_are_measured(rng):
    n = 2000
    rare = (rng.random(n) < 0.02) * 1.0
    years = np.where(rng.random(n) < 0.97, 2000.0, rng.integers(1990, 2010, n))
    columns = [np.zeros(n), np.full(n, 1e6), rare, years, 1e6 + rng.standard_normal(n), 1e-200 * rng.random(n), -rare]
    known = measured(np.stack(columns, axis=1))
    standard = (np.stack(columns, axis=1) - known.centre) / known.scale
    assert np.isfinite(standard).all()
    assert np.abs(standard[:, [0, 1]]).max() <= 1.0 + 1e-6
    assert 1.0 <= standard[rare > 0, 2].min() <= 5.0
    assert 0.5 <= np.abs(standard[years != 2000, 3]).mean() <= 5.0
    assert 0.8 <= standard[:, 4].std() <= 1.25


def test_a_client_has_no_more_say_than_samples(rng):
    honest = [rng.standard_normal((200, 2)) for _ in range(8)]
    alone, beside = measured(*honest), measured(*honest, rng.standard_normal((160, 2)) * 1e12)
    assert np.abs(beside.scale / alone.scale - 1).max() <= 0.3
    assert np.abs(beside.centre - alone.centre).max() <= 0.2


def test_weights_count(rng):
    rows = rng.standard_normal((500, 2))
    weights = rng.integers(1, 4, 500).astype(float)
    weighted, repeated = measured(rows, weights=[weights]), measured(np.repeat(rows, weights.astype(int), axis=0))
    assert np.allclose(weighted.scale, repeated.scale)


@pytest.mark.parametrize("lie", ["negative", "uneven", "too many", "shape", "not a number"])
def test_counts_that_are_none_are_refused(rng, lie):
    known = Columns(3)
    counts = np.array(known.count(Samples(rng.standard_normal((10, 3)), np.zeros(10)))[COUNTS], float)
    if lie == "negative":
        counts[0, :2] += [-5, 5]
    if lie == "uneven":
        counts[1, 7] += 1
    if lie == "too many":
        counts *= 1e12
    if lie == "shape":
        counts = counts[:, :-1]
    if lie == "not a number":
        counts[0, 0] = np.nan
    with pytest.raises(gf.GramfoldError):
        known.check(NamedSums({COUNTS: counts}))


def test_rows_have_a_length_where_columns_have_one_unit(rng):
    embedding, table = rng.standard_normal((300, 30)) + 0.3, rng.random((300, 6)) * np.logspace(-2, 2, 6)
    assert measured(embedding).alike
    assert not measured(table).alike
    assert not measured(embedding + np.linspace(-3, 3, 30)).standardised
    by_hand = measured((table - table.mean(0)) / table.std(0))
    assert by_hand.alike
    assert by_hand.standardised


@pytest.mark.parametrize(
    "asked",
    [
        {"inputs": 3, "low": np.zeros((2, 3))},
        {"inputs": 3, "low": np.zeros((2, 2)), "high": np.ones((2, 3)), "smaller": np.ones(3)},
        {"inputs": 3, "low": np.full((2, 3), np.nan), "high": np.ones((2, 3)), "smaller": np.ones(3)},
    ],
    ids=["half of it", "another shape", "not a number"],
)
def test_a_server_cannot_ask_for_bins_that_are_none(asked):
    with pytest.raises(gf.GramfoldError, match="need"):
        Columns(**asked)


def test_a_server_cannot_make_a_client_count_columns_that_it_has_not(rng):
    with pytest.raises(gf.GramfoldError, match="the samples have 3"):
        Columns(10**9).count(Samples(rng.standard_normal((5, 3)), np.zeros(5)))
