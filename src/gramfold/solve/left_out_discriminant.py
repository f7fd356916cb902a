"""The shared discriminant without one of its samples, for each of a client's samples: a left-out score is not enough.

A class's centroid has a share of each of its samples, in as many directions as there are classes: among a hundred classes of a
hundred samples, evidence that keeps it promises two or three points too much. And taking its score out of the centroid alone
promises two too little, since its label has moved everybody else's scores, too. With u its left-out score, r = y - u, h its
leverage and p = u + h r, the ridge without it has P'Y - u y' - r p', exactly. With h for the mean leverage, f = 1 / (1 - h), and
in the shared whitened space, where w is u's place and c the centroid of its class, it follows that

    the sum of class j loses f p_j r, that of its own w + f (p_j - h) r
    the scatter loses d d' + r v' + v r', d = w - c, v = w + f h (c + r / 2) - f (sum of p_j c_j)

(of the latter what the penalty does is not looked at). Whitening again is done to first order in one over all samples.
"""

from dataclasses import dataclass

from gramfold.numerics import stacks
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant, Place


@dataclass(frozen=True)
class LeftOutDiscriminant:
    """A shared discriminant without each of n samples in turn; for three classes and more (two have one axis, and next to nothing
    of a sample on it). All may have leading axes, of clients side by side."""

    mean: Array
    axes: Array
    centroids: Array
    codes: Array
    without: Array
    """The centroid of a sample's own class (n x q)."""
    share: Array
    """Of all samples (n x 1)."""
    moves: Array
    """How far centroids of other classes have gone along r (n x C)."""
    apart: Array
    r: Array
    v: Array
    """d, r and v (n x q) as above."""
    along: tuple[Array, Array, Array]
    """Their products with all centroids (n x C)."""
    squares: Array
    """The squared lengths of all centroids (n x C), in units of what is left of the scatter."""

    @classmethod
    def of(
        cls, shared: Discriminant, counts: Array, scores: Array, targets: Array, codes: Array, once: Array, leverages: Array
    ) -> "LeftOutDiscriminant":
        """From left-out `scores` (n x C) of samples that are part of the sum, and their one-hot `targets`. `counts`: everybody's
        classes; `once`: how often each sample counts, with all of which it is left out."""
        mean, axes, centroids = shared.on(scores)
        times, h = once[..., None], leverages[..., None]
        free = 1.0 / (1.0 - h)
        residuals = targets - scores
        plain = scores + h * residuals
        place, r, own = (scores - mean) @ axes, residuals @ axes, centroids[codes]
        mine = counts[codes][..., None]
        rest = mine - times
        gone = place + free * (stacks.pick(plain, codes)[..., None] - h) * r
        # of a class that nobody else has nothing is known: it lies at the mean, as a class nobody has
        without = (mine * own - times * gone) / rest.clip(0.5) * (rest > 0.5)
        v = place + free * h * (own + r / 2.0) - free * (plain @ centroids)
        share = times / counts.sum()
        moves = times * free * plain / counts.clip(1.0)
        stacks.put(moves, codes, 0.0)
        apart = place - own
        along_apart, along_r, along_v = (_along(each, centroids, codes, without) for each in (apart, r, v))
        squares = (centroids**2).sum(1) - moves * (2.0 * along_r - moves * _dot(r, r))
        stacks.put(squares, codes, (without**2).sum(-1))
        squares += share * (along_apart**2 + 2.0 * along_r * along_v)  # what a scatter loses, its inverse gains
        along = (along_apart, along_r, along_v)
        return cls(mean, axes, centroids, codes, without, share, moves, apart, r, v, along, squares)

    def place(self, scores: Array) -> Place:
        """Where the same samples lie; `scores` may be others of theirs, also left out."""
        place = (scores - self.mean) @ self.axes
        by_apart, by_r, by_v = (_dot(place, each) for each in (self.apart, self.r, self.v))
        along_apart, along_r, along_v = self.along
        products = _along(place, self.centroids, self.codes, self.without)
        products += (self.share * by_apart) * along_apart
        products += (self.share * by_v) * along_r
        products += (self.share * by_r) * along_v
        products -= by_r * self.moves
        lengths = _dot(place, place) + self.share * (by_apart**2 + 2.0 * by_r * by_v)
        return Place(scores, self.mean, place, self.centroids, products, self.squares, lengths)


def _along(vectors: Array, centroids: Array, codes: Array, without: Array) -> Array:
    """Products (n x C) with all centroids, where the sample's own class's is the one without it."""
    products = vectors @ centroids.T
    stacks.put(products, codes, (vectors * without).sum(-1))
    return products


def _dot(a: Array, b: Array) -> Array:
    return stacks.row_dots(a, b)[..., None]
