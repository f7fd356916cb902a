"""The shared head restricted to the classes a client has: strong, free, and known as Fed3R+OLL (Fani et al., ICML 2024).

server   W as in AFL
client   scores of classes it has never seen are taken out of the running
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gramfold.heads import Head
from gramfold.methods.afl import AFL
from gramfold.methods.analytic import Shared, counting
from gramfold.methods.protocol import ClientData
from gramfold.numerics.arrays import to_numpy


@dataclass(frozen=True)
class LocalClasses(AFL):
    """AFL's head with locally absent classes masked. `beta`: the ridge penalty; None: by GCV."""

    name: ClassVar[str] = "localclasses"
    summary: ClassVar[str] = "AFL's head, choosing only among the classes a client has"
    paper: ClassVar[str] = "Fani et al., ICML 2024 (Fed3R), only-local-labels variant"

    def personalize(self, client: ClientData, broadcast: Shared) -> Head:
        head, labels = broadcast.space.head(broadcast.weights, self.name), broadcast.space.labels
        if labels is None:
            return head
        present = np.isin(np.arange(len(labels)), to_numpy(counting(client).targets))
        return replace(head, offset=np.where(present, 0.0, -np.inf))
