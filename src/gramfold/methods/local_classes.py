"""The shared head restricted to the classes a client has: strong, free, and known as Fed3R+OLL (Fani et al., ICML 2024).

server   W as in AFL
client   masks the scores of classes it has never seen; its own temperature for the others
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gramfold.heads import Head
from gramfold.methods.afl import AFL, left_out
from gramfold.methods.analytic import Shared
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting
from gramfold.numerics.arrays import to_numpy
from gramfold.renamed import renamed
from gramfold.solve.temperature import fit_temperature


@renamed(beta="penalty")
@dataclass(frozen=True)
class LocalClasses(AFL):
    """AFL's head with locally absent classes masked. `penalty`: the ridge penalty; None: by GCV."""

    name: ClassVar[str] = "localclasses"
    summary: ClassVar[str] = "AFL's head, choosing only among the classes a client has"
    paper: ClassVar[str] = "Fani et al., ICML 2024 (Fed3R), only-local-labels variant"

    def personalize(self, client: ClientData, broadcast: Shared) -> Head:
        head, space = super().personalize(client, broadcast), broadcast.space
        if space.labels is None:
            return head
        train = counting(client)
        offset = np.where(np.isin(np.arange(len(space.labels)), to_numpy(train.targets)), 0.0, -np.inf)
        _, scores, _ = left_out(client, broadcast)
        return replace(head, offset=offset, temperature=fit_temperature(scores, train.targets, offset, counts=train.weights))
