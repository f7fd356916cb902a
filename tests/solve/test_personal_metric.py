"""The metric that clients' own functions have in common."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramfold.solve.personal_metric import Say, importance, next_root, say


def clients(seed: int, count: int = 12, n: int = 40, d: int = 6) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every client's own wave along the third column, and its own level of the others."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        rows = rng.standard_normal((n, d)) + rng.standard_normal(d)
        waves = np.sin(rng.uniform(1, 3) * rows[:, 2] + rng.uniform(0, 6)) * rng.choice([-1, 1])
        made.append((rows, waves[:, None] + 0.1 * rng.standard_normal((n, 1))))
    return made


def summed(says: list[Say]) -> Say:
    return Say(*(sum(getattr(one, name) for one in says) for name in ("products", "within", "loss", "n")))


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_direction_that_differs_everywhere_in_its_own_way(seed: int) -> None:
    data, root, losses = clients(seed), np.eye(6), []
    for _ in range(4):
        total = summed([say(*one, root) for one in data])
        losses.append(total.loss)
        root = next_root(total.products, total.within, total.n)
    assert importance(root, total.within)[2] > 0.95
    assert losses[1] < losses[0] - 50  # nats
    assert losses[2] < losses[1]


def test_where_nothing_follows_from_anything_nobody_says_much() -> None:
    rng = np.random.default_rng(0)
    data = [(rng.standard_normal((40, 6)), rng.standard_normal((40, 1))) for _ in range(12)]
    says = [say(*one, np.eye(6)) for one in data]
    loud = [say(*one, np.eye(6)) for one in clients(0)]
    assert summed(says).loss > 0.2 * summed(loud).loss  # the best of ninety-five fits flatters a client by a nat or two
    assert np.trace(summed(says).products) < 0.25 * np.trace(summed(loud).products)


@given(st.integers(0, 100), st.floats(0.1, 10.0), st.floats(-5, 5))
@settings(max_examples=10)
def test_units_and_offsets_of_targets_say_nothing(seed: int, unit: float, offset: float) -> None:
    rows, targets = clients(seed, 1)[0]
    one, other = say(rows, targets, np.eye(6)), say(rows + offset, unit * targets + offset, np.eye(6))
    np.testing.assert_allclose(other.products, one.products, rtol=1e-3, atol=1e-3 * abs(one.products).max())
    assert other.loss == pytest.approx(one.loss, abs=0.05)


def test_a_client_of_few_samples_has_no_say() -> None:
    rows, targets = clients(0, 1)[0]
    few = say(rows[:4], targets[:4], np.eye(6))
    assert few.n == 0
    assert not few.products.any()


@given(st.integers(0, 100))
@settings(max_examples=10)
def test_samples_vary_by_their_number_of_columns_along_it(seed: int) -> None:
    total = summed([say(*one, np.eye(6)) for one in clients(seed, 3)])
    root = next_root(total.products, total.within, total.n)
    assert np.trace(root @ total.within @ root) / total.n == pytest.approx(6.0)
    assert importance(root, total.within).sum() == pytest.approx(1.0)
