"""How well scores rank: the area under the ROC curve."""

import numpy as np


def auc(scores: np.ndarray, codes: np.ndarray) -> float | None:
    """How often a sample of a class has a higher score for it than a sample of another class, ties counting half: the mean over
    the classes that some samples have and some have not; None where there is none. Of two classes both have the same.

    >>> auc(np.array([[0.9, 0.1], [0.4, 0.6], [0.6, 0.4]]), np.array([0, 1, 1]))
    1.0
    """
    counts = np.bincount(codes, minlength=scores.shape[1])
    present = np.flatnonzero((counts > 0) & (counts < len(codes)))
    if not len(present):
        return None
    if scores.shape[1] == 2:
        scores, codes, counts, present = scores[:, 1:] - scores[:, :1], codes == 0, counts[1:], np.zeros(1, int)
    ranks = np.stack([_ranks(column) for column in scores[:, present].T], axis=1)
    mine = codes[:, None] == present
    rest = len(codes) - counts[present]
    above = (ranks * mine).sum(0) - counts[present] * (counts[present] + 1) / 2
    return float((above / (counts[present] * rest)).mean())


def _ranks(values: np.ndarray) -> np.ndarray:
    """From 1 up; equal values share the mean of theirs. (SciPy's would take as long to import as all of gramfold.)"""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() - (counts - 1) / 2)[places])
