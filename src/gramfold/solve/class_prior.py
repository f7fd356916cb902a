"""How far a client's class prior follows its own counts: an empirical-Bayes prior, whose strength the counts themselves tell.

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
"""Of a strength a, a client of n samples keeps the part (a + OWN) / (a + OWN + 4 n). Its next samples follow its own past more
than a fresh draw would: where test splits have exactly its own shares none of a is best, with fresh draws all of it, and this
loses little to either (docs/data.md)."""
LEAST = 2.0
"""So many pseudo-samples, or all of a smaller a, are kept in any case: a class that a client has not met yet may come."""


@dataclass(frozen=True)
class ClassPrior:
    """The priors of clients with these counts (clients x C), sums of weights perhaps; `shares` (C) are everybody's."""

    counts: np.ndarray
    shares: np.ndarray
    weights: np.ndarray
    """Of the strengths (clients x strengths), up to a constant, as logarithms: how well each explains the counts."""

    @classmethod
    def of(cls, counts: np.ndarray, pooled: np.ndarray) -> "ClassPrior":
        """From the clients' counts and everybody's; one pseudo-sample is spread over the classes that nobody has."""
        counts, classes = counts.astype(float), counts.shape[-1]
        shares = (pooled + 1.0 / classes) / (float(pooled.sum()) + 1.0)
        hyperprior = -0.5 * ((np.log(STRENGTHS) - np.log(classes)) / DOUBT) ** 2
        explained = hyperprior + gammaln(STRENGTHS) - gammaln(STRENGTHS + counts.sum(1, keepdims=True))
        whose, places = np.nonzero(counts)  # a class without samples explains nothing
        spread = STRENGTHS * shares[places, None]
        told = gammaln(counts[whose, places][:, None] + spread) - gammaln(spread)
        np.add.at(explained, whose, told)
        return cls(counts, shares, explained)

    @property
    def log_shares(self) -> np.ndarray:
        """The logarithms of the shares (clients x C) that a client's next sample is expected to follow."""
        return self._logs(self.weights, self.counts)

    def left_out(self, whose: np.ndarray, codes: np.ndarray, once: np.ndarray, fresh: bool = False) -> tuple[np.ndarray, ...]:
        """The same for samples of the clients `whose`, by the others alone: one of class `codes` that counts `once` is left out.
        Samples that are alike share one: these (cases x C), and the case of each sample. `fresh`: with the strength that a fresh
        draw has, all of a; for a left-out sample that is the right prior."""
        classes = self.counts.shape[1]
        cases, case = _alike(whose * classes + codes, once)
        client, place = cases[0].astype(int) // classes, cases[0].astype(int) % classes
        counts, rows = self.counts[client], np.arange(len(client))
        before = counts[rows, place, None]
        gone = np.minimum(cases[1][:, None], before)
        counts[rows, place] -= gone[:, 0]
        n, spread = self.counts.sum(1)[client, None], STRENGTHS * self.shares[place, None]
        weights = self.weights[client] + gammaln(STRENGTHS + n) - gammaln(STRENGTHS + n - gone)
        weights = weights - gammaln(before + spread) + gammaln(before - gone + spread)
        return self._logs(weights, counts, fresh), case

    def _logs(self, weights: np.ndarray, counts: np.ndarray, fresh: bool = False) -> np.ndarray:
        n = counts.sum(1, keepdims=True)
        own = (STRENGTHS + OWN) / (STRENGTHS + OWN + 4.0 * n)
        kept = STRENGTHS if fresh else np.maximum(STRENGTHS * own, np.minimum(STRENGTHS, LEAST))
        likely = np.exp(weights - weights.max(1, keepdims=True))
        likely /= likely.sum(1, keepdims=True)
        likely = likely / (n + kept)
        return np.asarray(np.log(counts * likely.sum(1, keepdims=True) + (likely * kept).sum(1, keepdims=True) * self.shares))


def _alike(kinds: np.ndarray, once: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different pairs of kind and weight (2 x cases), and which of them each sample is."""
    if (once == 1.0).all():
        known, case = np.unique(kinds, return_inverse=True)
        return np.stack([known.astype(float), np.ones(len(known))]), case.reshape(-1)
    cases, case = np.unique(np.stack([kinds.astype(float), once]), axis=1, return_inverse=True)
    return cases, case.reshape(-1)
