"""PACE over a network that is solved layer by layer: FedACnnL's layers, PACE's head. gramfold's own.

rounds     FedACnnL's hidden layers, the same for everybody
last       PACE on what they end in: prior, discriminant, refinement, everything chosen by leave-one-out
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from gramfold.convolution import ConvolutionMap, layers, solve_layer
from gramfold.errors import GramfoldError
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.analytic import FOLDED
from gramfold.methods.layerwise import DEFAULT, first_word, fold_patches, network_of, with_layer
from gramfold.methods.pace import PACE
from gramfold.methods.protocol import ClientData
from gramfold.moments import Moments
from gramfold.wire import Packet


@dataclass(frozen=True)
class PaceCNN(PACE):
    """`features`: the network, written as FedACnnL's. The refinement is on what it ends in, too. The rest is PACE's."""

    name: ClassVar[str] = "pacecnn"
    summary: ClassVar[str] = "PACE's personal heads over a convolutional network solved layer by layer; calibrated"
    input_kinds: ClassVar[frozenset[str]] = frozenset({"images"})
    threaded: ClassVar[bool] = False  # torch has threads of its own

    features: str = DEFAULT
    refinement: None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        layers(self.features)
        if self.refinement is not None:
            raise GramfoldError("PaceCNN refines on what its network ends in; leave its refinement out")

    @property
    def rounds(self) -> int:
        return layers(self.features) + 1

    def begin(self, task: Task) -> Packet:
        return Packet({}, {**first_word(self.name, self.features, task), "seed": task.seed})

    def map(self, broadcast: Packet) -> ConvolutionMap:
        return network_of(broadcast)

    def refinement_map(self, broadcast: Packet) -> ConvolutionMap:
        return self.map(broadcast)

    def local(self, client: ClientData, broadcast: Packet) -> Moments:
        network = self.map(broadcast)
        return super().local(client, broadcast) if network.complete else fold_patches(network, client.train, broadcast)

    def aggregate(self, total: Moments, broadcast: Packet) -> Packet:
        network, number = self.map(broadcast), broadcast.meta["layers"]
        if not network.complete:
            layer = solve_layer(total, network.next, broadcast.meta["seed"], number, penalty=None)
            return with_layer(broadcast, {f"layer.{number}": layer.weights})
        told, known = super().aggregate(total, broadcast), broadcast.arrays
        return Packet({**known, **told.arrays}, told.meta, told.triangular, frozenset(known))

    def reply(self, upload: Moments, broadcast: Packet) -> Packet:
        told = super().reply(upload, broadcast)
        return told if told is broadcast else replace(told, known=broadcast.known)

    def personalize(self, client: ClientData, broadcast: Packet) -> Head:
        head = super().personalize(client, broadcast)
        if FOLDED not in client.memory or not self.map(broadcast).labels_seen:
            return head
        # solved filters have seen the sample's label, and cannot be left out with it: such an estimate would be too good
        return replace(head, chosen={key: value for key, value in head.chosen.items() if "leave_one_out" not in key})
