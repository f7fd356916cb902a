"""How a head's prediction for a sample differs from that for an average one, column by column.

    regression      the value, before it is held within the head's bounds
    two classes     the log-odds of the second one, or of the one that is asked for
    more classes    a class's score less the mean of all classes', in units of log-probabilities

Where a head's features are linear or random ones, effects are exact: they sum to the prediction less the baseline
(`features.ways`). What the head makes of its linear scores (PACE's evidence) is followed in SEGMENTS steps of the way; what a
step leaves over, as a curve is no line, is spread over the columns by the size of their effects. Of other features a column's
effect is what the prediction loses with the column at its baseline; such effects leave out what columns do together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold.errors import HeadError
from gramfold.features.ways import Way, centre
from gramfold.heads.explanation import Explanation
from gramfold.numerics import arrays

if TYPE_CHECKING:
    from gramfold.heads.head import Head

SEGMENTS = 8
STEP = 1e-4
"""Of a derivative by differences, in units of the scores' spread."""


@dataclass(frozen=True)
class Question:
    """Which linear function of a head's scores is explained: `contrast` (n x outputs), and its name for every sample."""

    contrast: np.ndarray
    names: Sequence[Any]

    def of(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray((np.where(self.contrast != 0, scores, 0.0) * self.contrast).sum(1))


def explain(head: "Head", rows: np.ndarray, of: Any, baseline: np.ndarray | None, groups: dict[str, list[int]]) -> Explanation:
    """`rows` and `baseline` as the head takes them; `groups`: the places of each column's numbers."""
    if len(head.shape) != 1:
        raise HeadError("images have no columns to explain a prediction by")
    rows = np.asarray(arrays.to_numpy(arrays.float64(rows)))
    base = _baseline(head) if baseline is None else np.asarray(arrays.to_numpy(arrays.float64(baseline))).mean(0)
    start = np.broadcast_to(base, rows.shape)
    question = _question(head, rows, of)
    head = replace(head, bounds=None)  # beyond those nothing adds up
    before, after = (question.of(arrays.to_numpy(head.forward(np.array(part)))) for part in (start, rows))
    try:
        effects, exact = _shares(head, start, rows, question), True
        summed = np.stack([effects[:, places].sum(1) for places in groups.values()], axis=1)
    except TypeError:
        summed, exact = _differences(head, rows, base, question, after, list(groups.values())), False
    return Explanation(list(groups), summed, before, after, list(question.names), exact)


def _baseline(head: "Head") -> np.ndarray:
    """The mean of all samples, where the head's map knows it, else zeros: in a table a sample that is average in all its numbers
    and of no category."""
    known = centre(head.streams[0].map) if head.streams else None
    return np.zeros(head.inputs) if known is None else known


def _question(head: "Head", rows: np.ndarray, of: Any) -> Question:
    outputs = len(head.labels) if head.labels is not None else int(head.streams[0].weights.shape[1])
    if head.labels is None:
        place = 0 if of is None else _place(range(outputs), of, "output")
        return Question(np.tile(np.eye(outputs)[place], (len(rows), 1)), ["value"] * len(rows))
    if of is not None:
        codes = np.full(len(rows), _place(head.labels, of, "class"))
    else:
        codes = np.full(len(rows), 1) if outputs == 2 else head.predict_codes(rows)
    possible = np.ones(outputs) if head.offset is None else np.isfinite(arrays.to_numpy(head.offset)).astype(float)
    possible[codes] = 1.0
    own = np.eye(outputs)[codes]
    contrast = own - (np.eye(outputs)[1 - codes] if outputs == 2 else possible / possible.sum())
    return Question(contrast / head.temperature, [head.labels[code] for code in codes])


def _place(known: Sequence[Any], of: Any, what: str) -> int:
    named = {str(one): place for place, one in enumerate(known)}
    if str(of) not in named:
        raise HeadError(f"this head has no {what} {of!r}; it has: {', '.join(list(named)[:20])}")
    return named[str(of)]


def _shares(head: "Head", start: np.ndarray, end: np.ndarray, question: Question) -> np.ndarray:
    """n x inputs, exact."""
    if not head.streams:
        raise TypeError("a network has no shares")
    ways = [(Way(stream.map, start, end), stream.scale * arrays.to_numpy(stream.weights)) for stream in head.streams]
    total = np.zeros_like(end)
    if head.evidence is None:
        for way, weights in ways:
            total += way.shares(question.contrast @ weights.T)
    else:
        total += _through_evidence(head.evidence, ways, question)
    for stream in head.refinement:
        total += Way(stream.map, start, end).shares(question.contrast @ (stream.scale * arrays.to_numpy(stream.weights)).T)
    return total


def _through_evidence(evidence: Any, ways: Sequence[tuple[Way, np.ndarray]], question: Question) -> np.ndarray:
    """Step by step along the way: the scores' own shares, times how much the evidence changes with each score."""

    def scores(at: float) -> np.ndarray:
        return np.asarray(sum(way.features(at) @ weights for way, weights in ways))

    def asked(values: np.ndarray) -> np.ndarray:
        return question.of(np.asarray(evidence(values.copy())))

    points = np.linspace(0, 1, SEGMENTS + 1)
    passed = [scores(at) for at in points]
    size = STEP * (float(np.std(passed)) or 1.0)
    total: np.ndarray = np.zeros(1)
    for k in range(SEGMENTS):
        middle = (passed[k] + passed[k + 1]) / 2
        slopes = np.empty_like(middle)
        for place, unit in enumerate(size * np.eye(middle.shape[1])):
            slopes[:, place] = (asked(middle + unit) - asked(middle - unit)) / (2 * size)
        step = np.sum([way.shares(slopes @ weights.T, points[k], points[k + 1]) for way, weights in ways], axis=0)
        left = asked(passed[k + 1]) - asked(passed[k]) - step.sum(1)
        sizes = abs(step) + 1e-300
        total = total + step + left[:, None] * sizes / sizes.sum(1, keepdims=True)
    return total


def _differences(
    head: "Head", rows: np.ndarray, base: np.ndarray, question: Question, after: np.ndarray, groups: Sequence[list[int]]
) -> np.ndarray:
    """What the prediction loses with each column at its baseline."""
    effects = np.empty((len(rows), len(groups)))
    for place, numbers in enumerate(groups):
        changed = rows.copy()
        changed[:, numbers] = base[numbers]
        effects[:, place] = after - question.of(arrays.to_numpy(head.forward(changed)))
    return effects
