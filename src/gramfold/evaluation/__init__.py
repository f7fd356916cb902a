"""How good the heads are: on each client's own test split, over all clients, and as probabilities."""

from gramfold.evaluation.calibration import Calibration
from gramfold.evaluation.metrics import Scored, mean, score_head, weighted_mean, worst_decile

__all__ = ["Calibration", "Scored", "mean", "score_head", "weighted_mean", "worst_decile"]
