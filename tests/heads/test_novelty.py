"""Novelty is the leverage, exact where features are few, and compares with training samples that were left out."""

import numpy as np
import pytest

import gramfold as gf
from gramfold.heads import Novelty
from gramfold.heads.novelty import COLUMNS, EXACT, Root, directions, root_of
from gramfold.solve.ridge import factorise
from gramfold.wire import Packet


def test_with_few_features_it_ranks_as_the_leverage_does(rng):
    rows, asked = rng.standard_normal((200, 12)) @ rng.standard_normal((12, 12)), rng.standard_normal((50, 12)) * 3
    gram = rows.T @ rows + 0.7 * np.eye(12)
    root = Root(factorise(gram).solve_transposed(directions(12)))
    told = Novelty.of(root, rows, seen=True)
    leverage = np.einsum("ij,ij->i", asked @ np.linalg.inv(gram), asked)
    own = np.einsum("ij,ij->i", rows @ np.linalg.inv(gram), rows)
    less_unusual = (own / (1 - own) < leverage[:, None]).mean(1)
    np.testing.assert_allclose(told(asked), less_unusual, atol=0.011)  # 99 quantiles of 200 samples


def test_the_root_of_some_samples_is_that_of_their_gram_matrix(rng):
    for n in (5, 60):
        rows = rng.standard_normal((n, 20))
        gram = rows.T @ rows
        expected = np.linalg.inv(gram + np.trace(gram) / 20 * np.eye(20))
        root = root_of(rows).along
        np.testing.assert_allclose(root @ root.T, expected, rtol=1e-8, atol=1e-12)


def test_a_sketch_has_a_fixed_number_of_columns_and_is_right_on_average(rng):
    rows = rng.standard_normal((100, 4 * EXACT))
    root, lengths = root_of(rows).along, []
    assert root.shape == (4 * EXACT, COLUMNS)
    gram = rows.T @ rows
    expected = np.einsum("ij,ij->i", rows @ np.linalg.inv(gram + np.trace(gram) / (4 * EXACT) * np.eye(4 * EXACT)), rows)
    lengths = ((rows @ root) ** 2).sum(1)
    assert lengths.mean() == pytest.approx(expected.mean(), rel=3 * np.sqrt(2 / COLUMNS / 4))


@pytest.mark.parametrize("method", ["local", "afl", gf.PACE(learn=False), gf.PACE(learn=False, regime="sketch"), gf.PACE()])
def test_new_samples_are_as_usual_as_training_ones_and_strange_ones_are_not(method, rng, tmp_path):
    axes = rng.standard_normal((3, 10))
    X = rng.standard_normal((800, 3)) @ axes + 0.3 * rng.standard_normal((800, 10))
    y = (X @ rng.standard_normal(10) > 0).astype(int)
    head = gf.run(method, gf.Federation.split(X[:600], y[:600], clients=4, partition="iid")).heads["1"]
    usual, strange = head.novelty(X[600:]), head.novelty(rng.standard_normal((200, 10)) * X.std(0))
    assert 0.35 < usual.mean() < 0.68
    assert strange.mean() > 0.85
    assert ((usual >= 0) & (usual < 1)).all()
    head.save(tmp_path / "head")
    np.testing.assert_array_equal(gf.load_head(tmp_path / "head").novelty(X[600:]), usual)


def test_who_does_not_know_says_so_and_what_cannot_be_is_refused(federation):
    result = gf.run("afl", federation)
    assert result.global_head is not None
    with pytest.raises(gf.GramfoldError, match="afl does not know what training samples look like"):
        result.global_head.novelty(np.zeros((1, 8)))
    packet = result.heads["1"].pack()
    packet = Packet({**packet.arrays, "familiar.usual": packet["familiar.usual"][::-1].copy()}, packet.meta)
    with pytest.raises(gf.GramfoldError, match="novelty"):
        gf.Head.unpack(packet)
    with pytest.raises(gf.GramfoldError, match="NaN"):
        result.heads["1"].novelty(np.full((1, 8), np.nan))
