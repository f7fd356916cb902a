"""Which groups there are among clients, from a point for each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from gramfold.solve.groups import grouped, left_out_evidence, left_out_means, nearest_centres


def clients(seed: int, groups: int, each: int, apart: float, q: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, their noise, and the groups that they were drawn from."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(groups), each)
    noise = 1.0 / rng.integers(20, 400, len(labels))
    centres = apart * rng.standard_normal((groups, q))
    return centres[labels] + rng.standard_normal((len(labels), q)) * noise[:, None] ** 0.5, noise, labels


@pytest.mark.parametrize("groups", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(3))
def test_groups_that_are_there_are_found(seed: int, groups: int) -> None:
    points, noise, labels = clients(seed, groups, 6, 0.3)
    found = grouped(points, noise)
    assert found.count == groups
    assert adjusted_rand_score(labels, found.labels) == 1.0
    np.testing.assert_array_equal(nearest_centres(points, found.centres), found.labels)


@pytest.mark.parametrize("seed", range(10))
def test_of_clients_that_are_alike_none_are_made(seed: int) -> None:
    points, noise, _ = clients(seed, 1, 40, 0.0)
    assert grouped(points, noise).count == 1


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [10, 30])
def test_of_clients_of_very_different_sizes_that_are_alike_none_are_made(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = 1.0 / np.maximum(4, 150 * count * rng.dirichlet(np.full(count, 0.3)))
    assert grouped(rng.standard_normal((count, 32)) * noise[:, None] ** 0.5, noise).count == 1


@pytest.mark.parametrize("seed", range(4))
def test_groups_of_clients_of_very_different_sizes_are_found(seed: int) -> None:
    rng, labels = np.random.default_rng(seed), np.repeat(np.arange(3), 5)
    noise = 1.0 / np.maximum(4, 2250 * rng.dirichlet(np.full(15, 0.5)))
    points = 0.3 * rng.standard_normal((3, 32))[labels] + rng.standard_normal((15, 32)) * noise[:, None] ** 0.5
    assert adjusted_rand_score(labels, grouped(points, noise).labels) > 0.9


@pytest.mark.parametrize("seed", range(10))
def test_of_clients_that_all_differ_none_are_made(seed: int) -> None:
    points, noise, _ = clients(seed, 12, 1, 0.3)
    assert grouped(points, noise).count == 1


@given(st.integers(0, 1000), st.integers(2, 5))
@settings(max_examples=20)
def test_order_and_units_do_not_matter(seed: int, groups: int) -> None:
    points, noise, _ = clients(seed, groups, 4, 0.3)
    order = np.random.default_rng(seed).permutation(len(points))
    plain, other = grouped(points, noise), grouped(7.0 * points[order] + 3.0, 49.0 * noise[order])
    assert adjusted_rand_score(plain.labels[order], other.labels) == 1.0


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_left_out_means_are_those_of_the_others(seed: int) -> None:
    points, noise, labels = clients(seed, 3, 4, 0.3)
    means, uncertain, sizes = left_out_means(points, noise, labels)
    for k in (0, 5, 11):
        for g in range(3):
            others = (labels == g) & (np.arange(12) != k)
            share = 1.0 / (noise + 1.0 / np.mean(1.0 / noise))[others]
            share /= share.sum()
            np.testing.assert_allclose(means[k, g], share @ points[others], atol=1e-12)
            assert sizes[k, g] == others.sum()
            assert uncertain[k, g] == pytest.approx(share**2 @ noise[others])


def test_the_right_groups_are_likelier_than_wrong_ones() -> None:
    points, noise, labels = clients(0, 4, 6, 0.3)
    right = left_out_evidence(points, noise, labels)
    assert right > left_out_evidence(points, noise, np.roll(labels, 3)) + 50
    assert right > left_out_evidence(points, noise, labels // 2) + 50


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_clients_are_one_group(count: int) -> None:
    points, noise, _ = clients(0, count, 1, 1.0)
    assert grouped(points, noise).count == 1


def test_as_many_as_are_asked_for() -> None:
    points, noise, _ = clients(0, 4, 6, 0.3)
    assert grouped(points, noise, 2).count == 2
