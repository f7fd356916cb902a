"""How far a regression may go: features far from all that were seen may lead anywhere."""

from dataclasses import replace

import numpy as np

from gramfold.heads import Head
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array

WIDER, FEW = 2.0, 5.0
"""How far beyond the values that a client has seen its head may go: so many times what one is usually off, and, of so many
samples, once again as far as they lie apart; of more, less."""


def bounded(head: Head, targets: Array) -> Head:
    """The head with bounds, from the targets (n x outputs) of its client, which with fewer than FEW samples knows of none."""
    seen = arrays.to_numpy(targets)
    if head.errors is None or len(seen) < FEW:
        return head
    least, largest = seen.min(0), seen.max(0)
    room = WIDER * head.errors.spread + (largest - least) * FEW / len(seen)
    return replace(head, bounds=np.stack([least - room, largest + room], axis=1).astype(float))
