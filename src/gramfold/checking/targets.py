"""Targets: classes that are numbers, clients that lack some, labels that are written in two ways."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from gramfold.checking.finding import NOTICE, SERIOUS, Finding

MANY, PER_CLASS = 20, 5
"""Classes, and samples of each on average: more of fewer are values."""
APART = 0.3
"""How far a client's shares of classes are from all clients', as a part of its samples."""
SHOWN = 4


def targets(labels: Mapping[str, np.ndarray]) -> list[Finding]:
    """What clients' class labels say, before any model."""
    pooled = np.concatenate(list(labels.values()))
    classes, counts = np.unique(pooled, return_counts=True)
    found = []
    if len(classes) > MANY and len(pooled) < PER_CLASS * len(classes) and classes.dtype.kind in "iu":
        found.append(
            Finding("target", SERIOUS, f"the target has {len(classes)} whole numbers in {len(pooled)} samples, each a class",
                    "if they are amounts, say --regression (in Python regression=True)")
        )  # fmt: skip
        return found
    if len(classes) > MANY and len(pooled) < PER_CLASS * len(classes):
        found.append(
            Finding(
                "target", SERIOUS, f"the target has {len(classes)} classes in {len(pooled)} samples", "is it the right column?"
            )
        )
        return found
    if classes.dtype.kind == "U":
        found += _spellings(classes.tolist())
    return found or _mix(labels, classes, counts / len(pooled))


def _spellings(classes: list[str]) -> list[Finding]:
    """Labels that differ in capitals, blanks and dashes alone. Names of classes are everybody's."""
    alike = defaultdict(list)
    for label in classes:
        alike[re.sub(r"[\W_]", "", label).casefold()].append(label)
    return [
        Finding("labels", SERIOUS, f"the classes {' and '.join(map(repr, same))} differ in spelling alone", "write one of them")
        for same in alike.values() if len(same) > 1
    ]  # fmt: skip


def _mix(labels: Mapping[str, np.ndarray], classes: np.ndarray, shares: np.ndarray) -> list[Finding]:
    found = []
    for client, own in labels.items():
        counts = Counter(own.tolist())
        mine = np.array([counts[label] for label in classes.tolist()]) / max(len(own), 1)
        lacking = [str(label) for label, share in zip(classes.tolist(), mine, strict=True) if not share]
        if len(counts) == 1:
            several = f"all its {len(own)} samples are" if len(own) > 1 else "its only sample is"
            what = f"{several} of class {next(iter(counts))!r}"
            found.append(Finding("labels", SERIOUS, what, "a head of its own can learn nothing from that", client))
        elif np.abs(mine - shares).sum() / 2 > APART:
            most = int(np.argmax(mine - shares))
            what = f"{mine[most]:.0%} of its samples are of class {str(classes[most])!r}, {shares[most]:.0%} of all"
            found.append(Finding("labels", NOTICE, what, "see whether it counts the same cases", client))
        elif lacking and len(classes) <= MANY:
            more = ", ..." if len(lacking) > SHOWN else ""
            what = f"has no sample of class {', '.join(lacking[:SHOWN])}{more}"
            found.append(Finding("labels", NOTICE, what, "nothing need be done", client))
    return found
