"""Random effects as candidates: a client's own offset and slopes, shrunk as far as clients are found to be alike."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gramfold.features import Map
from gramfold.methods.pace.candidates import Candidate, Part
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples


@dataclass(frozen=True, eq=False)
class Along:
    """Weights on a map's features as they are: a basis of candidates."""

    map: Map

    def solution(self, coordinates: Array) -> tuple[Array, float]:
        return coordinates, 0.0


@dataclass(frozen=True)
class OwnEffects(Part):
    """The linear mixed model with nothing else shared, and effects of the same variances beside the shared model (`methods/
    differences/effects.py`): where these were found."""

    name: ClassVar[str] = "effects"
    before: float = 1.0

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        effects = samples.given.effects
        if effects is None or samples.blocks is not None:  # effects are left out sample by sample
            return []
        roots = np.ones((1, 1, 1)) if samples.roots is None else arrays.to_numpy(samples.roots)
        rows = arrays.to_numpy(samples.mapped(effects.plain)) * roots
        apart = np.zeros((1, 1, 1)) if samples.apart is None else np.stack(samples.apart)[:, None]
        targets, left = (
            arrays.to_numpy(samples.targets) + apart * samples.padding.there[..., None],
            arrays.to_numpy(samples.likelihood.residuals(stay)),
        )
        contributed = samples.copies > 0
        alone = [effects.alone(*each, contributed) for each in zip(rows, targets * roots, strict=True)]
        beside = [effects.beside(*each) for each in zip(rows, left * roots, strict=True)]

        def stacked(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[Array, Array]:
            fits, weights = (np.stack(each) for each in zip(*parts, strict=True))
            return samples.unweighted(arrays.like(fits, stay.scores)), arrays.like(weights, stay.scores)

        along = Along(effects.plain)
        fit, weights = stacked(beside)
        found = [Candidate(self.name, stay.scores, stay.added + fit, 1.0, {along: weights}, self.before)]
        fit, weights = stacked(alone)
        weights[:, 0] -= arrays.like(apart[:, 0], weights)
        return [*found, Candidate(self.name, samples.scores, fit - arrays.like(apart, fit), 0.0, {along: weights}, self.before)]
