"""PACE over a network that is solved layer by layer: FedACnnL's layers, PACE's head. gramfold's own.

rounds     FedACnnL's hidden layers, the same for all clients
last       PACE on their output: prior, discriminant, refinement, everything chosen by leave-one-out
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.layerwise import Layerwise, fold_patches, network_of, with_next_layer
from gramfold.methods.pace.client import Given, personal_head
from gramfold.methods.pace.server import Pooled, Pooling, require_regime, shared_head, solved
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space
from gramfold.moments import Moments
from gramfold.renamed import renamed
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Network(Record, kind="pacecnn"):
    """The network so far, and at the end the ridge on its output."""

    space: Space
    seed: int
    pooled: Pooled | None = None

    @property
    def chosen(self) -> Mapping[str, Any]:
        return self.pooled.chosen if self.pooled is not None else {}


@renamed(beta="penalty")
@dataclass(frozen=True)
class PaceCNN(Layerwise):
    """`network`: as FedACnnL's. `penalty`, `weights`, `regime`: as PACE's; the refinement uses the network's output, too."""

    name: ClassVar[str] = "pacecnn"
    summary: ClassVar[str] = "PACE's personal heads over a convolutional network solved layer by layer; calibrated"
    paper: ClassVar[str] = "gramfold"
    probabilistic: ClassVar[bool] = True

    weights: tuple[float, float] | None = None
    regime: str = "sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_regime(self.regime, self.name)

    def begin(self, task: Task) -> Network:
        return Network(self.first(task), task.seed)

    def local(self, client: ClientData, broadcast: Network) -> Moments:
        if network_of(broadcast.space).complete:
            return broadcast.space.fold(client)
        return fold_patches(broadcast.space, client.train)

    def aggregate(self, total: Moments, broadcast: Network) -> Network:
        if network_of(broadcast.space).complete:
            pooled = Pooling(self.penalty, self.regime, broadcast.seed, broadcast.space.units())(total)
            return replace(broadcast, pooled=pooled)
        space, _ = with_next_layer(broadcast.space, total, broadcast.seed, penalty=None)
        return replace(broadcast, space=space)

    def personalize(self, client: ClientData, broadcast: Network) -> Head:
        space = broadcast.space
        given = Given(space, solved(broadcast.pooled), weights=self.weights)
        fitted = client.contributed and space.map.saw_labels
        return personal_head(client, given, space.map(client.train.inputs), self.name, fitted)

    def global_head(self, broadcast: Network) -> Head:
        return shared_head(broadcast.space, solved(broadcast.pooled), self.name)
