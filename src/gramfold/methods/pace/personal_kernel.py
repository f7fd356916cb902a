"""A client's own kernel in the metric that clients' own functions share (see `methods/differences`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gramfold.methods.pace.candidates import Basis, Candidate, OwnRidge, Part
from gramfold.numerics.arrays import Array

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples


@dataclass(frozen=True)
class PersonalKernel(Part):
    """A ridge on each of the personal maps, at the penalty that leaves out best: of the targets, with nothing else shared, and of
    what the shared model leaves unexplained."""

    name: ClassVar[str] = "personal"
    of_classes: tuple[float, ...] = (0.03, 0.3)
    of_values: tuple[float, ...] = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
    before: float = 0.1

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        if not samples.fits or not samples.personal:
            return []
        likelihood, found = samples.likelihood, []
        penalties = self.of_classes if likelihood.classification else self.of_values
        before = self.before / (2 * len(penalties) * len(samples.personal))  # the best of so many is taken
        for map in samples.personal:
            ridge = OwnRidge(map, map(samples.inputs), samples.roots)
            alone = [samples.alone(self.name, ridge, penalty, before) for penalty in penalties]
            beside, step = [], likelihood.step
            for penalty in penalties:
                fit, numbers = ridge.fit(likelihood.unexplained(stay), penalty)
                coordinates: dict[Basis, Array] = {ridge: step * numbers}
                beside.append(Candidate(self.name, stay.scores, stay.added + step * fit, 1.0, coordinates, before))
            found += [max(alone, key=likelihood.of), max(beside, key=likelihood.of)]
        return found
