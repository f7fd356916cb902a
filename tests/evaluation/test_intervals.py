"""Intervals cover what they should, at the ends of a measure too; resampled figures are scikit-learn's with weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

import gramfold as gf
from gramfold import features
from gramfold.evaluation import bootstrap, intervals, score_head
from gramfold.federation import Samples
from gramfold.heads import Stream
from gramfold.heads.probabilities import softmax


@given(st.integers(0, 40), st.integers(0, 40))
def test_an_accuracys_interval_is_wilsons(right, wrong):
    n = right + wrong
    if n:
        expected = stats.binomtest(right, n).proportion_ci(0.95, "wilson")
        np.testing.assert_allclose(intervals.wilson(right, n), (expected.low, expected.high), atol=1e-9)


@pytest.mark.parametrize(("positives", "negatives", "apart"), [(4, 40, 1.0), (3, 9, 2.5), (30, 300, 0.5)])
def test_an_aucs_interval_covers_even_with_few_of_a_class_and_near_one(positives, negatives, apart):
    """2000 draws: 95 % give or take 1.5 points of chance; Newcombe's is conservative near one, so there is no upper bound."""
    rng, truth, codes = np.random.default_rng(0), stats.norm.cdf(apart / np.sqrt(2)), np.repeat([1, 0], [positives, negatives])
    covered = 0
    for _ in range(2000):
        low, high = intervals.of_auc(roc_auc_score(codes, rng.standard_normal(len(codes)) + apart * codes), positives, negatives)
        covered += low <= truth <= high
    assert covered / 2000 > 0.935


def test_ten_of_ten_and_a_perfect_ranking_are_not_certain():
    assert intervals.wilson(10, 10) == (pytest.approx(0.722, abs=1e-3), 1.0)
    low, high = intervals.of_auc(1.0, 3, 7)
    assert low < 0.7 < high == 1.0


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2)), min_size=1, max_size=20))
def test_a_mean_of_equal_intervals_is_narrower_by_the_root_of_their_number(found):
    values, rooms = zip(*found, strict=True)
    low, high = intervals.of_mean(values, [(value - room, value + room) for value, room in found])
    expected = np.sqrt((np.square(rooms)).sum()) / len(found)
    np.testing.assert_allclose((np.mean(values) - low, high - np.mean(values)), expected, atol=1e-12)


@given(st.integers(0, 2**31), st.booleans())
def test_resampled_rankings_are_scikit_learns_with_weights(seed, ties):
    rng = np.random.default_rng(seed)
    codes, scores = np.array([1, 0, *rng.integers(0, 2, 20)]), rng.standard_normal(22)
    scores = scores.round(0) if ties else scores
    weights = rng.exponential(size=(3, 22))
    ranked = bootstrap.Ranked(scores, codes == 1, weights)
    expected = [roc_auc_score(codes, scores, sample_weight=mine) for mine in weights]
    np.testing.assert_allclose(ranked.auc(), expected, rtol=1e-9)
    expected = [average_precision_score(codes, scores, sample_weight=mine) for mine in weights]
    np.testing.assert_allclose(ranked.average_precision(), expected, rtol=1e-9)


def test_the_weights_follow_from_the_samples_alone(rng):
    X, y = rng.standard_normal((30, 5)), rng.integers(0, 2, 30)
    first, again, other = (bootstrap.weights_of(Samples(inputs, y)) for inputs in (X, X.copy(), X + 1e-9))
    np.testing.assert_array_equal(first, again)
    assert abs(first - other).max() > 0, "who does not have the samples cannot draw them"
    np.testing.assert_allclose(first.sum(1), 1.0)


def logits_of(kind: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """What a head says, and which class a sample is of: two classes, one in forty or one in ten of the second, and ten alike."""
    if kind == "ten classes":
        truth = 2.5 * rng.standard_normal((n, 10))
    else:
        truth = np.column_stack(
            [np.zeros(n), {"rare": -4.6, "rare, too sure": -4.6, "one in ten": -2.7}[kind] + 1.6 * rng.standard_normal(n)]
        )
    codes = (softmax(truth).cumsum(1) > rng.random((n, 1))).argmax(1)
    return truth * (1.5 if kind == "rare, too sure" else 1.0), codes


@pytest.mark.parametrize("kind", ["rare", "rare, too sure", "one in ten", "ten classes"])
def test_a_log_losss_interval_covers_even_where_a_test_split_has_one_positive_or_none(kind):
    """400 splits of 50 samples: 95 % give or take 2.2 points of chance (two standard errors), and less for what a
    bootstrap of 50 leaves out everywhere. Resampled without two samples more it was 72 % with one positive in forty."""
    rng = np.random.default_rng(3)
    logits, codes = logits_of(kind, rng, 200_000)
    classes = logits.shape[1]
    streams = [Stream(features.draw(features.Linear(), classes, seed=0), np.eye(classes))]
    head = gf.Head(streams, tuple(range(classes)), probabilistic=True)
    truth, covered = score_head(head, Samples(logits, codes), uncertain=False).log_loss, 0
    for _ in range(400):
        rows = rng.integers(0, len(codes), 50)
        scored = score_head(head, Samples(logits[rows], codes[rows]))
        low, high = scored.intervals["log_loss"]
        assert low < scored.log_loss < high
        covered += low <= truth <= high
    assert covered / 400 > 0.92


def rare(rng: np.random.Generator, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """One in ten."""
    y = (np.arange(n) % 10 == 0).astype(int)
    return rng.standard_normal((n, 4)) + 1.5 * y[:, None], y


def test_a_heads_score_has_an_interval_for_every_figure(rng):
    X, y = rare(rng)
    head = gf.run("afl", gf.Federation.from_clients({"a": (X, y), "b": rare(rng)})).heads["a"]
    scored = score_head(head, Samples(X, y))
    assert set(scored.intervals) == {"accuracy", "auc", "log_loss", "brier", "average_precision"}
    for key, (low, high) in scored.intervals.items():
        assert low < getattr(scored, key) < high, key
    assert not score_head(head, Samples(X, y), uncertain=False).intervals
    assert "draws" not in scored.to_dict()
    hidden = scored.without_classes()
    assert (hidden.positives, hidden.reliability) == (None, None)
    assert set(hidden.intervals) == {"accuracy", "log_loss", "brier"}, "how wide an AUC's is tells the classes"
    assert type(scored).from_dict(scored.to_dict()).to_dict() == scored.to_dict()


def test_one_class_alone_has_no_auc_and_says_so(rng):
    X, y = rare(rng)
    lonely = {"train": (X, y), "test": (X[y == 0][:8], y[y == 0][:8])}
    federation = gf.Federation.from_clients({"a": (X, y), "lonely": (X[:60], y[:60])})
    head = gf.run("afl", federation).heads["a"]
    scored = score_head(head, Samples(*lonely["test"]))
    assert scored.auc is None
    assert scored.average_precision is None
    assert set(scored.intervals) == {"accuracy", "log_loss", "brier"}
