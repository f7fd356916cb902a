"""Learning the features, exactly: rounds before a method's own, in which the metric of its Fourier features is found.

    both     where columns lie and how far they spread            by counting (`columns`), where inputs may be those of a table
    client   moments of [1, x]                                    and so a linear head, and how inputs vary together
    server   inputs made comparable: rows of one length, or standardised columns
    then, `passes` times
    client   moments of the pilot [1, x, cos((x T) Omega + b)]    at several spreads of the frequencies
    server   W; the spread that predicts best
    client   sum_i J_i J_i', J_i the gradient of W'features at x_i, not much longer than usual
    server   T = (sum of sums)^(1/2)

Where both may make inputs comparable, the first moments are also those of a pilot of rows of one length; columns make their first
pilot next, and go on unless generalised cross-validation prefers the rows'. A linear head would be a poor judge: in a table what
matters may do so along a curve, or only together with something else.

All that is sent are sums over samples, so T does not depend on how they are cut among clients. T is fitted to labels. So that
clients can estimate the error of what follows, a third of all samples is held out, drawn by lots that depend on the sample alone.
"""

from typing import Any

from gramfold.methods.learning.client import seen, unseen
from gramfold.methods.learning.directions import DirectionsPlan, Finding
from gramfold.methods.learning.offsets import ClientOffsets, added_back
from gramfold.methods.learning.phase import Learned, Learning
from gramfold.methods.learning.plan import Plan, comparable_as, described

__all__ = [
    "ClientOffsets",
    "DirectionsPlan",
    "Finding",
    "Learned",
    "Learning",
    "Plan",
    "added_back",
    "comparable_as",
    "described",
    "plan_of",
    "seen",
    "unseen",
]  # fmt: skip


def plan_of(spec: Any, own_parts: bool = False) -> Plan | DirectionsPlan | None:
    """What a feature map's text asks to be learned first; None: nothing. `own_parts`: whether clients subtract
    offsets of their own from continuous targets meanwhile, where the metric is learned."""
    return DirectionsPlan.of(spec) or Plan.of(spec, own_parts)
