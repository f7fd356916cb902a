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
    ranks = _ranks(scores[:, present])
    mine = codes[:, None] == present
    rest = len(codes) - counts[present]
    above = (ranks * mine).sum(0) - counts[present] * (counts[present] + 1) / 2
    return float((above / (counts[present] * rest)).mean())


def _ranks(values: np.ndarray) -> np.ndarray:
    """In every column, from 1 up; equal values share the mean of theirs. (SciPy's would take as long to import as all of
    gramfold.)"""
    order = values.argsort(0, kind="stable")
    ascending = np.take_along_axis(values, order, 0)
    places = np.arange(1.0, len(values) + 1)[:, None]
    begins = np.ones(values.shape, bool)
    begins[1:] = ascending[1:] != ascending[:-1]
    first = np.maximum.accumulate(np.where(begins, places, 0.0), axis=0)
    ends = np.ones(values.shape, bool)
    ends[:-1] = begins[1:]
    last = np.minimum.accumulate(np.where(ends, places, np.inf)[::-1], axis=0)[::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2, 0)
    return ranks
