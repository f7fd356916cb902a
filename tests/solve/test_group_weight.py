"""How much more a group's samples count for its clients."""

import numpy as np
import pytest

from gramfold.solve.group_weight import Sums, group_weight
from gramfold.solve.ridge import ridge


def group(rng: np.random.Generator, weights: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    rows = rng.standard_normal((n, len(weights)))
    return rows, rows @ weights + 0.5 * rng.standard_normal((n, 1))


def case(seed: int, apart: float, n: int = 60) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((10, 1))
    own = [shared + apart * rng.standard_normal((10, 1)) for _ in range(6)]
    return [group(rng, weights, n) for weights in own], np.stack(own)


def sums(rows: np.ndarray, targets: np.ndarray) -> Sums:
    return Sums(rows.T @ rows, rows.T @ targets, (targets**2).sum(0), len(rows))


@pytest.mark.parametrize("seed", range(5))
def test_groups_that_are_alike_count_once(seed: int) -> None:
    data, _ = case(seed, 0.0)
    total = sums(*(np.concatenate(part) for part in zip(*data, strict=True)))
    for one in data:
        assert group_weight(total.gram, total.cross, 1.0, sums(*one)).weight <= 1.0


@pytest.mark.parametrize("seed", range(5))
def test_groups_that_differ_count_for_more_and_are_the_better_for_it(seed: int) -> None:
    data, own = case(seed, 1.0)
    total = sums(*(np.concatenate(part) for part in zip(*data, strict=True)))
    for one, weights in zip(data, own, strict=True):
        part = sums(*one)
        found = group_weight(total.gram, total.cross, 1.0, part)
        assert found.weight >= 8
        assert found.gain > 10
        full = lambda a, part=part: ridge(total.gram + a * part.gram, total.cross + a * part.cross, 1.0)  # noqa: E731
        assert ((full(found.weight) - weights) ** 2).sum() < 0.3 * ((full(0.0) - weights) ** 2).sum()


def test_a_group_of_one_sample_counts_once() -> None:
    data, _ = case(0, 1.0)
    total = sums(*(np.concatenate(part) for part in zip(*data, strict=True)))
    assert group_weight(total.gram, total.cross, 1.0, sums(data[0][0][:1], data[0][1][:1])).weight == 0.0
