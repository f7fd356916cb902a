"""What PACE takes to be likely before it has seen a client, in one place; each with its unit and what defends it."""

import math
from dataclasses import dataclass

import numpy as np

from gramfold.features import Map
from gramfold.solve.evidence import bend

FIXED = 1e-6
"""The prior's standard deviation of a weight that is not to be fitted."""


@dataclass(frozen=True)
class Priors:
    """Numbers that no client chooses. `benchmarks/ablation.py` changes one at a time; results are flat around each of them."""

    cosine: float = 1.5
    """Weight of the cosine, in units of the square root of the number of classes (`ablation.py`)."""
    cosine_learned: float = 0.8
    """The same where features are learned: these bring samples closer to their class, all alike, and the same angle is weaker
    evidence (`ablation.py`)."""
    typical_cosine: float = 0.4
    """The cosine at which a bent one has the slope that the weight is meant for (`ablation.py`)."""
    likelihood_learned: float = 0.25
    """Weight of the likelihood of two classes where a table's features are learned, in place of how well they are told apart;
    what it leaves of one is their log-odds' (`binary.py`)."""
    evidence_samples: float = 20.0
    """How many samples the prior over the weights of evidence is worth (`ablation.py`)."""
    step: float = 6.0
    """What a step in probability is worth in logits, among three classes and more: residuals are steps (`ablation.py`)."""
    step_of_two: float = 2.0
    """The same of two classes: a step r of one is -r of the other, and 4 r in the log-odds at even odds (derived)."""
    centroids: tuple[float, ...] = (300.0, 100.0, 30.0)
    """Samples that a shared centroid of a class is worth at a client, tried in turn; () keeps to them (`frozen.py`)."""
    centroids_gain: float = 3.0
    """So many nats likelier left-out samples must be by a client's own centroids."""
    few: float = 50.0
    """Samples at which a residual of one is worth half of that: a client of few has residuals that are mostly noise
    (`ablation.py`)."""
    added_samples: float = 20.0
    """How many samples the prior of one over the weight of what candidates add is worth, at the end (`ablation.py`)."""
    reach: float = 2.0
    reach_samples: float = 5.0
    """How far beyond the values that a client has seen its head may go: so many times what one is usually off, and, of so many
    samples, once again as far as they lie apart; of more, less (`site_tables.py`)."""

    def step_of(self, classes: int, samples: float) -> float:
        """What a unit of a residual adds to logits."""
        return (self.step if classes > 2 else self.step_of_two) * samples**2 / (samples**2 + self.few**2)

    def of_evidence(self, classes: int, map: Map, correlation: float) -> tuple[np.ndarray, np.ndarray]:
        """Centre and precision of the evidence's weights. `correlation`: that of left-out scores with the classes.

        A cosine in C - 1 dimensions has a spread of 1/sqrt(C): its weight goes with sqrt(C). In one dimension it is only a sign,
        and the likelihood is all there is, at its face value of one; with more it keeps a share, which fades as 1/(C - 1). Nor
        does a cosine say more than it would of normal classes: r times a sample's length, with centroids at r from the middle,
        and samples at about sqrt(r^2 + C - 1).

        Scores of two classes are probabilities where features follow any curve, as learned ones of a table do, all but a quarter;
        as others do, as far as classes overlap: scores that keep them well apart lie beyond nought and one. Straight features
        follow none: there scores are never taken for probabilities.
        """
        if classes == 2:
            straight = map.dim <= 1 + map.inputs
            likelihood = self.likelihood_learned if map.saw_labels and map.tabular else 1.0 if straight else correlation
            each = np.array([FIXED if straight else 0.5, 0.5])
            return np.array([1.0 - likelihood, likelihood]), self.evidence_samples / each**2
        slope = 1.0 - 2.0 * self.typical_cosine * bend(classes)
        apart = correlation**2 / max(1.0 - correlation**2, FIXED)
        told = math.sqrt(apart * (apart + classes - 1))
        cosine = min((self.cosine_learned if map.saw_labels else self.cosine) * math.sqrt(classes), told) / slope
        likelihood = 1.0 / (classes - 1)
        spread = np.array([max(cosine / 2, FIXED), max(likelihood / 2, 0.3)])
        return np.array([(1.0 - likelihood) * cosine, likelihood]), self.evidence_samples / spread**2


PRIORS = Priors()
