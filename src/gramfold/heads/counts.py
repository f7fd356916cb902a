"""A head for counts: a value on the scale of a link, and what that means for the count."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gramfold.errors import HeadError
from gramfold.heads.combined import Combined
from gramfold.numerics.arrays import Array


class Link(NamedTuple):
    """`there`: a count on another scale; `back`: the mean count of those that lie around a value by a variance."""

    there: Callable[[np.ndarray], np.ndarray]
    back: Callable[[np.ndarray, float], np.ndarray]


LARGEST = 700.0
"""The largest logarithm that a count may have."""
LINKS = {
    "identity": Link(lambda counts: counts, lambda values, variance: values),
    "root": Link(lambda counts: np.sqrt(1 + counts), lambda values, variance: np.maximum(values, 0) ** 2 + variance - 1),
    "log": Link(lambda counts: np.log1p(counts), lambda values, variance: np.expm1(np.minimum(values + variance / 2, LARGEST))),
}
"""The second and third steady a spread that grows with the mean: counts as a Poisson's, and more than that."""


@dataclass(frozen=True, repr=False)
class Counts(Combined):
    """One head of values, those of the counts on the scale of `link`. Predictions are mean counts, never below zero; `spread` is
    how far left-out samples were off on that scale, root mean squared: the mean of a curved function lies off the function of
    the mean."""

    kind: ClassVar[str] = "counts"
    own: ClassVar[tuple[str, ...]] = ("link", "spread")

    link: str = "identity"
    spread: float = 0.0

    def together(self, said: list[np.ndarray]) -> np.ndarray:
        return np.asarray(np.maximum(LINKS[self.link].back(said[0], self.spread**2), 0.0))

    def predict_interval(self, inputs: Array, coverage: float = 0.9) -> np.ndarray:
        ends = self.parts[0].with_origin(self.origin).predict_interval(inputs, coverage)
        return np.asarray(np.maximum(LINKS[self.link].back(ends, 0.0), 0.0))

    def check_parts(self) -> None:
        self.require_outputs(1)
        if self.link not in LINKS or not 0 <= self.spread < np.inf or self.parts[0].labels is not None:
            raise HeadError(f"a head of counts has a link among {', '.join(LINKS)}, and a spread")

    @classmethod
    def read_own(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return {"link": str(meta["link"]), "spread": float(meta["spread"])}
