"""Small random labelled feature sets with random client splits, and what tests compare them by."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import gramfold as gf

PENALTIES = st.floats(1e-2, 10.0)
"""With features of unit variance this keeps condition numbers below 1e5, so that 1e-9 is a fair demand of float64."""


def relative(value: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference in units of the largest expected entry."""
    value, expected = np.asarray(value), np.asarray(expected)
    assert value.shape == expected.shape
    if not expected.size:
        return 0.0
    difference = np.abs(value - expected).max()
    return float(difference / max(np.abs(expected).max(), np.finfo(float).tiny)) if difference else 0.0


def distance(a: gf.Moments, b: gf.Moments) -> float:
    """The largest relative difference of two moments' arrays; infinite where what must be exact is not."""
    if (a.n, a.labels, a.fingerprint) != (b.n, b.labels, b.fingerprint):
        return np.inf
    return max(relative(*pair) for pair in ((a.gram, b.gram), (a.cross, b.cross), (a.squares, b.squares)))


@dataclass(frozen=True)
class Problem:
    """Samples with class codes and owners (0..clients-1, each with at least one sample)."""

    X: np.ndarray
    codes: np.ndarray
    classes: int
    owners: np.ndarray
    seed: int

    @property
    def Y(self) -> np.ndarray:  # noqa: N802 - as in the papers
        return np.eye(self.classes)[self.codes]

    @property
    def clients(self) -> int:
        return int(self.owners.max()) + 1

    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for k in range(self.clients):
            yield self.X[self.owners == k], self.codes[self.owners == k]

    def moments(self) -> list[gf.Moments]:
        return [gf.Moments.from_features(X, y, classes=self.classes) for X, y in self.parts()]

    def pooled(self) -> gf.Moments:
        return gf.Moments.from_features(self.X, self.codes, classes=self.classes)

    def federation(self, order: Sequence[int] | None = None) -> gf.Federation:
        """The clients, all of their samples for training and the same again for testing."""
        data = {str(k): (*part, *part) for k, part in enumerate(self.parts())}
        names = [str(k) for k in order] if order is not None else list(data)
        return gf.Federation.from_clients(
            {name: data[name] for name in names}, labels=range(self.classes), random_state=self.seed
        )


@st.composite
def problems(
    draw: st.DrawFn,
    samples: tuple[int, int] = (1, 40),
    width: tuple[int, int] = (1, 12),
    clients: tuple[int, int] = (1, 6),
    classes: tuple[int, int] = (2, 4),
) -> Problem:
    n, d = draw(st.integers(*samples)), draw(st.integers(*width))
    k, c = draw(st.integers(clients[0], min(clients[1], n))), draw(st.integers(*classes))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    owners = rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, n - k)]))
    return Problem(rng.standard_normal((n, d)), rng.integers(0, c, n), c, owners, seed)
