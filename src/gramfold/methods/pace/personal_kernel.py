"""A client's own kernel in the metric that clients' own functions share (see `methods/differences`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gramfold.methods.pace.candidates import Candidate, OwnRidge, Part

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples
    from gramfold.methods.pace.likelihood import Likelihood


@dataclass(frozen=True)
class PersonalKernel(Part):
    """A ridge on each of the personal maps, at the penalty that leaves out best: of the targets, with nothing else shared, and of
    what the shared model leaves unexplained."""

    name: ClassVar[str] = "personal"
    of_classes: tuple[float, ...] = (0.03, 0.3)
    of_values: tuple[float, ...] = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
    before: float = 0.1

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        if not samples.fits or not samples.given.personal:
            return []
        likelihood, found = samples.likelihood, []
        penalties = self.of_classes if likelihood.classification else self.of_values
        before = self.before / (2 * len(penalties) * len(samples.given.personal))  # the best of so many is taken
        for map in samples.given.personal:
            ridge, left = OwnRidge(map, samples.mapped(map), samples.roots), likelihood.unexplained(stay)
            alone = [samples.alone(self.name, ridge, penalty, before) for penalty in penalties]
            beside = []
            for penalty in penalties:
                fit, numbers = samples.fitted(ridge, left, penalty)
                beside.append(Candidate(self.name, stay.scores, stay.added + fit, 1.0, {ridge: numbers}, before))
            found += [*best_of(alone, likelihood), *best_of(beside, likelihood)]
        return found


def best_of(candidates: Sequence[Candidate], likelihood: "Likelihood") -> list[Candidate]:
    """Of each client the likeliest one: the others are not tried for it."""
    told = np.stack([likelihood.of(each) for each in candidates], axis=-1)
    chosen = told.argmax(-1)
    kept = [(each, np.asarray(chosen == i)) for i, each in enumerate(candidates)]
    return [replace(each, before=each.before * mine) for each, mine in kept if mine.any()]
