"""pFedACnnL (Gu et al., arXiv 2502.06915): FedACnnL for groups of similar clients, then a network for each client.

    client   counts of its classes, and the mean of each            where the groups are not given as one
    server   groups of clients; for every group g a network, as in FedACnnL from the sums over that group: W_l^(g)
    client   for l = 1 .. L, on inputs that its own layers made:
               W_l = (Gram_k + lam I)^-1 (B_k + lam W_l^(g))          its own data, shrunk towards its group's layer

Random filters are the group's. A client finds its group by itself, by the nearest centre; so can one that joins late.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gramfold.convolution import ConvolutionMap
from gramfold.errors import MethodError
from gramfold.federation import Samples, Task, stratified
from gramfold.heads import Head
from gramfold.methods.asked import Asked
from gramfold.methods.clustering import ClassSums, class_sums, describe, group, nearest
from gramfold.methods.layerwise import Layerwise, asked, fold_patches, network_of, with_next_layer
from gramfold.methods.parts.selection import Candidate, choose_candidate, penalty_grid
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import OneGroup, Space
from gramfold.moments import Moments
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.renamed import renamed
from gramfold.solve.dual import ridge_from_rows
from gramfold.solve.leave_one_out import Kernel
from gramfold.solve.ridge import factorise
from gramfold.uploads import GroupedMoments, PerClient
from gramfold.wire.record import Record

HIDDEN_LAMS = (math.inf, 1e3, 1e1)
"""Candidates for lam of the hidden layers, where it is not given; infinity keeps the group's own layers."""
VALIDATION_SHARE = 0.25
"""The fraction of a client's samples on which the candidates are compared."""
MIN_SAMPLES = 20
"""Clients with fewer samples keep the first candidate."""


@dataclass(frozen=True)
class GroupNetwork(Record, kind="pfedacnnl/group"):
    """A group's network so far, the scales of its solved filters, and at the end its last layer and mean leverage."""

    space: Space
    scales: Sequence[Array] = ()
    weights: Array | None = None
    leverage: float = 0.0


@dataclass(frozen=True)
class Groups(Record, kind="pfedacnnl"):
    """The groups' networks. From `means` and `centres` (None with one group) a client finds its own."""

    groups: Sequence[GroupNetwork]
    seed: int
    means: Array | None = None
    centres: Array | None = None
    chosen: Mapping[str, Any] | None = None

    def own(self, train: Samples) -> int:
        """The group that a client belongs to."""
        if self.centres is None or self.means is None:
            return 0
        centres, means = arrays.to_numpy(self.centres), arrays.to_numpy(self.means)
        sums = class_sums(train, len(means))
        return nearest(describe(sums["counts"], sums["sums"], means), centres)


@renamed(beta="penalty")
@dataclass(frozen=True)
class PFedACnnL(Layerwise):
    """`groups`: how many; None: as many as the clients form, perhaps one. With 1 only sums over all clients are sent.
    `lam`: how strongly a client's layers are shrunk towards its group's, in units of its Gram_k's mean eigenvalue; None: for the
    last layer by leave-one-out, for the hidden layers by validation on a held-out part of the client's samples."""

    name: ClassVar[str] = "pfedacnnl"
    summary: ClassVar[str] = "networks solved layer by layer for groups of clients, then each client's own layers near them"
    paper: ClassVar[str] = "Gu et al., arXiv 2502.06915"
    penalties: ClassVar[tuple[str, ...]] = ("penalty", "lam")
    groups: int | None = None
    lam: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lam == 0 or (self.groups is not None and self.groups < 1):
            raise MethodError("pFedACnnL needs a positive lam and at least one group, or None to have them chosen")

    @property
    def rounds(self) -> int:
        return super().rounds + (self.groups != 1)

    def begin(self, task: Task) -> Groups:
        return Groups([GroupNetwork(self.first(task))], task.seed)

    def _grouping(self, broadcast: Groups) -> bool:
        """Whether this is the round that forms the groups."""
        return self.groups != 1 and broadcast.centres is None

    def local(self, client: ClientData, broadcast: Groups) -> PerClient | GroupedMoments:
        if self._grouping(broadcast):
            return PerClient({client.name: class_sums(client.train, len(broadcast.groups[0].space.labels or ()))})
        own = broadcast.own(client.train)
        fingerprints = [group.space.map.fingerprint for group in broadcast.groups]
        return GroupedMoments({own: fold_patches(broadcast.groups[own].space, client.train)}, fingerprints)

    def asked(self, broadcast: Groups) -> Asked:
        if not self._grouping(broadcast):
            return OneGroup([asked(group.space) for group in broadcast.groups])
        space = broadcast.groups[0].space
        return ClassSums(network_of(space).shape[2], len(space.labels or ()))

    def aggregate(self, total: PerClient | GroupedMoments, broadcast: Groups) -> Groups:
        if isinstance(total, PerClient):
            means, centres = group(total.in_order(), self.groups)
            groups = list(broadcast.groups) * len(centres)
            return replace(broadcast, groups=groups, means=means, centres=centres, chosen={"groups": len(centres)})
        solved = []
        for g, so_far in enumerate(broadcast.groups):
            moments = total.groups[g] if g in total.groups else total.total()  # no client of this group answered
            if network_of(so_far.space).complete:
                pooled = PooledRidge.of(moments, self.penalty)
                solved.append(replace(so_far, weights=pooled.weights, leverage=pooled.leverage))
            else:
                space, layer = with_next_layer(so_far.space, moments, broadcast.seed, self.penalty)
                solved.append(replace(so_far, space=space, scales=[*so_far.scales, layer.scales]))
        return replace(broadcast, groups=solved)

    def personalize(self, client: ClientData, broadcast: Groups) -> Head:
        own = broadcast.own(client.train)
        shared = broadcast.groups[own]
        hidden_lam = self.lam if self.lam is not None else self._best_hidden_lam(client, shared, broadcast.seed)
        network = next(_networks(client.train, shared, [hidden_lam]))
        weights, lam = self._last(network, client.train, shared)
        chosen = {"group": own, "hidden_lam": None if math.isinf(hidden_lam) else hidden_lam, "lam": lam}
        return replace(shared.space, map=network).head(weights, self.name, chosen)

    def _last(self, network: ConvolutionMap, train: Samples, shared: GroupNetwork) -> tuple[Array, float]:
        """A client's last layer, and its lam."""
        rows, base = network(train.inputs), shared.weights
        targets = shared.space.targets(train, rows)
        residuals = targets - rows @ base
        if self.lam is None:
            lam = _left_out_lam(rows, targets, residuals, shared.leverage)
        else:
            lam = self.lam * float((rows**2).sum()) / rows.shape[1]
        # (Gram + lam I)^-1 (B + lam W) = W + (Gram + lam I)^-1 F'(Y - F W)
        return base + ridge_from_rows(rows, residuals, lam), lam

    def _best_hidden_lam(self, client: ClientData, shared: GroupNetwork, seed: int) -> float:
        codes = arrays.to_numpy(client.train.targets)
        if len(codes) < MIN_SAMPLES or not network_of(shared.space).saw_labels:
            return HIDDEN_LAMS[0]
        kept, held_out = stratified(codes, VALIDATION_SHARE, seeds.generator(seed, f"hold/{client.name}"))
        train, test = (Samples(client.train.inputs[part], client.train.targets[part]) for part in (kept, held_out))

        right = {}
        for lam, network in zip(HIDDEN_LAMS, _networks(train, shared, HIDDEN_LAMS), strict=True):
            weights, _ = self._last(network, train, shared)
            found = arrays.to_numpy((network(test.inputs) @ weights).argmax(1))
            right[lam] = int((found == codes[held_out]).sum())
        return max(HIDDEN_LAMS, key=lambda lam: right[lam])  # the first of those that tie

    def global_head(self, broadcast: Groups) -> Head | None:
        """The network of the only group, if there is only one."""
        first = broadcast.groups[0]
        if len(broadcast.groups) > 1 or first.weights is None:
            return None
        return first.space.head(first.weights, self.name)


def _networks(train: Samples, shared: GroupNetwork, lams: Sequence[float]) -> Iterator[ConvolutionMap]:
    """A client's hidden layers, for each lam."""
    group_network = network_of(shared.space)
    first = None  # the first layer's moments do not depend on lam
    for lam in lams:
        if math.isinf(lam):
            yield group_network
            continue
        network = ConvolutionMap(group_network.description, {})
        for number, weights in enumerate(group_network.arrays.values()):
            moments = first if first is not None and number == 0 else fold_patches(replace(shared.space, map=network), train)
            first = moments if number == 0 else first
            network = network.grown(_near_shared(moments, weights, shared.scales[number], lam))
        yield network


def _near_shared(own: Moments, shared: Array, scales: Array, lam: float) -> Array:
    """A client's layer: its solved filters, shrunk towards the shared ones, then the random filters unchanged."""
    solved = scales.shape[1]
    if not solved:
        return shared
    penalty = lam * float(own.lower_gram.diagonal().sum()) / own.dim
    scale, shift = arrays.like(scales, own.cross)
    sums = own.lower_gram[:, :1]  # of the patches: the constant's column
    wanted = own.cross * scale + sums * shift + penalty * shared[:, :solved]
    return arrays.concatenate([factorise(own.lower_gram, penalty).solve(wanted), shared[:, solved:]], axis=1)


def _left_out_lam(rows: Array, targets: Array, residuals: Array, leverage: float) -> float:
    """lam of the last layer by leave-one-out; for the shared layer, which has seen the client's samples, approximately, by its
    mean leverage."""
    kernel = Kernel.of(rows)
    left_out = residuals / max(1.0 - leverage, 1e-3)
    candidates: list[Candidate] = [
        ({"lam": float(lam)}, targets - kernel.left_out_residuals(left_out, float(lam))) for lam in penalty_grid(kernel)
    ]
    return choose_candidate(candidates, targets, classification=True)[0]["lam"]
