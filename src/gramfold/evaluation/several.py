"""The score of a head of several labels a sample: the mean over labels of what two classes have, and how its sets fit."""

from dataclasses import replace

import numpy as np

from gramfold.evaluation import bootstrap, intervals
from gramfold.evaluation.bootstrap import Ranked
from gramfold.evaluation.scored import LEAST, Scored
from gramfold.federation import Samples
from gramfold.heads.several import SeveralLabels


def score_labels(head: SeveralLabels, scores: np.ndarray, samples: Samples, marks: np.ndarray, uncertain: bool) -> Scored:
    """Average precision and AUC over the labels that some samples have and some have not; F1 over those that some have; losses
    over all; as right counts a sample all of whose labels are."""
    said, wanted = head.marked(scores), marks.astype(np.int64)
    right = (said == wanted).all(1)
    losses = _losses(head.probabilities(scores), wanted) if head.probabilistic else None
    mixed = np.flatnonzero((wanted.any(0)) & (~wanted.astype(bool)).any(0))
    once = np.ones((1, len(marks)))
    ranked = _ranked(scores, wanted, mixed, once)
    scored = Scored(
        len(marks), int(right.sum()),
        surprise=None if losses is None else float(losses[0].sum()), quadratic=None if losses is None else float(losses[1].sum()),
        auc=_one(ranked.get("auc")), average_precision=_one(ranked.get("average_precision")), f1=_one(_f1(said, wanted, once)),
    )  # fmt: skip
    if not uncertain:
        return scored
    ends = {"accuracy": intervals.wilson(scored.right, scored.n)}
    if samples.n < 2:
        return replace(scored, intervals=ends)
    weights = bootstrap.weights_of(samples)
    draws = {"accuracy": weights @ right, **_ranked(scores, wanted, mixed, weights)}
    if scored.f1 is not None:
        draws["f1"] = _f1(said, wanted, weights)
    if losses is not None:
        draws |= {"log_loss": weights @ losses[0], "brier": weights @ losses[1]}
    return replace(scored, intervals={key: intervals.percentiles(drawn) for key, drawn in draws.items()} | ends, draws=draws)


def _losses(shares: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """-log p of what is true, and the squared error of the probabilities: of each sample the mean over labels."""
    true = np.where(wanted == 1, shares, 1 - shares)
    return -np.log(np.maximum(true, LEAST)).mean(1), ((shares - wanted) ** 2).mean(1)


def _ranked(scores: np.ndarray, wanted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """The mean over labels, for each row of weights."""
    found = [Ranked(scores[:, j], wanted[:, j] == 1, weights) for j in labels]
    if not found:
        return {}
    return {
        "auc": np.mean([one.auc() for one in found], axis=0),
        "average_precision": np.mean([one.average_precision() for one in found], axis=0),
    }


def _f1(said: np.ndarray, wanted: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean over the labels that some samples have; nothing where they have none."""
    there = wanted.any(0)
    if not there.any():
        return np.array([])
    said, wanted = said[:, there], wanted[:, there]
    return np.asarray((2 * (weights @ (said * wanted)) / (weights @ (said + wanted))).mean(1))


def _one(values: np.ndarray | None) -> float | None:
    return None if values is None or not len(values) else float(values[0])
