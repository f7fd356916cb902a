"""No probability is surer than the samples behind it allow, at a price that is bounded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.heads import softmax, unforeseen_after
from gramfold.heads.probabilities import floored
from gramfold.wire import Packet


@given(st.integers(1, 10**6), st.integers(2, 30), st.integers(0, 2**31), st.floats(0, 200))
def test_the_floor_costs_no_more_than_its_part_and_changes_no_decision(n, classes, seed, sure):
    rng = np.random.default_rng(seed)
    plain, codes = softmax(sure * rng.standard_normal((20, classes))), rng.integers(0, classes, 20)
    part = unforeseen_after(n)
    shares = floored(plain, part)
    np.testing.assert_allclose(shares.sum(1), 1.0, rtol=1e-12)
    assert shares.min() >= part / classes * (1 - 1e-12)
    assert (shares[np.arange(20), plain.argmax(1)] == shares.max(1)).all()
    own = np.arange(20), codes
    assert (-np.log(shares[own]) <= -np.log(np.maximum(plain[own], 1e-300)) - np.log(1 - part) + 1e-9).all()
    assert -np.log(shares[own]).max() <= np.log(2 * (n + 1) * classes) + 1e-9


@pytest.mark.parametrize("method", ["afl", "local", "apfl", "pace", "localclasses"])
def test_every_method_has_it_also_for_classes_that_a_client_lacks(method, rng):
    X = np.repeat(np.eye(3), 40, axis=0) * 50 + rng.standard_normal((120, 3)) * 0.01  # nothing could be clearer
    y = np.repeat([0, 1, 2], 40)
    federation = gf.Federation.from_clients({"a": (X[:80], y[:80]), "b": (X, y)})
    result = gf.run(method, federation)
    head = result.heads["a"]
    n = len(federation.clients[0].train().targets) if method == "local" else federation.task.samples
    assert head.unforeseen == unforeseen_after(n)
    if head.probabilistic:
        assert head.predict_proba(1e3 * X).min() >= unforeseen_after(n) / 3 * (1 - 1e-12)
    if result.global_head is not None:
        assert result.global_head.unforeseen == unforeseen_after(federation.task.samples)


def test_the_floor_is_in_the_file_and_checked(tmp_path, federation):
    head = gf.run("afl", federation).heads["1"]
    head.save(tmp_path / "head")
    assert gf.load_head(tmp_path / "head").unforeseen == head.unforeseen > 0
    packet = head.pack()
    packet = Packet(packet.arrays, {**packet.meta, "unforeseen": 1.5})
    with pytest.raises(gf.GramfoldError, match=r"cannot spread 1\.5"):
        gf.Head.unpack(packet)
