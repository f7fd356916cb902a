"""Choosing hyper-parameters at the client from exact leave-one-out: no validation split, no test data, no extra round."""

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.special import expit

from gramfold.numerics.arrays import Array, to_numpy
from gramfold.solve.leave_one_out import Kernel

Candidate = tuple[Mapping[str, float], Array]
"""Hyper-parameters, and the scores (n x outputs) that they give each sample when it is left out."""


def penalty_grid(kernel: Kernel) -> np.ndarray:
    """Penalties around the kernel's mean diagonal, from 1e-6 to 1e3 times it."""
    return kernel.mean_diagonal * np.logspace(-6, 3, 19)


def choose_candidate(
    candidates: Iterable[Candidate], targets: Array, classification: bool, weights: np.ndarray | None = None
) -> tuple[dict[str, float], Array]:
    """The hyper-parameters of the candidate with the fewest left-out mistakes, ties by squared error; with its accuracy,
    and its left-out scores. Mistakes and errors count by their weights.

    Squared error alone would shrink a refinement because of scores that do not change a decision: on CIFAR-100 features
    that costs APFL 3 points. For regression squared error decides.
    """
    best: tuple[float, float] | None = None
    chosen: dict[str, float] = {}
    left_out: Array = None
    codes = targets.argmax(1)
    for parameters, scores in candidates:
        right = float(np.average(to_numpy(scores.argmax(1) == codes), weights=weights)) if classification else 0.0
        errors = ((targets - scores) ** 2).sum(1)
        error = float(errors.sum()) if weights is None else float(weights @ to_numpy(errors))
        # better by more than rounding: of tied candidates the first is taken, on every machine and in every order of folding
        if best is None or right > best[0] or (right == best[0] and error < best[1] * (1 - 1e-9)):
            best, chosen, left_out = (right, error), dict(parameters), scores
    if classification and best is not None:
        chosen["leave_one_out_accuracy"] = best[0]
    if not classification:
        chosen |= left_out_r2(targets, left_out, weights)
    return chosen, left_out


def left_out_r2(targets: Array, scores: Array, weights: np.ndarray | None = None) -> dict[str, float]:
    """The share of the targets' variance that left-out scores explain, in the mean over outputs: below zero, the mean of a
    client's other samples would do better. Nothing where targets do not vary."""
    wanted, got = to_numpy(targets), to_numpy(scores)
    once = np.ones(len(wanted)) if weights is None else weights
    if len(wanted) < 2:
        return {}
    away = (wanted - np.average(wanted, 0, once)) / (1.0 - once / once.sum())[:, None]
    spread = once @ away**2
    return {"leave_one_out_r2": float(1.0 - (once @ (wanted - got) ** 2 / spread).mean())} if spread.all() else {}


def best_f1(scores: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """From which log-odds on the second of two classes is to be said for the best F1 over left-out samples, halfway to the
    next sample's. Each is of that class as far as it is likely to be: by the labels of few samples the best is an accident.

    >>> best_f1(np.array([[0.0, 9.0], [0.0, -0.5], [0.0, -9.0]]), np.ones(3))["f1_from"]
    4.25
    """
    odds, weights = (scores[:, 1] - scores[:, 0])[weights > 0], weights[weights > 0]
    order = np.argsort(-odds, kind="stable")
    ranked, each = odds[order], weights[order]
    found, said = np.cumsum(each * expit(ranked)), np.cumsum(each)
    f1 = 2 * found / (said + found[-1])
    ends = np.append(ranked[:-1] > ranked[1:], True)  # equal scores are said together
    best = int(np.argmax(np.where(ends, f1, -1.0)))
    below = ranked[best + 1] if best + 1 < len(ranked) else ranked[best] - 1.0
    return {"f1_from": float((ranked[best] + below) / 2), "leave_one_out_f1": float(f1[best])}
