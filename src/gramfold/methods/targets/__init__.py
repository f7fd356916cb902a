"""Targets that are more than a class or a value, as columns of values: one Gram matrix, and a column of cross-moments for each.

    client     y as columns, g(y) = (1, y_1, ..., y_L), and the moments of phi(x) with them
    server     one penalty, one factor, and what clients need for each column
    client     a model for each column, as the method makes it, and one head of them all

Columns are values to the rounds before, so that features are learned of all of them together; sums, files and messages are those
of values. A method as it runs on such a task is an `OnColumns`, which `on_targets` makes.
"""

from dataclasses import fields, replace
from typing import Any

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.methods.afl import AFL
from gramfold.methods.apfl import APFL
from gramfold.methods.fedhip import FedHiP
from gramfold.methods.local import Local
from gramfold.methods.pace import PACE
from gramfold.methods.protocol import Method
from gramfold.methods.targets.calibrated import Ordered, Several
from gramfold.methods.targets.columns import OnColumns
from gramfold.methods.targets.counts import Counting
from gramfold.methods.targets.values import SeveralValues
from gramfold.sources.targets import COUNTS, ORDERED, SEVERAL

__all__ = ["OnColumns", "on_targets"]

SERVED = (PACE, AFL, APFL, FedHiP, Local)
NOT_ASKED = ("groups", "personal", "own_parts")
"""What columns of such targets are not asked."""


def on_targets(method: Method, task: Task) -> Method:
    """The method as it runs on a task: itself, for classes and for values."""
    if not task.targets or isinstance(method, OnColumns) or (task.targets == ORDERED and not isinstance(method, PACE)):
        return method
    what = {SEVERAL: "several labels a sample", COUNTS: "counts", ORDERED: "ordered classes"}[task.targets]
    if not isinstance(method, SERVED):
        raise MethodError(f"{method.name} does not serve {what}; use pace, afl, apfl, fedhip or local")
    inner: Any = method
    asked = {field.name for field in fields(inner)} & set(NOT_ASKED)
    given = next((name for name in ("groups", "personal") if name in asked and getattr(inner, name)), None)
    if given is not None:
        raise MethodError(f"{given} is for classes and values; leave it out for {what}")
    inner = replace(inner, **dict.fromkeys(asked, False))
    if task.targets == COUNTS:
        return Counting(inner)
    if not isinstance(inner, PACE):
        return SeveralValues(inner, names=task.names)
    if task.targets == ORDERED:
        assert task.labels is not None
        return Ordered(inner, names=task.labels)
    return Several(inner, names=task.names)
