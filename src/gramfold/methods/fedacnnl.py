"""FedACnnL (Gu et al., arXiv 2502.06915): a convolutional network without gradients, one least-squares round for each layer.

    for l = 1 .. L:
      client   P = patches of its images under the layers solved so far, a constant one included
               Gram_k = sum of p p', B_k = sum of p q'      over all patches, q = Q_l[c, t] for class c at place t; last: q = y
      server   W_l from sum Gram_k and sum B_k              ridge; Q_l drawn from the seed
    head     the network

A network may also have random filters, drawn in the patches' whitened space, which follows from the same moments
(convolution/filters.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.layerwise import Layerwise, fold_patches, network_of, with_next_layer
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.renamed import renamed
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Network(Record, kind="fedacnnl"):
    """The network so far, and at the end its last layer."""

    space: Space
    seed: int
    weights: Array | None = None
    chosen: Mapping[str, Any] | None = None


@renamed(beta="penalty")
@dataclass(frozen=True)
class FedACnnL(Layerwise):
    """One shared network, every layer exactly that of pooled data. `network`: a preset ("lenet" and "five" are like the paper's)
    or terms joined by `+`. `penalty`: the ridge penalty of every layer; None: by GCV,
    each its own, and for convolutions the patches' mean variance."""

    name: ClassVar[str] = "fedacnnl"
    summary: ClassVar[str] = "a shared convolutional network, solved layer by layer, without gradients"
    paper: ClassVar[str] = "Gu et al., arXiv 2502.06915"

    def begin(self, task: Task) -> Network:
        return Network(self.first(task), task.seed)

    def local(self, client: ClientData, broadcast: Network) -> Moments:
        return fold_patches(broadcast.space, client.train)

    def aggregate(self, total: Moments, broadcast: Network) -> Network:
        if not network_of(broadcast.space).complete:
            space, _ = with_next_layer(broadcast.space, total, broadcast.seed, self.penalty)
            return replace(broadcast, space=space)
        pooled = PooledRidge.of(total, self.penalty)
        return replace(broadcast, weights=pooled.weights, chosen={"penalty": pooled.beta})

    def personalize(self, client: ClientData, broadcast: Network) -> Head:
        return self.global_head(broadcast)

    def global_head(self, broadcast: Network) -> Head:
        if broadcast.weights is None:
            raise MethodError("there is no model before the last round")
        return broadcast.space.head(broadcast.weights, self.name)
