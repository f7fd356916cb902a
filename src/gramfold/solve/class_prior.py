"""How much a client may believe its own class counts: an empirical-Bayes prior, its strength told by the counts themselves.

The counts are a draw from shares that are a draw from Dirichlet(a pi), pi being everybody's shares. How alike clients are, a, is
not known: it is averaged over, each value by how well it explains the client's counts. A client with everybody's mix ends up at
pi, one with two classes of a hundred at its own counts, one with five samples in between. No other client's counts enter, only
their sum, so that it does not matter how the others are cut.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

STRENGTHS = np.logspace(-1, 5, 49)
"""The values of a."""
DOUBT = 3.0
"""The hyperprior's standard deviation of log a, around log C: a pseudo-sample a class, give or take a factor of 20."""
OWN = 30.0
"""Of a strength a, a client of n samples believes the part (a + OWN) / (a + OWN + 4 n). Its next samples follow its own past more
than a fresh draw would: where test splits have exactly its own shares none of a is best, with fresh draws all of it, and this
loses little to either (docs/data.md)."""
LEAST = 2.0
"""So many pseudo-samples, or all of a smaller a, are believed in any case: a class that a client has not met yet may come."""


@dataclass(frozen=True)
class ClassPrior:
    """The prior of a client with these counts (C), sums of weights perhaps; `shares` (C) are everybody's."""

    counts: np.ndarray
    shares: np.ndarray
    weights: np.ndarray
    """Of the strengths, up to a constant, as logarithms: how well each explains the counts."""

    @classmethod
    def of(cls, counts: np.ndarray, pooled: np.ndarray) -> "ClassPrior":
        """From the client's counts and everybody's; one pseudo-sample is spread over the classes that nobody has."""
        counts, classes = counts.astype(float), len(counts)
        shares = (pooled + 1.0 / classes) / (float(pooled.sum()) + 1.0)
        spread = STRENGTHS[:, None] * shares
        explained = gammaln(STRENGTHS) - gammaln(STRENGTHS + counts.sum())
        explained += (gammaln(counts + spread) - gammaln(spread)).sum(1)
        hyperprior = -0.5 * ((np.log(STRENGTHS) - np.log(classes)) / DOUBT) ** 2
        return cls(counts, shares, explained + hyperprior)

    @property
    def log_shares(self) -> np.ndarray:
        """The logarithms of the shares (C) that the client's next sample is expected to follow."""
        return np.asarray(self._logs(self.weights[None], self.counts[None])[0])

    def left_out(self, codes: np.ndarray, once: np.ndarray, fresh: bool = False) -> np.ndarray:
        """The same for each sample (n x C) from the others alone: one of class `codes` that counts `once` is left out. `fresh`:
        with the strength that a fresh draw has, all of a; for a left-out sample that is the honest prior."""
        cases, which = np.unique(np.stack([codes.astype(float), once]), axis=1, return_inverse=True)
        places, gone = cases[0].astype(int), np.minimum(cases[1], self.counts[cases[0].astype(int)])
        counts = np.repeat(self.counts[None], len(places), axis=0)
        counts[np.arange(len(places)), places] -= gone
        n, spread = self.counts.sum(), STRENGTHS * self.shares[places, None]
        before, after = self.counts[places, None], (self.counts[places] - gone)[:, None]
        weights = self.weights + gammaln(STRENGTHS + n) - gammaln(STRENGTHS + n - gone[:, None])
        weights = weights - gammaln(before + spread) + gammaln(after + spread)
        return np.asarray(self._logs(weights, counts, fresh)[which.reshape(-1)])

    def _logs(self, weights: np.ndarray, counts: np.ndarray, fresh: bool = False) -> np.ndarray:
        n = counts.sum(1, keepdims=True)
        own = (STRENGTHS + OWN) / (STRENGTHS + OWN + 4.0 * n)
        believed = STRENGTHS if fresh else np.maximum(STRENGTHS * own, np.minimum(STRENGTHS, LEAST))
        likely = np.exp(weights - weights.max(1, keepdims=True))
        likely /= likely.sum(1, keepdims=True)
        likely = likely / (n + believed)
        return np.asarray(np.log(counts * likely.sum(1, keepdims=True) + (likely * believed).sum(1, keepdims=True) * self.shares))
