"""How clients differ, found out: groups and the personal metric in whole runs, and every law that runs keep."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits

import gramfold as gf
from gramfold.errors import GramfoldError
from gramfold.export import write_onnx
from gramfold.methods.differences.groups import DIRECTIONS, _whitening

FEATURES = "bias+linear"
DOMAINS, EACH, CLASSES = 3, 4, 4


def _classes(rng: np.random.Generator, domain: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples of a domain: classes lie elsewhere in each, and all is shifted."""
    fixed = np.random.default_rng(domain)
    centres, shift = 1.5 * fixed.standard_normal((CLASSES, 12)), fixed.standard_normal(12)
    codes = rng.integers(0, CLASSES, n)
    codes[:CLASSES] = np.arange(CLASSES)
    return centres[codes] + shift + 1.5 * rng.standard_normal((n, 12)), codes


@cache
def classes(domains: int = DOMAINS) -> gf.Federation:
    rng = np.random.default_rng(0)
    clients = {f"{d}/{i}": (*_classes(rng, d, 40), *_classes(rng, d, 60)) for d in range(domains) for i in range(EACH)}
    return gf.Federation.from_clients(clients, labels=list(range(CLASSES)))


@cache
def waves(seed: int = 0, same: bool = False) -> gf.Federation:
    """Values: every client's own wave of the fourth of eight columns; `same`: everybody's."""
    rng = np.random.default_rng(seed)

    def client(pitch: float, phase: float) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.standard_normal((120, 8)) * np.logspace(-1, 1, 8)
        return rows, np.sin(pitch * rows[:, 3] / np.logspace(-1, 1, 8)[3] + phase) + 0.05 * rng.standard_normal(120)

    clients = {}
    for i in range(12):
        X, y = client(1.0, 0.0) if same else client(rng.uniform(2, 4), rng.uniform(0, 6))
        clients[f"{i:02d}"] = X[:80], y[:80], X[80:], y[80:]
    return gf.Federation.from_clients(clients, regression=True)


def run(method: gf.PACE, federation: gf.Federation, **options: object) -> gf.Result:
    return gf.run(method, federation, **options)


PLAIN = gf.PACE(features=FEATURES, groups=True)


def predictions(result: gf.Result, federation: gf.Federation) -> np.ndarray:
    return np.concatenate([result.heads[client.name].scores(client.test().inputs) for client in federation])


# --- what is found ---


def test_groups_are_the_domains_and_everybody_is_the_better_for_them():
    federation = classes()
    found, without = run(PLAIN, federation), run(gf.PACE(features=FEATURES, groups=False), federation)
    groups = found.groups
    assert found.chosen["groups"] == DOMAINS
    assert len({(name.split("/")[0], group) for name, group in groups.items()}) == DOMAINS
    assert found.mean_accuracy > without.mean_accuracy + 0.03
    assert without.rounds == 1
    assert found.rounds == 3  # two small ones before the moments
    assert not without.groups


def test_no_groups_are_made_of_clients_that_are_alike():
    federation = classes(1)
    found, without = run(PLAIN, federation), run(gf.PACE(features=FEATURES, groups=False), federation)
    assert "groups" not in found.chosen
    np.testing.assert_array_equal(predictions(found, federation), predictions(without, federation))


@pytest.mark.parametrize("features", ["bias+linear", "columns+bias+linear"])
@pytest.mark.parametrize(("data", "clients"), [(load_digits, 150), (load_breast_cancer, 100)])
def test_no_groups_are_made_of_many_small_clients_that_are_alike(data, clients, features):
    """Points of so few samples are mostly chance, in columns some of which hardly vary, or follow from others."""
    X, y = data(return_X_y=True)
    federation = gf.Federation.split(X, y, clients=clients, partition="iid", random_state=0)
    assert "groups" not in run(gf.PACE(features=features, groups=True), federation).chosen


def test_groups_by_hand_are_those_that_were_found():
    federation = classes()
    given = {client.name: f"scanner {client.name[0]}" for client in federation}
    by_hand, found = run(gf.PACE(features=FEATURES, groups=given), federation), run(PLAIN, federation)
    assert by_hand.groups == given
    assert by_hand.rounds == 1
    np.testing.assert_allclose(predictions(by_hand, federation), predictions(found, federation), atol=1e-9)


def test_a_run_with_groups_by_hand_is_saved_and_a_late_client_may_be_named_beforehand(tmp_path):
    federation = classes()
    given = {client.name: f"scanner {client.name[0]}" for client in federation} | {"later": "scanner 1"}
    result = run(gf.PACE(features=FEATURES, groups=given), federation)
    result.save(tmp_path / "run")
    back, rng = gf.load_result(tmp_path / "run"), np.random.default_rng(9)
    assert back.groups == result.groups
    X, y = _classes(rng, 1, 30)
    assert back.join(X, y, name="later").chosen["group"] == 1
    assert "group" not in back.join(X, y, name="nobody knows").chosen


def test_what_is_asked_of_wide_inputs_is_small_and_finds_the_domains():
    """The question is of 128 directions of them, so that it is a fraction of their moments."""
    rng, turn = np.random.default_rng(0), np.random.default_rng(1).standard_normal((12, 600))
    clients = {}
    for domain in range(DOMAINS):
        for i in range(EACH):
            X, y = _classes(rng, domain, 80)
            X = X @ turn + rng.standard_normal((80, 600))
            clients[f"{domain}/{i}"] = X[:50], y[:50], X[50:], y[50:]
    federation = gf.Federation.from_clients(clients, labels=list(range(CLASSES)))
    found, without = run(PLAIN, federation), run(gf.PACE(features=FEATURES, groups=False), federation)
    assert found.chosen["groups"] == DOMAINS
    assert len({(name.split("/")[0], group) for name, group in found.groups.items()}) == DOMAINS
    asked = 8 * (129**2 + 129 * CLASSES + 64 * 34)
    assert found.uplink_bytes < without.uplink_bytes + 1.05 * asked * len(clients)
    late = found.join(*(part[:40] for part in clients["2/0"][:2]), name="late")
    assert late.chosen["group"] == found.groups["2/1"]


@given(st.integers(0, 1000), st.sampled_from([5, 40, 129, 300]), st.sampled_from([3, 500]))
@settings(max_examples=15, deadline=None)
def test_chance_moves_points_as_far_in_every_direction(seed, width, n):
    """Samples' spread along the directions of a point is the identity, or, of few samples, that of the directions there are."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, width)) * np.logspace(-3, 1, width)
    scatter = rows.T @ rows / n
    whiten = _whitening([scatter], seed)
    assert whiten.shape == (width, min(DIRECTIONS, n, width))
    np.testing.assert_allclose(
        whiten.T @ scatter @ whiten, np.eye(whiten.shape[1]), atol=1e-6
    )  # values a billionth of the largest


def test_a_client_that_is_named_in_no_group_has_everybodys_model():
    federation = classes()
    given = {client.name: client.name[0] for client in federation if not client.name.startswith("0")}
    result = run(gf.PACE(features=FEATURES, groups=given), federation)
    assert set(result.groups) == set(given)
    assert len(result.heads) == len(federation)


def test_the_column_that_everybody_follows_in_its_own_way_is_found():
    federation = waves()
    found, without = run(gf.PACE(), federation), run(gf.PACE(personal=False), federation)
    columns = found.chosen["personal_columns"]
    assert next(iter(columns)) == "3"
    assert columns["3"] > 0.9
    assert found.mean_rmse < 0.6 * without.mean_rmse


def test_where_all_follow_one_function_nobody_is_the_worse_for_asking():
    federation = waves(same=True)
    found, without = run(gf.PACE(), federation), run(gf.PACE(groups=False, personal=False), federation)
    assert found.mean_rmse < 1.02 * without.mean_rmse


@pytest.mark.parametrize("federation", [classes(), waves(), waves(same=True)], ids=["shifted", "own waves", "one wave"])
def test_nobody_is_worse_off_for_joining(federation):
    """By left-out likelihood, which is known before any test: but for what the prior of a candidate costs, log 1/q of some nats
    among all of a client's samples."""
    result = run(gf.PACE(features=FEATURES, groups=True) if federation is classes() else gf.PACE(), federation)
    gains = result.gained_by_joining
    assert set(gains) == {client.name for client in federation}
    for client in federation:
        assert gains[client.name] * client.train().n > -8.0  # nats


# --- what runs keep to ---


def test_a_late_client_finds_its_group():
    federation = classes()
    result = run(PLAIN, federation)
    rng = np.random.default_rng(9)
    for domain in range(DOMAINS):
        head = result.join(*_classes(rng, domain, 30), name=f"late {domain}")
        assert head.chosen["group"] == result.groups[f"{domain}/0"]


def test_clients_in_another_order_have_the_same_heads():
    federation = classes()
    turned = {c.name: (*c.train(), *c.test()) for c in reversed(list(federation))}
    other = gf.Federation.from_clients(turned, labels=list(range(CLASSES)))
    one, two = run(PLAIN, federation), run(PLAIN, other)
    for client in federation:
        X = client.test().inputs
        np.testing.assert_allclose(two.heads[client.name].scores(X), one.heads[client.name].scores(X), atol=1e-9)


@pytest.mark.parametrize("federation", [classes(), waves()], ids=["classes", "values"])
def test_a_secure_sum_finds_the_same(federation):
    method = (
        gf.PACE(features=FEATURES, groups=True)
        if federation is classes()
        else gf.PACE(features="columns+bias+linear+fourier:32@learned", personal=True)
    )
    plain, secure = run(method, federation), run(method, federation, secure=gf.SecureSum())
    assert secure.groups == plain.groups
    assert secure.chosen.get("personal_columns") == plain.chosen.get("personal_columns")
    # whole numbers of 2^-30 and the like, of which a metric is made, of which features are made, of which a head is made
    np.testing.assert_allclose(predictions(secure, federation), predictions(plain, federation), atol=2e-3)


def test_forgetting_a_client_takes_its_moments_out_of_its_group():
    federation = classes()
    result = run(PLAIN, federation)
    with pytest.warns(gf.LearnedFeaturesWarning, match="groups=False"):
        left = result.without("0/0", federation)
    total, before = left.run.total, result.run.total
    group = result.groups["0/0"]
    assert total.n == before.n - 40
    assert total.of_group(group).n == before.of_group(group).n - 40
    again = left.update(add={"0/0": tuple(federation_client(federation, "0/0").train())})
    for client in federation:
        X = client.test().inputs
        ours, theirs = again.refresh(federation).heads[client.name].scores(X), result.heads[client.name].scores(X)
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        break


def test_forgetting_groups_given_by_hand_is_never_having_seen():
    federation = classes()
    given = {client.name: client.name[0] for client in federation}
    method = gf.PACE(features=FEATURES, groups=given)
    left = run(method, federation).without("0/0", federation)
    never = gf.Federation.from_clients(
        {c.name: (*c.train(), *c.test()) for c in federation if c.name != "0/0"}, labels=list(range(CLASSES))
    )
    expected = run(method, never)
    for client in never:
        X = client.test().inputs
        np.testing.assert_allclose(left.heads[client.name].scores(X), expected.heads[client.name].scores(X), atol=1e-6)


def federation_client(federation: gf.Federation, name: str) -> gf.federation.Client:
    return next(client for client in federation if client.name == name)


@pytest.mark.parametrize("federation", [classes(), waves()], ids=["classes", "values"])
def test_a_saved_run_goes_on(federation, tmp_path):
    method = gf.PACE(features=FEATURES, groups=True) if federation is classes() else gf.PACE()
    result = run(method, federation)
    result.save(tmp_path / "run")
    back = gf.load_result(tmp_path / "run")
    client = next(iter(federation))
    X = client.test().inputs
    np.testing.assert_array_equal(back.heads[client.name].scores(X), result.heads[client.name].scores(X))
    assert back.groups == result.groups
    assert back.gained_by_joining == result.gained_by_joining
    train = client.train()
    targets = train.targets if federation is classes() else train.targets[:, 0]
    one, two = (each.join(train.inputs, targets).scores(X) for each in (back, result))
    np.testing.assert_allclose(one, two, atol=1e-12)


def test_a_personal_head_is_a_program(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    federation = waves()
    result = run(gf.PACE(), federation)
    client = next(iter(federation))
    head, X = result.heads[client.name], client.test().inputs
    write_onnx(head, tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "head.onnx", providers=["CPUExecutionProvider"])
    (name,) = [each.name for each in session.get_inputs()]
    kind = np.float64 if "double" in session.get_inputs()[0].type else np.float32
    found = session.run(None, {name: X.astype(kind)})[0].reshape(-1)
    np.testing.assert_allclose(found, head.scores(X)[:, 0], atol=1e-4)


def test_differential_privacy_is_refused_in_words():
    for groups in (True, {client.name: client.name[0] for client in classes()}):
        with pytest.raises(GramfoldError, match=r"leave out groups|one round of moments"):
            run(gf.PACE(features=FEATURES, groups=groups), classes(), dp=gf.DP(eps=8.0))
    result = run(gf.PACE(), classes(), dp=gf.DP(eps=8.0))
    assert result.rounds == 1
    assert not result.groups


@pytest.mark.parametrize("wrong", ["domains", 3, {"a": 1}, {}])
def test_groups_that_are_none_are_refused(wrong):
    with pytest.raises(GramfoldError, match="group of each client by name"):
        gf.PACE(groups=wrong)
