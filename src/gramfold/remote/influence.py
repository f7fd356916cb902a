"""How much of a sum is one site's: its share of the samples, which the server can bound, and how far the model moves without it.

Samples that are made up cannot be told from real ones, but nobody needs to be most of a federation: with `max-share` a site that
has more of all samples is excluded, and named. What is left is shown: with S and M the summed moments and W the ridge solution,
W_-k that without site k, it moves the scores by |F (W - W_-k)| of |F W|, over the samples F of all, which takes S alone.
"""

from collections.abc import Mapping

import numpy as np

from gramfold.errors import RemoteError
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.remote.peers import LOG

MOST_BYTES = 2**26
"""Of uploads that are kept for this while the others come; with more it is not shown."""
MOST_WORK = 2e11
"""Multiplications; beyond that it is not shown."""
MOST_SHOWN = 5
"""Sites whose influence is in the log; that of all is in result.json."""
PENALTY = 1e-3
"""The ridge penalty, relative to the mean square of a feature."""


def oversized(samples: Mapping[str, int], most: float) -> dict[str, str]:
    """The sites that have more than a share of all samples, the largest first and alone before the next is looked at; and why
    they are left out. Sites too few for anyone to have so little stay."""
    left, odd = dict(samples), dict[str, str]()
    while left and most * len(left) > 1:
        name = max(sorted(left), key=left.__getitem__)
        share = left[name] / max(sum(left.values()), 1)
        if share <= most:
            break
        odd[name] = f"it says that it has {share:.0%} of all samples, and `max-share` is {most:g}"
        del left[name]
    return odd


class Influence:
    """The sites of a run: what they said that they have, and how far the model moves without each."""

    def __init__(self, most: float) -> None:
        self.most = most
        """The largest share of all samples that one may have."""
        self.described: dict[str, int] = {}
        """How many samples each site said that it has, where sites were asked."""
        self.before: dict[str, int] = {}
        """How many samples each site had in the sum before this run."""
        self.moved: dict[str, float] = {}
        """How far the scores move without each site: 0 not at all, 1 as far as from nothing to all."""
        self._uploads: dict[str, Moments] = {}
        self._bytes = 0

    def describe(self, samples: Mapping[str, int]) -> dict[str, str]:
        """Who is left out of sites with so many samples, and why."""
        odd = oversized(samples, self.most)
        self.described = {name: n for name, n in samples.items() if name not in odd}
        return odd

    def check(self, site: str, samples: int) -> None:
        """Raise where a site brings more samples than it has described, or more of a sum that is there than it may."""
        described = self.described.get(site, samples)
        if samples > described:
            raise RemoteError(f"it described its data as {described} training samples, and its upload claims {samples}")
        reason = oversized({**self.before, site: samples}, self.most).get(site)
        if reason is not None and self.before.keys() - {site}:
            raise RemoteError(reason)

    def check_sum(self, samples: Mapping[str, int]) -> None:
        """Raise where a site is too much of a sum, which it cannot be taken out of."""
        for name, reason in oversized(samples, self.most).items():
            raise RemoteError(f"the sum is not released: of {name!r}, {reason}; run without it in another `out`")

    def keep(self, site: str, upload: object) -> None:
        """Keep a copy of an upload, if there is room for it."""
        if not isinstance(upload, Moments) or self._bytes > MOST_BYTES:
            return
        self._bytes += upload.wire_bytes
        self._uploads[site] = upload.copy()
        if self._bytes > MOST_BYTES:
            self._uploads.clear()

    def show(self, total: object, samples: Mapping[str, int]) -> None:
        """How far the model of this sum moves without each of its sites, before it is sent to anybody."""
        uploads, self._uploads, self._bytes = self._uploads, {}, 0
        if isinstance(total, Moments) and total.n:
            self.moved = _moved(total, {site: upload for site, upload in sorted(uploads.items()) if site in samples})
            for site in sorted(self.moved, key=self.moved.__getitem__, reverse=True)[:MOST_SHOWN]:
                words = "%s has %.1f %% of the samples; without it the shared scores move by %.0f %%"
                LOG.info(words, site, 100 * samples[site] / total.n, 100 * self.moved[site])


def _moved(total: Moments, uploads: Mapping[str, Moments]) -> dict[str, float]:
    if len(uploads) * total.dim**3 / 3 > MOST_WORK:
        return {}
    gram, cross = (arrays.to_numpy(part) for part in (total.gram, total.cross))
    penalty = PENALTY * float(gram.diagonal().mean())
    weights = _ridge(gram, cross, penalty)
    length, moved = _length(gram, weights), dict[str, float]()
    for site, own in uploads.items():
        without = _ridge(gram - arrays.to_numpy(own.gram), cross - arrays.to_numpy(own.cross), penalty)
        moved[site] = _length(gram, weights - without) / length if length else 0.0
    return moved


def _ridge(gram: Array, cross: Array, penalty: float) -> Array:
    return np.linalg.solve(gram + penalty * np.eye(len(gram)), cross)


def _length(gram: Array, weights: Array) -> float:
    return float(np.sqrt(max((weights * (gram @ weights)).sum(), 0.0)))
