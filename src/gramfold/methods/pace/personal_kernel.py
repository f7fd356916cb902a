"""A client's own kernel in the metric that clients' own functions share (see `methods/differences`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gramfold.methods.pace.candidates import Candidate, OwnRidge, Part

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples


@dataclass(frozen=True)
class PersonalKernel(Part):
    """A ridge on each of the personal maps: of the targets, with nothing else shared, and of the shared model's residuals."""

    name: ClassVar[str] = "personal"
    of_classes: tuple[float, ...] = (0.03, 0.3)
    of_values: tuple[float, ...] = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
    before: float = 0.1

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        if not samples.fits or not samples.given.personal:
            return []
        likelihood, found = samples.likelihood, []
        penalties = self.of_classes if likelihood.classification else self.of_values
        before, left = self.before / (2 * len(penalties) * len(samples.given.personal)), likelihood.residuals(stay)
        for map in samples.given.personal:
            ridge = OwnRidge(map, samples.mapped(map), samples.roots)
            for penalty in penalties:
                found.append(samples.alone(self.name, ridge, penalty, before))
                found.append(samples.beside(self.name, ridge, left, penalty, before, stay))
        return found
