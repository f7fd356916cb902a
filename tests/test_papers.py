"""What the papers claim beyond accuracy, held against the code: recursions, rounds, bytes, and what an upload gives away.

docs/papers.md says which claim is tested where; formulas are counted against the bytes that messages really have.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramfold as gf
from gramfold.features import draw, parse
from gramfold.federation import digits, digits_as_images

HEADER = 2500
"""The most bytes of a message that are no numbers: names, shapes, a checksum, the labels."""
MAP, M, C = "linear", 64, 10  # the papers have no intercept


@pytest.fixture(scope="module")
def federation() -> gf.Federation:
    """Clients with more samples than features and clients with fewer."""
    return gf.Federation.from_dataset(digits(), clients=12, partition="dirichlet:0.3", random_state=0)


def features(client) -> tuple[np.ndarray, np.ndarray]:
    train = client.train()
    return np.asarray(draw(parse(MAP), 64, 0)(train.inputs), float), np.eye(C)[train.targets]


# --- AFL ---


def test_afls_recursion_is_the_sum_and_its_ri_step_takes_the_penalties_away(federation):
    """The paper folds one client after another into W and C, each with a penalty g of its own, and removes K g at the end."""
    g, beta = 1.0, 3.0
    total = weights = None
    for client in federation:
        F, Y = features(client)
        own = F.T @ F + g * np.eye(M)
        own_weights = np.linalg.solve(own, F.T @ Y)
        if total is None:
            total, weights = own, own_weights
            continue
        merged = total + own
        weights = np.linalg.solve(merged, total @ weights + own @ own_weights)
        total = merged
    cleaned = total - len(federation) * g * np.eye(M)
    weights = np.linalg.solve(cleaned + beta * np.eye(M), total @ weights)
    head = gf.run(gf.AFL(features=MAP, penalty=beta), federation).global_head
    np.testing.assert_allclose(head.streams[0].weights, weights, rtol=1e-8, atol=1e-10)


# --- rounds and bytes ---


def test_rounds_are_those_of_the_papers(federation):
    assert [gf.AFL().rounds, gf.FedHiP().rounds, gf.APFL().rounds] == [1, 1, 1]
    assert gf.DeepAFL(depth=3).rounds == 2 * 3 + 1
    network = "conv:4:3+relu+max:2+dense:8+relu"  # two hidden layers and the classes' own
    assert gf.FedACnnL(network=network).rounds == 3


def upload_numbers(n: int, m: int, present: int, classes: int) -> int:
    """A triangle and the columns of the classes present; with fewer samples than features the factor R and Q'Y instead."""
    if n < m:
        return n * m - n * (n - 1) // 2 + n * present + classes
    return m * (m + 1) // 2 + m * present + classes


@pytest.mark.parametrize("method", [gf.AFL, gf.FedHiP, gf.APFL])
def test_an_upload_is_a_triangle_or_a_factor(method, federation):
    result = gf.run(method(features=MAP), federation, keep_heads=False)
    sizes = set()
    for client in federation:
        train = client.train()
        sizes.add(train.n < M)
        numbers = upload_numbers(train.n, M, len(np.unique(train.targets)), C)
        assert 0 <= result.clients[client.name].uplink_bytes - 8 * numbers < HEADER
    assert sizes == {True, False}  # both forms were there


@pytest.mark.parametrize(("method", "numbers"), [(gf.AFL, M * C), (gf.APFL, M * C), (gf.FedHiP, M * C + M * (M + 1) // 2)])
def test_what_comes_back_is_the_head_and_for_fedhip_the_factor(method, numbers, federation):
    result = gf.run(method(features=MAP), federation, keep_heads=False)
    for client in result.clients.values():
        assert 0 <= client.downlink_bytes - 8 * numbers < 3 * HEADER  # what opens the round, and what ends it


def test_a_layer_of_fedacnnl_is_the_triangle_of_its_patches():
    """q patches' numbers with the constant one: q (q + 1) / 2 + q f of f solved filters, at last q C, for any images."""
    federation = gf.Federation.from_dataset(digits_as_images(), clients=2, partition="iid", random_state=0)
    result = gf.run(gf.FedACnnL(network="conv:4:3+relu+max:2"), federation, keep_heads=False)
    hidden, last = 3 * 3 * 1 + 1, 3 * 3 * 4 + 1
    numbers = sum(upload_numbers(10**9, q, targets, targets) for q, targets in ((hidden, 4), (last, C)))
    for client in result.clients.values():
        assert 0 <= client.uplink_bytes - 8 * numbers < 2 * HEADER


def test_gradient_rounds_cost_a_model_each_way():
    pytest.importorskip("torch")
    federation = gf.Federation.from_dataset(digits(), clients=3, partition="iid", random_state=0)
    rounds = 6
    result = gf.run(gf.FedAvg(rounds=rounds, lr=0.1), federation, keep_heads=False)
    model, moments = 4 * (64 * C + C), 8 * 2 * 64  # float32; the first round gathers sums of features instead
    for client in result.clients.values():
        assert 0 <= client.uplink_bytes - ((rounds - 1) * model + moments) < rounds * HEADER
        assert 0 <= client.downlink_bytes - (rounds - 1) * model < (rounds + 1) * HEADER + 2 * model


def test_the_sizes_that_the_methods_page_gives():
    """4096 features, 100 classes, 100 samples, float32: 1.6 MB, against 33.6 MB as a triangle and 656 MB of FedAvg's rounds."""
    m, classes, n = 4096, 100, 100
    assert 4 * upload_numbers(n, m, classes, classes) == pytest.approx(1.66e6, rel=0.01)
    assert 4 * m * (m + 1) // 2 == pytest.approx(33.6e6, rel=0.01)
    assert 2 * 200 * 4 * m * classes == pytest.approx(656e6, rel=0.01)


# --- what an upload gives away ---


def test_many_samples_have_one_gram_which_is_all_that_an_argument_from_it_shows(federation):
    """Rotated rows have the same Gram matrix: the argument of papers that call such uploads private. It hides which samples they
    were only from those who know nothing of the feature map; the tests below rebuild them."""
    F, _ = features(federation.clients[0])
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((len(F), len(F))))[0]
    np.testing.assert_allclose((rotation @ F).T @ (rotation @ F), F.T @ F, atol=1e-9)
    assert np.abs(rotation @ F - F).max() > 1


@pytest.mark.parametrize("g", [1e-3, 1.0, 100.0])
def test_a_class_of_one_sample_is_read_off_what_afl_publishes(federation, g):
    """The paper's upload is C = F'F + g I and W = C^-1 F'Y: C W is F'Y, whose column for a class of one sample is it."""
    found = 0
    for client in federation:
        F, Y = features(client)
        sent = F.T @ F + g * np.eye(M)
        cross = sent @ np.linalg.solve(sent, F.T @ Y)
        for c in np.flatnonzero(Y.sum(0) == 1):
            sample = F[Y[:, c] == 1][0]
            np.testing.assert_allclose(cross[:, c], sample, atol=1e-6)
            found += 1
    assert found


def test_with_fewer_samples_than_features_a_gram_says_whether_a_sample_is_in_it(federation):
    """Its range is the samples' span: whoever has a candidate knows at once."""
    client = min(federation, key=lambda client: client.train().n)
    F, _ = features(client)
    others, _ = features(max(federation, key=lambda client: client.train().n))
    assert len(F) < M
    values, vectors = np.linalg.eigh(F.T @ F)
    null = vectors[:, values < 1e-9 * values.max()]
    outside = lambda rows: np.linalg.norm(rows @ null, axis=1) / np.linalg.norm(rows, axis=1)  # noqa: E731
    assert outside(F).max() < 1e-5
    assert outside(others).min() > 1e-3


def test_two_clients_that_share_a_sum_have_each_others_moments(federation):
    """FedHiP broadcasts the sum, of which a client can take its own away."""
    two = gf.Federation(federation.clients[:2], federation.task)
    (F, Y), (G, Z) = (features(client) for client in two)
    result = gf.run(gf.FedHiP(features=MAP, penalty=1.0), two)
    sent: Any = result.run.broadcast
    lower = np.tril(sent.factor.lower)
    total = lower @ lower.T - np.eye(M)
    np.testing.assert_allclose(total - F.T @ F, G.T @ G, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose((total + np.eye(M)) @ sent.weights - F.T @ Y, G.T @ Z, rtol=1e-6, atol=1e-5)


def test_under_a_secure_sum_the_head_is_the_same(federation):
    """And the head is the same: see tests/privacy/test_secure_sum.py for what the server sees instead."""
    pytest.importorskip("cryptography")
    hidden = gf.run(gf.AFL(features=MAP, penalty=1.0), federation, secure=gf.SecureSum())
    plain = gf.run(gf.AFL(features=MAP, penalty=1.0), federation)
    np.testing.assert_allclose(hidden.global_head.streams[0].weights, plain.global_head.streams[0].weights, rtol=1e-9, atol=1e-12)


# --- the page ---


def test_every_file_and_test_that_the_page_names_is_there():
    root = Path(__file__).parents[1]
    page = (root / "docs" / "papers.md").read_text()
    named = re.findall(r"`((?:\w+/)*test_\w+\.py)::(\w+)`", page)
    assert len(named) > 40
    for path, test in named:
        assert f"def {test}(" in (root / "tests" / path).read_text(), f"{path}::{test}"
    files = re.findall(r"`((?:\w+/)+\w+\.py)`", page)
    for path in files:
        homes = root / "src" / "gramfold" / path, root / "tests" / path, root / path
        assert any(home.exists() for home in homes), path
