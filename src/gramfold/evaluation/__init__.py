"""How good the heads are: on each client's own test split, over all clients, and as probabilities."""

from gramfold.evaluation.calibration import Calibration
from gramfold.evaluation.intervals import Interval
from gramfold.evaluation.metrics import Evaluation, main_figure, mean, score_each, score_head, weighted_mean, worst_decile
from gramfold.evaluation.scored import Scored
from gramfold.evaluation.statistics import CONFIDENCE, Difference, Estimate

__all__ = [
    "CONFIDENCE", "Calibration", "Difference", "Estimate", "Evaluation", "Interval", "Scored", "main_figure", "mean",
    "score_each", "score_head", "weighted_mean", "worst_decile",
]  # fmt: skip
