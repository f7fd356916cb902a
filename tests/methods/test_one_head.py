"""Rivals in closed form with one head for all: FedCGS, GH-OFL, FedCOF, SAFLe."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.features import Buckets, FeatureMap, draw
from gramfold.methods import ONE_HEAD
from gramfold.methods.fedcof import solved
from strategies import problems, relative

SOLVED = 1e-8
"""Systems here have conditions below 1e6."""
RAW = "raw+bias+linear"
SMALL = {gf.SAFLe: {"dim": 64, "group": 2, "levels": 3}}
METHODS = [kind(**SMALL.get(kind, {})) for kind in ONE_HEAD]


def by_definition(X, codes, shrink, within, own_variances):
    """Log-probabilities up to a constant for each sample, and the classes there are, term by term."""
    have = np.unique(codes)
    means = np.stack([X[codes == c].mean(0) for c in have])
    around = X - (means[np.searchsorted(have, codes)] if within else X.mean(0))
    V = around.T @ around / (len(X) - (len(have) if within else 1))
    target = np.diag(V) if own_variances else np.full(X.shape[1], np.diag(V).mean())
    V = (1 - shrink) * V + shrink * np.diag(target)
    apart = X[:, None] - means
    squares = (apart * np.linalg.solve(V, apart.reshape(-1, X.shape[1]).T).T.reshape(apart.shape)).sum(2)
    return np.log([(codes == c).mean() for c in have]) - squares / 2, have


def centred(scores):
    return scores - scores.mean(1, keepdims=True)


@pytest.mark.parametrize("features", [RAW, "bias+linear"])
@pytest.mark.parametrize(("method", "shrink"), [(gf.FedCGS, 0.0), (gf.GHOFL, 0.0), (gf.GHOFL, 0.3)])
@given(problem=problems(samples=(60, 90), width=(3, 8), clients=(1, 5)))
def test_folded_sums_give_the_gaussian_classifier_of_pooled_data(method, shrink, features, problem):
    made = method(features=features, **({"shrinkage": shrink} if method is gf.GHOFL else {}))
    result = gf.run(made, problem.federation())
    X = problem.X
    if features != RAW:
        X = X * np.sqrt(X.shape[1] / (X**2).sum(1, keepdims=True))
    wanted, have = by_definition(X, problem.codes, shrink, method.within, own_variances=features == RAW)
    for head in (result.heads["0"], result.global_head):
        scores = head.scores(problem.X)
        assert np.isneginf(np.delete(scores, have, axis=1)).all(), "a class that nobody has"
        assert relative(centred(scores[:, have]), centred(wanted)) < SOLVED


@pytest.mark.parametrize("method", [method for method in METHODS if method.name != "fedcof"], ids=repr)
@given(problem=problems(samples=(20, 40), width=(2, 6), clients=(2, 5)), order=st.randoms(use_true_random=False))
def test_it_does_not_matter_who_has_which_samples(method, problem, order):
    dealt = problem.owners.copy()
    order.shuffle(dealt)
    other = type(problem)(problem.X, problem.codes, problem.classes, dealt, problem.seed)
    here, there = (gf.run(method, each.federation()).global_head.scores(problem.X) for each in (problem, other))
    finite = np.isfinite(here)
    assert (finite == np.isfinite(there)).all()
    # singular systems, of fewer samples than features, lose half the digits
    assert relative(np.where(finite, there, 0), np.where(finite, here, 0)) < 1e-5


def test_a_discriminant_has_no_units_where_columns_share_none(blobs):
    X, y = blobs
    heads = []
    for scale in (np.ones(X.shape[1]), 10.0 ** np.arange(X.shape[1])):
        parts = {str(k): (X[k::3] * scale, y[k::3], X[k::3] * scale, y[k::3]) for k in range(3)}
        heads.append(
            gf.run(gf.GHOFL(features=RAW, shrinkage=0.2), gf.Federation.from_clients(parts)).global_head.scores(X * scale)
        )
    assert relative(centred(heads[1]), centred(heads[0])) < SOLVED


def test_with_a_sample_a_client_fedcofs_estimate_is_the_scatter_itself(rng):
    X, codes = rng.standard_normal((50, 4)) + 1.0, np.arange(50) % 3
    parcels = [{"classes": codes[[i]], "sums": X[[i]].T.astype(float), "counts": np.ones(1, np.int64)} for i in range(len(codes))]
    means = np.stack([X[codes == c].mean(0) for c in range(3)])
    within, mean = (X - means[codes]).T @ (X - means[codes]), X.mean(0)
    W = np.linalg.solve(within + len(X) * np.outer(mean, mean), X.T @ np.eye(3)[codes])
    assert relative(solved(parcels, 3, gamma=0.0), W / np.linalg.norm(W, axis=0)) < SOLVED


def test_fedcofs_covariance_is_unbiased(rng):
    """Of many federations of two samples a client and class, the mean of the estimates is the covariance."""
    root = rng.standard_normal((3, 3))
    found = []
    for _ in range(4000):
        X = rng.standard_normal((12, 3)) @ root
        means = X.reshape(6, 2, 3).mean(1)
        apart = means - X.mean(0)
        found.append(2 * apart.T @ apart / 5)
        if len(found) == 1:  # what the method adds up for one class, undone
            parcels = [{"classes": np.zeros(1, int), "sums": 2 * m[:, None], "counts": np.array([2])} for m in means]
            mean = X.mean(0)
            W = np.linalg.solve(11 * found[0] + 12 * np.outer(mean, mean), 12 * mean[:, None])
            assert relative(solved(parcels, 1, gamma=0.0), W / np.linalg.norm(W)) < SOLVED
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - root.T @ root) < 5 * error).all()


@given(
    rows=st.integers(1, 20), inputs=st.integers(1, 6), group=st.integers(1, 3), levels=st.integers(1, 4), groups=st.integers(1, 9)
)
def test_a_code_says_which_corner_of_its_questions_a_sample_is_in(rows, inputs, group, levels, groups):
    spec = Buckets(groups * 2**group, group, levels)
    map = draw(spec, inputs, seed=3)
    X = np.random.default_rng(rows).standard_normal((rows, inputs))
    codes = map(X).reshape(rows, groups, 2**group)
    assert (codes.sum(2) == 1).all()
    places, thresholds = spec.bits(inputs, 3, "features")
    answers = X[:, places] > thresholds
    np.testing.assert_array_equal((codes.argmax(2)[..., None] >> np.arange(group)) & 1, answers)


def test_safle_is_afl_on_codes_of_standardised_inputs(federation, blobs):
    method = gf.SAFLe(features="raw+linear", dim=32, group=2, levels=2, penalty=0.5)
    result = gf.run(method, federation)
    X = np.concatenate([client.train().inputs for client in federation])
    map = result.global_head.streams[0].map
    standard = map.description["map"]["parts"][1]
    np.testing.assert_allclose(standard["centre"], X.mean(0), atol=1e-12)
    np.testing.assert_allclose(standard["scale"], X.std(0), rtol=1e-9)
    codes = FeatureMap.from_description(map.description["map"])
    afl = gf.run(gf.AFL(features=codes, penalty=0.5), federation)
    assert relative(result.global_head.scores(blobs[0]), afl.global_head.scores(blobs[0])) < SOLVED
    assert (method.rounds, result.rounds) == (2, 2)


@pytest.mark.parametrize("method", METHODS, ids=repr)
class TestEach:
    def test_it_learns_and_gives_probabilities(self, method, federation):
        result = gf.run(method, federation)
        assert result.mean_accuracy > 0.5, "four classes: chance is 0.25"
        X = federation.clients[0].test().inputs
        np.testing.assert_allclose(result.heads["0"].predict_proba(X).sum(1), 1.0)

    def test_a_head_is_a_file(self, method, federation, tmp_path):
        head = gf.run(method, federation).heads["0"]
        head.save(tmp_path / "head.safetensors")
        X = federation.clients[0].test().inputs
        np.testing.assert_array_equal(gf.load_head(tmp_path / "head.safetensors").scores(X), head.scores(X))

    def test_tensors_give_what_arrays_give(self, method, federation):
        pytest.importorskip("torch")
        X = federation.clients[0].test().inputs
        here, there = (gf.run(method, federation, device=device).heads["0"].scores(X) for device in ("cpu", "cpu:0"))
        assert relative(there, here) < SOLVED

    def test_values_are_refused(self, method):
        X = np.random.default_rng(0).standard_normal((20, 3))
        values = gf.Federation.from_clients({"a": (X, X[:, 0])}, regression=True)
        if method.name == "safle":  # a ridge, which can do both
            assert gf.run(method, values).rounds == 2
        else:
            with pytest.raises(gf.GramfoldError, match="classifies; for regression use"):
                gf.run(method, values)


def test_sums_may_be_masked_but_class_means_of_each_client_cannot(federation):
    pytest.importorskip("cryptography", reason="needs the extra secure")
    X = federation.clients[0].test().inputs
    for method in METHODS[:2]:
        plain, masked = (gf.run(method, federation, secure=secure).heads["0"].scores(X) for secure in (None, gf.SecureSum()))
        assert relative(centred(masked), centred(plain)) < 1e-6
    with pytest.raises(gf.GramfoldError, match="needs each client's upload"):
        gf.run(gf.FedCOF(), federation, secure=gf.SecureSum())


@pytest.mark.parametrize(
    ("kind", "wrong", "words"),
    [
        (gf.GHOFL, {"shrinkage": 1.5}, "from 0 to 1"), (gf.GHOFL, {"shrinkage": -1.0}, "shrinkage"),
        (gf.FedCOF, {"penalty": -1.0}, "penalty"),
        (gf.SAFLe, {"dim": 10, "group": 2}, "no multiple of 4"), (gf.SAFLe, {"levels": 0}, "at least one level"),
        (gf.SAFLe, {"features": "bias+linear+fourier:8@learned"}, "without @"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(kind, wrong, words):
    with pytest.raises(gf.GramfoldError, match=words):
        kind(**wrong)
