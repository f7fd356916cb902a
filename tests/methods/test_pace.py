"""PACE: right about itself, invariant, the same in every regime, and at ease with the clients that break other methods."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import helmert

import gramfold as gf
from gramfold.federation import Samples, Task, digits
from gramfold.methods import ClientData
from gramfold.methods.pace import PACE
from gramfold.methods.pace.influence import OfFactor
from gramfold.numerics.padding import Padding
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.ridge import factorise
from gramfold.solve.softmax import most_likely
from strategies import relative

FIXED = (10.0, 0.05)


def blobs(n: int, classes: int = 5, dim: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping Gaussian classes around fixed centres."""
    centres = np.random.default_rng(99).standard_normal((classes, dim)) * 1.2
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return centres[y] + rng.standard_normal((n, dim)), y


def skewed(clients: int = 6, n: int = 360, **kwargs) -> gf.Federation:
    return gf.Federation.split(*blobs(n, **kwargs), clients=clients, partition="dirichlet:0.5", random_state=1)


def test_a_sketch_saves_downlink():
    federation = skewed(clients=12)
    down = {regime: gf.run(PACE(features="bias+linear+fourier:600", regime=regime), federation).downlink_bytes for regime in
            ("sum", "sketch")}  # fmt: skip
    assert down["sketch"] < down["sum"] / 2


def test_the_sketched_leverages_cost_little():
    federation = skewed(n=900)
    exact, sketched = (
        gf.run(PACE(features="bias+linear+fourier:300", regime=regime), federation) for regime in ("sum", "sketch")
    )
    # leverages are off by a relative sqrt(2/128) = 12 %, of leverages that are small themselves
    assert abs(exact.mean_accuracy - sketched.mean_accuracy) < 0.02
    assert abs(exact.leave_one_out_accuracy - sketched.leave_one_out_accuracy) < 0.02


def test_cutting_the_others_data_differently_changes_nothing_for_a_client():
    X, y = blobs(300)
    mine, others = slice(0, 60), slice(60, 300)
    probe = blobs(40, seed=3)[0]
    scores = []
    for parts in (1, 4, 9):
        cut = np.random.default_rng(parts).integers(0, parts, 240)
        clients = {"me": (X[mine], y[mine])}
        clients |= {f"other {k}": (X[others][cut == k], y[others][cut == k]) for k in range(parts)}
        federation = gf.Federation.from_clients(clients, test_size=0.0, labels=range(5))
        scores.append(gf.run(PACE(features="bias+linear+fourier:128"), federation).heads["me"].scores(probe))
    assert relative(scores[1], scores[0]) < 1e-8
    assert relative(scores[2], scores[0]) < 1e-8


def test_left_out_scores_are_those_of_a_federation_without_the_sample():
    """The base scores that everything is chosen on: really leave one sample out of the whole federation, and compare."""
    X, y = blobs(90)
    method = PACE(features="bias+linear", penalty=3.0)
    task = Task(8, tuple(range(5)), 5, seed=0, samples=90)
    begin = method.begin(task)

    def shared(keep: np.ndarray):
        total = method.local(ClientData("all", Samples(X[keep], y[keep])), begin)
        return method.aggregate(total, begin).pooled

    all_rows = np.arange(90)
    whole = shared(all_rows)
    rows = begin.space.map(X)
    targets = np.eye(5)[y]
    h = OfFactor(whole.leverage, rows, Padding([90])).leverages[0]
    left_out = targets - (targets - rows @ whole.weights) / (1 - h)[:, None]
    for i in (0, 17, 89):
        without = shared(np.delete(all_rows, i))
        np.testing.assert_allclose(left_out[i], rows[i] @ without.weights, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("n", "folded"), [(12, True), (12, False), (60, True)])
def test_own_samples_may_weigh_more_and_are_left_out_with_all_their_copies(n, folded):
    """With fewer rows than columns and with more."""
    rng = np.random.default_rng(n)
    F, Y = rng.standard_normal((100, 20)), rng.standard_normal((100, 3))
    mine, others = (F[:n], Y[:n]), (F if folded else F[n:], Y if folded else Y[n:])
    A, M = others[0].T @ others[0] + 2.0 * np.eye(20), others[0].T @ others[1]
    W, alpha = np.linalg.solve(A, M), 7.0
    influence = OfFactor(factorise(A), mine[0], Padding([n]))
    np.testing.assert_allclose(influence.leverages[0], (mine[0] @ np.linalg.inv(A) * mine[0]).sum(1), rtol=1e-9)
    move, left = influence.blended((mine[1] - mine[0] @ W)[None], alpha, folded)
    P = np.linalg.solve(A + alpha * mine[0].T @ mine[0], M + alpha * mine[0].T @ mine[1])
    np.testing.assert_allclose(W + influence.solution(move)[0][0], P, rtol=1e-9, atol=1e-12)
    for i in (0, n - 1):
        copies = alpha + folded
        f, y = mine[0][i], mine[1][i]
        without = np.linalg.solve(A + alpha * mine[0].T @ mine[0] - copies * np.outer(f, f),
                                  M + alpha * mine[0].T @ mine[1] - copies * np.outer(f, y))  # fmt: skip
        np.testing.assert_allclose(left[0, i], y - f @ without, rtol=1e-8, atol=1e-10)


def shifted(clients: int, n: int, turn: float, seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """The same classes everywhere, each client's features turned by a rotation of its own."""
    made = {}
    for k in range(clients):
        X, y = blobs(2 * n, seed=100 * seed + k)
        rotation, _ = np.linalg.qr(np.eye(8) + turn * np.random.default_rng(k).standard_normal((8, 8)))
        made[str(k)] = (X[:n] @ rotation, y[:n], X[n:] @ rotation, y[n:])
    return made


def test_where_features_shift_a_client_goes_its_own_way_and_where_they_do_not_it_stays():
    """Ahead of the shared model, of each alone and of FedHiP with the shift; none leaves the shared solution without it."""
    apart = gf.Federation.from_clients(shifted(6, 300, turn=2.0))
    result = gf.run(PACE(features="bias+linear"), apart)
    assert sum(client.chosen["stay"] < 0.1 for client in result.clients.values()) >= 2
    for rival in (gf.Local(), gf.FedHiP(), gf.APFL()):
        assert (
            result.mean_accuracy > gf.run(rival, apart).mean_accuracy - 0.01
        )  # 1800 test samples, of which one in eight is wrong: a standard error is 0.008
    alike = gf.run(PACE(features="bias+linear"), gf.Federation.from_clients(shifted(6, 300, turn=0.0)))
    assert max(client.chosen.get("blend", 0.0) + client.chosen["own"] for client in alike.clients.values()) < 0.1


def test_small_clients_with_everybodys_classes_do_not_believe_their_counts():
    X, y = blobs(2400, classes=5)
    federation = gf.Federation.split(X, y, clients=60, partition="quantity:0.5", random_state=0, drop_small=True, min_size=4)
    result = gf.run(PACE(features="bias+linear"), federation)
    assert result.mean_accuracy > gf.run(gf.AFL(), federation).mean_accuracy - 0.003


@pytest.mark.parametrize("absent", [0, 1, 3])
def test_the_discriminant_does_not_depend_on_the_order_of_a_sum(absent):
    """Its axes are eigenvectors, whose signs, and with classes nobody has whose directions, rounding would choose."""
    rng = np.random.default_rng(absent)
    classes, penalty = 6, 3.0
    for _ in range(20):
        codes = rng.integers(absent, classes, 400)
        F = rng.standard_normal((400, 12)) + 2 * rng.standard_normal((classes, 12))[codes]
        Y = np.eye(classes)[codes]
        found = []
        for order in (np.arange(400), rng.permutation(400)):
            S, M = F[order].T @ F[order], F[order].T @ Y[order]
            W = np.linalg.solve(S + penalty * np.eye(12), M)
            found.append(Discriminant.from_moments(W, M, penalty, Y.sum(0), leverage=0.03))
        assert relative(found[1].axes, found[0].axes) < 1e-9
        assert relative(found[1].centroids, found[0].centroids) < 1e-9


def test_the_discriminants_moments_are_those_of_the_scores():
    """Mean, centroids and whitening come from moments alone; with no leverage they must equal those of the actual scores."""
    rng = np.random.default_rng(0)
    F, y = rng.standard_normal((400, 6)), rng.integers(0, 4, 400)
    Y, penalty = np.eye(4)[y], 2.0
    W = np.linalg.solve(F.T @ F + penalty * np.eye(6), F.T @ Y)
    counts = Y.sum(0)
    found = Discriminant.from_moments(W, F.T @ Y, penalty, counts, leverage=0.0)
    scores = F @ W
    np.testing.assert_allclose(found.mean, scores.mean(0), atol=1e-12)
    centroids = np.stack([scores[y == c].mean(0) for c in range(4)])
    np.testing.assert_allclose(found.centroids, (centroids - scores.mean(0)) @ found.axes, atol=1e-9)
    within = sum((scores[y == c] - centroids[c]).T @ (scores[y == c] - centroids[c]) for c in range(4)) / 400
    np.testing.assert_allclose(found.axes.T @ within @ found.axes, np.eye(3), atol=1e-3)  # up to the floor of 1e-6 trace


def test_classes_that_are_hardly_told_apart_are_not_told_with_certainty():
    """Left-out scores that hardly vary lean away from their own class, which is no evidence. A guess is worth log 5 = 1.61."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        centres, y = 0.4 * rng.standard_normal((5, 4)), rng.integers(0, 5, 1120)
        X = centres[y] + rng.standard_normal((1120, 4))
        parts = {str(k): (X[k:120:4], y[k:120:4], X[-1:], y[-1:]) for k in range(4)}
        head = gf.run(PACE(features="bias+linear"), gf.Federation.from_clients(parts)).global_head
        right = head.predict_proba(X[120:])[np.arange(1000), y[120:]]
        assert -np.log(right).mean() < np.log(5) + 0.05  # of five shares that thirty samples each tell: 4 / (2 x 120), and noise


@pytest.mark.parametrize("leverage", [0.0, 0.1, 0.3])
def test_centroids_differ_only_where_left_out_scores_lean_to_their_class(leverage):
    rng, contrasts = np.random.default_rng(3), helmert(6).T
    for _ in range(20):
        y = rng.integers(0, 6, 60)
        F, Y = np.c_[np.ones(60), rng.standard_normal((60, 5)) + 0.5 * rng.standard_normal((6, 5))[y]], np.eye(6)[y]
        penalty = np.array([[0.0], *[[30.0]] * 5])
        W = np.linalg.solve(F.T @ F + np.diag(penalty[:, 0]), F.T @ Y)
        found = Discriminant.from_moments(W, F.T @ Y, penalty, Y.sum(0), leverage)
        left_out = (F @ W - leverage * Y) / (1 - leverage)
        means = np.stack([left_out[y == c].mean(0) for c in range(6)]) - left_out.mean(0)
        leaning = contrasts.T @ (means.T * Y.sum(0)) @ contrasts
        values, vectors = np.linalg.eigh((leaning + leaning.T) / 2)
        assert leverage or values[0] > 0  # with no leverage they lean to it everywhere
        if values.sum() <= 0:
            assert not found.centroids.any()
            continue
        kept = found.centroids @ np.linalg.pinv(found.axes) @ contrasts @ vectors
        np.testing.assert_allclose(kept[:, values < 0], 0.0, atol=1e-9)
        np.testing.assert_allclose(kept[:, values > 0], (means @ contrasts @ vectors)[:, values > 0], atol=1e-9)


def test_the_softmax_weights_are_the_optimum():
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    evidence, codes, offset = rng.standard_normal((3, 80, 4)), rng.integers(0, 4, 80), rng.standard_normal(4)
    start, precision = np.array([1.0, 0.0, 2.0]), np.array([5.0, 50.0, 1.0])

    def loss(w: np.ndarray) -> float:
        logits = np.tensordot(w, evidence, 1) + offset
        nll = np.log(np.exp(logits).sum(1)) - logits[np.arange(80), codes]
        return float(nll.mean() + 0.5 * precision @ (w - start) ** 2 / 80)

    every = np.broadcast_to(offset, (1, 80, 4))
    found = most_likely(evidence[None], every, codes[None], start, precision, np.ones((1, 80)))[0][0]
    assert loss(found) - minimize(loss, start, tol=1e-12).fun < 1e-5  # it stops when a step gains less than that


def test_it_estimates_its_accuracy_and_its_probabilities_are_calibrated():
    X, y = blobs(6000, classes=6)
    federation = gf.Federation.split(X, y, clients=10, partition="dirichlet:0.3", test_size=0.5, random_state=0)
    result = gf.run(PACE(), federation)
    assert abs(result.leave_one_out_accuracy - result.mean_accuracy) < 0.02  # 3000 test samples: two standard errors
    assert result.calibration_error < 0.03
    assert result.mean_accuracy > gf.run(gf.APFL(), federation).mean_accuracy


def test_on_the_digits_it_is_ahead_of_every_other_method():
    federation = gf.Federation.from_dataset(digits(), clients=20, partition="dirichlet:0.1", random_state=0)
    best = max(
        gf.run(method, federation).mean_accuracy for method in (gf.Local(), gf.AFL(), gf.LocalClasses(), gf.FedHiP(), gf.APFL())
    )
    assert gf.run(PACE(), federation).mean_accuracy > best


def odd_clients() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    X, y = blobs(300, classes=6)
    common = y < 5
    X, y, rare = X[common], y[common], X[~common][:12]
    return {
        "many": (X[:150], y[:150]),
        "one class": (X[y == 2][:9], y[y == 2][:9]),
        "two samples": (X[[150, 151]], y[[150, 151]]),
        "one sample": (X[[152]], y[[152]]),
        "a class of its own": (rare, np.full(len(rare), 5)),
        "most classes absent": (X[y <= 1][:30], y[y <= 1][:30]),
    }


@pytest.mark.parametrize(
    "method",
    [PACE(), PACE(learn=False), PACE(features="bias+linear"), gf.Local(), gf.AFL(), gf.LocalClasses(), gf.FedHiP(), gf.APFL()],
)
def test_odd_clients_are_clients_like_any_other(method):
    federation = gf.Federation.from_clients(odd_clients(), test_size=0.0)
    result = gf.run(method, federation)
    X = blobs(20, classes=6, seed=5)[0]
    for head in result.heads.values():
        assert np.isfinite(head.scores(X)[:, np.isfinite(head.offset) if head.offset is not None else slice(None)]).all()
        if head.probabilistic:
            np.testing.assert_allclose(head.predict_proba(X).sum(1), 1.0)
    if isinstance(method, PACE) and method != PACE():  # by default few of the nine samples are left to judge by
        own, shared = (head.predict_proba(X)[:, 2] for head in (result.heads["one class"], result.global_head))
        odds = own / (1 - own) / (shared / (1 - shared))
        assert np.median(odds) > 1.5, "it has only ever seen class 2"


def test_a_class_nobody_has_is_hardly_ever_predicted():
    X, y = blobs(200, classes=3)
    federation = gf.Federation.from_clients({"a": (X[:100], y[:100]), "b": (X[100:], y[100:])}, labels=[0, 1, 2, 3])
    result = gf.run(PACE(), federation)
    assert result.mean_accuracy > 0.6
    assert result.heads["a"].predict_proba(X)[:, 3].max() < 0.05


def test_a_client_that_joins_after_the_round_gets_a_head_from_its_samples_and_the_shared_model():
    X, y = blobs(1200)
    early = {str(k): (X[k * 100 : (k + 1) * 100], y[k * 100 : (k + 1) * 100]) for k in range(8)}
    late = np.flatnonzero((y[800:] == 0) | (y[800:] == 3)) + 800
    train, test = late[::2], late[1::2]
    for regime in ("sum", "sketch"):
        result = gf.run(PACE(regime=regime), gf.Federation.from_clients(early, test_size=0.0))
        head = result.join(X[train], y[train])
        accuracy = (head.predict(X[test]) == y[test]).mean()
        assert accuracy > (result.global_head.predict(X[test]) == y[test]).mean()
        assert abs(head.chosen["leave_one_out_accuracy"] - accuracy) < 0.1


def test_a_late_client_is_not_left_out_of_a_sum_it_never_was_in():
    """Fixed values: joining late with no refinement differs from having been there only by the missing moments."""
    X, y = blobs(400)
    result = gf.run(gf.FedHiP(alpha=None, penalty=1.0), gf.Federation.from_clients({"a": (X[:200], y[:200])}, test_size=0.0))
    head = result.join(X[200:], y[200:])
    # really leave each of the newcomer's samples out: the shared system stays as it is
    alpha, phi = head.chosen["alpha"], head.streams[0].map
    F, Y = phi(X[200:]), np.eye(5)[y[200:]]
    A = phi(X[:200]).T @ phi(X[:200]) + np.eye(phi.dim)
    M = phi(X[:200]).T @ np.eye(5)[y[:200]]
    right = 0
    for i in range(200):
        keep = np.arange(200) != i
        P = np.linalg.solve(A + alpha * F[keep].T @ F[keep], M + alpha * F[keep].T @ Y[keep])
        right += int((F[i] @ P).argmax() == y[200 + i])
    assert head.chosen["leave_one_out_accuracy"] == right / 200


def test_fixed_values_are_used_as_given():
    result = gf.run(PACE(features="bias+linear", penalty=2.0, weights=FIXED, parts=()), skewed())
    for head in result.heads.values():
        assert (head.chosen["penalty"], head.chosen["cosine"], head.chosen["gaussian"]) == (2.0, *FIXED)


def test_heads_survive_saving(tmp_path):
    result = gf.run(PACE(), skewed())
    head = result.heads["0"]
    head.save(tmp_path / "head.safetensors")
    X = blobs(30, seed=4)[0]
    loaded = gf.load_head(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), head.predict_proba(X))
    assert loaded.chosen == head.chosen


def test_the_features_grow_with_the_data_and_stay_within_memory_and_budget():
    def chosen(samples: int | None, inputs: int = 768, **given: Any) -> PACE:
        return PACE(**given).settled(Task(inputs, tuple(range(10)), 10, 0, samples))

    assert chosen(200).features == chosen(5_000).features == "bias+columns+fourier:512:0.5"
    assert chosen(50_000).features == "bias+linear+fourier:4096@learned"
    assert chosen(50_000, learn=False).features == "bias+columns+fourier:4096:0.5"
    assert chosen(500, inputs=8).features == "bias+linear+fourier:512@learned", "it may be a table"
    assert chosen(5_000, inputs=8).features == "bias+linear+fourier:1024@learned:2", "with curves"
    assert chosen(10**7, memory=2**28).features == "bias+linear+fourier:2048@learned"
    assert chosen(10**6, memory=2**20).features == "bias+columns", "no room for a Fourier map"
    assert (chosen(50_000).regime, chosen(5_000).regime, chosen(50_000, regime="sum").regime) == ("sketch", "sum", "sum")
    assert chosen(None).settled(Task(768, tuple(range(10)), 10, 0)) == chosen(None), "what is settled stays so"


@pytest.mark.parametrize("budget", ["5MB", 12_000_000, "40 MB"])
def test_a_client_sends_and_receives_no_more_than_the_budget(budget):
    X, y = blobs(2400, dim=300)
    federation = gf.Federation.split(X, y, clients=2, partition="iid", random_state=0)
    result = gf.run(PACE(budget=budget), federation)
    most = max(client.uplink_bytes + client.downlink_bytes for client in result.clients.values())
    limit = {"5MB": 5e6, "40 MB": 40e6}.get(budget, budget)
    assert 0.5 * min(limit, 6e6) < most <= limit, "more features than 512 are not wanted for so few samples"


def test_a_budget_that_cannot_be_kept_or_read_is_refused():
    for wrong in ("much", "-3MB", 0):
        with pytest.raises(gf.GramfoldError, match="20MB"):
            PACE(budget=wrong)
    with pytest.raises(gf.GramfoldError, match="too small"):
        PACE(budget="1kB").settled(Task(768, (0, 1), 2, 0, 1000))
    with pytest.raises(gf.GramfoldError, match="either"):
        PACE(budget="1MB", features="bias+linear")


def test_an_unknown_regime_is_refused():
    with pytest.raises(gf.GramfoldError, match="regime"):
        PACE(regime="telepathy")


def test_regression_personalises_and_the_refinement_is_chosen():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 6))
    slopes = rng.standard_normal((4, 6))
    site = np.arange(600) % 4
    y = (X * (slopes.mean(0) + 0.7 * slopes[site])).sum(1) + 0.1 * rng.standard_normal(600)
    clients = {str(k): (X[site == k], y[site == k]) for k in range(4)}
    federation = gf.Federation.from_clients(clients, regression=True)
    shared = gf.run(gf.AFL(features="raw+bias+linear"), federation).mean_rmse
    for method in (PACE(features="raw+bias+linear"), gf.FedHiP(features="raw+bias+linear"), gf.APFL(features="raw+bias+linear")):
        assert gf.run(method, federation).mean_rmse < 0.8 * shared


def test_people_who_each_hold_the_page_their_own_way():
    """Digits turned by a quarter, a half, three: what a client's own refinement must learn, a shared line cannot know."""
    data = digits()
    images, owners = np.asarray(data.inputs).reshape(-1, 8, 8), np.random.default_rng(0).integers(0, 4, len(data.codes))
    parts = {str(k): (np.rot90(images[owners == k], k, (1, 2)).reshape(-1, 64), data.codes[owners == k]) for k in range(4)}
    apart = gf.Federation.from_clients(parts, test_size=0.25, random_state=0)
    mine = gf.run(PACE(features="bias+linear"), apart)
    for rival in (gf.Local(), gf.FedHiP(), gf.APFL()):
        assert mine.mean_accuracy > gf.run(rival, apart).mean_accuracy - 0.01  # 437 test samples
    estimate = np.mean([client.chosen["leave_one_out_accuracy"] for client in mine.clients.values()])
    assert abs(estimate - mine.mean_accuracy) < 0.03  # 450 test samples
