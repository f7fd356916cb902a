"""PACE on two classes, where there is one axis and no angle: graded, calibrated and monotone, for all clients and for each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import gramfold as gf
from gramfold.features import draw
from gramfold.features import parse as read_map
from gramfold.methods.pace import PACE
from gramfold.methods.pace.priors import Priors
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.evidence import Logistic, bend


def two_blobs(n: int, share: float = 0.5, apart: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two unit Gaussians in six dimensions, their means `apart`; `share` is that of the second."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.standard_normal((n, 6))
    X[:, 0] += apart * y
    return X, y


def hospitals(X: np.ndarray, y: np.ndarray, clients: int = 5, partition: str = "iid") -> gf.Federation:
    return gf.Federation.split(X, y, clients=clients, partition=partition, test_size=0.0, random_state=0)


@pytest.mark.parametrize("method", [PACE(), PACE(features="bias+linear"), PACE(features="raw+bias+linear")])
def test_probabilities_are_graded(method):
    result = gf.run(method, hospitals(*two_blobs(500)))
    probe = two_blobs(200, seed=1)[0]
    for head in (result.global_head, *result.heads.values()):
        assert len(np.unique(head.predict_proba(probe)[:, 1].round(6))) > 150


@pytest.mark.parametrize("share", [0.5, 0.1, 0.03])
def test_the_shared_head_is_as_good_as_the_discriminant_analysis_that_fits_this_data(share):
    X, y = two_blobs(4000, share)
    probe, truth = two_blobs(20000, share, seed=1)
    shared = gf.run(PACE(features="raw+bias+linear"), hospitals(X, y)).global_head.predict_proba(probe)
    best = LinearDiscriminantAnalysis().fit(X, y).predict_proba(probe)
    # equal Gaussians made this data: what logistic tails and a wider rare class cost here is the price of being at ease elsewhere
    assert log_loss(truth, shared) < 1.06 * log_loss(truth, best)
    assert roc_auc_score(truth, shared[:, 1]) > roc_auc_score(truth, best[:, 1]) - 0.002


@pytest.mark.parametrize("share", [0.3, 0.1, 0.02])
def test_a_rare_class_is_foreseen_as_often_as_it_comes(share):
    """Classes that differ in scatter as well, as those of real tables do."""

    def uneven(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        X, y = two_blobs(n, share, apart=3.0, seed=seed)
        X[y == 1] *= 1.7
        return X, y

    X, y = uneven(4000, 0)
    probe, truth = uneven(20000, 1)
    shared = gf.run(PACE(features="raw+bias+linear"), hospitals(X, y)).global_head.predict_proba(probe)
    assert 0.75 < shared[:, 1].mean() / truth.mean() < 1.25
    rival = LogisticRegression().fit(X, y).predict_proba(probe)
    assert log_loss(truth, shared) < 1.15 * log_loss(truth, rival)  # fitted on the samples, where PACE has moments only


@pytest.mark.parametrize("classes", [2, 4])
def test_a_class_of_one_in_a_hundred_keeps_calibrated_probabilities_at_every_client(classes):
    """The personal heads together: as often foreseen as it comes, also among those samples for which it is likely."""

    def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        y = rng.choice(classes, n, p=[0.01] + [0.99 / (classes - 1)] * (classes - 1))
        return rng.standard_normal((n, 6)) + 2.0 * np.eye(6)[y], y

    result = gf.run(PACE(features="raw+bias+linear"), hospitals(*drawn(6000, 0), clients=6))
    probe, truth = drawn(20000, 1)
    rare = np.mean([head.predict_proba(probe)[:, 0] for head in result.heads.values()], axis=0)
    assert 0.8 < rare.mean() / (truth == 0).mean() < 1.2
    likely = rare > np.quantile(rare, 0.98)
    assert 0.65 < rare[likely].mean() / (truth[likely] == 0).mean() < 1.5
    rival = LogisticRegression().fit(*drawn(6000, 0)).predict_proba(probe)[:, 0]
    for head in result.heads.values():  # a hospital has seen ten of them, the rival sixty
        assert log_loss(truth == 0, head.predict_proba(probe)[:, 0]) < 1.25 * log_loss(truth == 0, rival)


@pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (0.5, 4.0), (0.1, 3.0)])
def test_how_far_each_class_scatters_follows_from_the_centroids(a, b):
    """Scores that are calibrated probabilities with a Beta distribution: the modelled variances are the true ones."""
    rng = np.random.default_rng(0)
    p = rng.beta(a, b, 200_000)
    y = (rng.random(len(p)) < p).astype(int)
    rows, targets = np.column_stack([1 - p, p]), np.eye(2)[y]
    weights = np.linalg.solve(rows.T @ rows, rows.T @ targets)
    found = Discriminant.from_moments(weights, rows.T @ targets, 0.0, np.bincount(y), 0.0)
    whitened = ((rows @ weights - found.mean) @ found.axes)[:, 0]
    distances = np.abs(found.centroids[:, 0])
    modelled = (1 + distances * distances.sum()) / (1 + 2 * distances.prod())
    np.testing.assert_allclose(
        modelled, [whitened[y == c].var() for c in (0, 1)], rtol=0.05
    )  # 200,000 draws, at least 6,000 rare


@given(st.floats(0.01, 0.99), st.floats(0.1, 20.0))
def test_a_higher_score_never_makes_a_class_less_likely(share, apart):
    centroids = np.array([[-share * apart], [(1 - share) * apart]])
    discriminant = Discriminant(np.zeros(2), np.array([[-0.5], [0.5]]), centroids)
    contrast = np.linspace(-40, 40, 2001)
    likelihood = Logistic()(discriminant.place(np.column_stack([-contrast, contrast])))
    assert (np.diff(likelihood[:, 1] - likelihood[:, 0]) > -1e-9).all()


def test_cutting_the_others_data_differently_changes_nothing():
    X, y = two_blobs(300, share=0.2)
    probe = two_blobs(40, seed=3)[0]
    scores = []
    for parts in (1, 4, 9):
        owner = np.random.default_rng(parts).integers(0, parts, 240)
        clients = {"me": (X[:60], y[:60])}
        clients |= {f"other {k}": (X[60:][owner == k], y[60:][owner == k]) for k in range(parts)}
        method = PACE(groups=False, personal=False)
        result = gf.run(method, gf.Federation.from_clients(clients, test_size=0.0, labels=range(2)))
        scores.append(np.concatenate([head.scores(probe) for head in (result.heads["me"], result.global_head)]))
    for other in scores[1:]:
        assert np.abs(other - scores[0]).max() < 1e-8 * np.abs(scores[0]).max()


def test_a_class_nobody_has_gets_no_evidence():
    X, _ = two_blobs(60)
    federation = gf.Federation.from_clients({"a": (X, np.zeros(60, int))}, test_size=0.0, labels=range(2))
    result = gf.run(PACE(), federation)
    for head in (result.heads["a"], result.global_head):
        assert head.predict_proba(X)[:, 1].max() < 0.05


def test_tensors_give_the_same_evidence():
    torch = pytest.importorskip("torch")
    head = gf.run(PACE(), hospitals(*two_blobs(300))).heads["0"]
    probe = two_blobs(50, seed=2)[0]
    np.testing.assert_allclose(head.scores(torch.as_tensor(probe)).numpy(), head.scores(probe), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(head.to_torch()(torch.as_tensor(probe)).numpy(), head.scores(probe), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_the_more_classes_the_more_the_angle_counts_and_the_less_the_likelihood(classes):
    cosine, likelihood = of_evidence(classes, 0.97 if classes > 2 else 0.5)
    assert likelihood == pytest.approx(1 / (classes - 1))
    slope = 1 - 0.8 * bend(classes)  # a bent cosine is flatter, and weighs more
    assert cosine == pytest.approx(1.5 * np.sqrt(classes) * (1 - likelihood) / slope)


@pytest.mark.parametrize("classes", [3, 10, 100])
def test_where_classes_are_hardly_told_apart_the_angle_counts_for_no_more_than_it_would_of_normal_ones(classes):
    """Their log-likelihood at r from the middle is r times the sample's length times the cosine."""
    apart = 0.1
    cosine, likelihood = of_evidence(classes, np.sqrt(apart / (1 + apart)))
    length = np.sqrt(apart + classes - 1)
    assert cosine == pytest.approx(np.sqrt(apart) * length * (1 - likelihood) / (1 - 0.8 * bend(classes)))
    assert of_evidence(classes, 0.0)[0] == 0.0


def of_evidence(classes: int, correlation: float) -> np.ndarray:
    return Priors().of_evidence(classes, draw(read_map("bias+linear"), 3, 0), correlation)[0]
