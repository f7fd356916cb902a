"""How far a regression may go: features far from all that were seen may lead anywhere."""

from dataclasses import replace

import numpy as np

from gramfold.heads import Head
from gramfold.methods.pace.priors import Priors
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array


def bounded(head: Head, targets: Array, priors: Priors) -> Head:
    """The head with bounds, from the targets (n x outputs) of its client, which with too few samples knows of none."""
    seen = arrays.to_numpy(targets)
    if head.errors is None or len(seen) < priors.reach_samples:
        return head
    least, largest = seen.min(0), seen.max(0)
    room = priors.reach * head.errors.spread + (largest - least) * priors.reach_samples / len(seen)
    return replace(head, bounds=np.stack([least - room, largest + room], axis=1).astype(float))
