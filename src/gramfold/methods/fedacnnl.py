"""FedACnnL (Gu et al., arXiv 2502.06915): a convolutional network without gradients, one least-squares round for each layer.

    for l = 1 .. L:
      client   P = patches of its images under the layers solved so far, a constant one included
               Gram_k = sum of p p', B_k = sum of p y'             over all patches, y the label of the patch's image
      server   W_l = (sum Gram_k + beta I)^-1 (sum B_k) Q_l        Q_l drawn from the seed; Q_L = I
    head     the network

rank W_l <= classes, since the targets take no more values: a network may have drawn filters beside the solved ones, in the
space where the patches are white, which the same moments tell (convolution/filters.py).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.convolution import layers, solve_layer
from gramfold.federation import Task
from gramfold.heads import Head, Stream
from gramfold.methods.analytic import check_space, labels_of, solve_pooled
from gramfold.methods.layerwise import DEFAULT, first_word, fold_patches, network_of, with_layer
from gramfold.methods.protocol import ClientData, Method
from gramfold.moments import Moments
from gramfold.wire import Packet


@dataclass(frozen=True)
class FedACnnL(Method):
    """One network for everybody, every layer exactly that of pooled data. `network`: a preset ("lenet" and "five" are the paper's
    kind) or terms joined by `+`. `beta`: the ridge penalty of every layer; None: by GCV, each its own."""

    name: ClassVar[str] = "fedacnnl"
    summary: ClassVar[str] = "a convolutional network for everybody, solved layer by layer, without gradients"
    paper: ClassVar[str] = "Gu et al., arXiv 2502.06915"
    input_kinds: ClassVar[frozenset[str]] = frozenset({"images"})
    threaded: ClassVar[bool] = False  # torch has threads of its own

    network: str = DEFAULT
    beta: float | None = None

    def __post_init__(self) -> None:
        self.check_penalties("beta")
        layers(self.network)

    @property
    def rounds(self) -> int:
        return layers(self.network) + 1

    def begin(self, task: Task) -> Packet:
        return Packet({}, first_word(self.name, self.network, task))

    def local(self, client: ClientData, broadcast: Packet) -> Moments:
        return fold_patches(network_of(broadcast), client.train, broadcast)

    def check(self, upload: Any, broadcast: Packet) -> None:
        check_space(upload, network_of(broadcast), labels_of(broadcast))

    def aggregate(self, total: Moments, broadcast: Packet) -> Packet:
        network, number = network_of(broadcast), broadcast.meta["layers"]
        if not network.complete:
            seed = broadcast.meta["features"]["seed"]
            layer = solve_layer(total, network.next, seed, number, self.beta)
            return with_layer(broadcast, {f"layer.{number}": layer.weights})
        beta, factor = solve_pooled(total, self.beta)
        parts = {**broadcast.arrays, "weights": factor.solve(total.cross)}
        return Packet(parts, {**broadcast.meta, "chosen": {"beta": beta}}, known=frozenset(broadcast.arrays))

    def personalize(self, client: ClientData, broadcast: Packet) -> Head:
        return self.global_head(broadcast)

    def global_head(self, broadcast: Packet) -> Head:
        return Head([Stream(network_of(broadcast), broadcast["weights"])], labels_of(broadcast), method=self.name)
