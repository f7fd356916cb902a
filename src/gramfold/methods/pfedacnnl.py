"""pFedACnnL (Gu et al., arXiv 2502.06915): FedACnnL for groups of clients that are alike, then a network for each client.

    client   counts of its classes, and the mean of each            where the groups are not given as one
    server   groups of clients; for every group g a network, as in FedACnnL from the sums over that group: W_l^(g)
    client   for l = 1 .. L, on inputs that its own layers made:
               W_l = (Gram_k + lam I)^-1 (B_k Q_l + lam W_l^(g))      what it sees itself, held near its group's layer

Drawn filters are the group's. A client finds its group by itself, as the one with the nearest centre: so can one that comes late.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.convolution import ConvolutionMap, solve_layer
from gramfold.errors import GramfoldError
from gramfold.federation import Samples, stratified
from gramfold.heads import Head, Stream
from gramfold.methods.analytic import check_space, labels_of, solve_pooled, target_rows
from gramfold.methods.clustering import check_sums, class_sums, describe, group, nearest
from gramfold.methods.fedacnnl import FedACnnL
from gramfold.methods.layerwise import fold_patches, network_of, with_layer
from gramfold.methods.protocol import ClientData
from gramfold.methods.selection import Candidate, choose, penalty_grid
from gramfold.moments import Moments
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import ridge_from_rows
from gramfold.solve.leave_one_out import Kernel, mean_leverage
from gramfold.solve.ridge import factorise
from gramfold.uploads import GroupedMoments, PerClient
from gramfold.wire import Packet

HOLDS = (math.inf, 1e3, 1e1)
"""What a client tries as lam of all layers but the last, where it is not given; the first are its group's own."""
VALIDATED = 0.25
"""The part of its samples that it tries them on."""
MIN_SAMPLES = 20
"""With fewer samples it does not try."""


@dataclass(frozen=True)
class PFedACnnL(FedACnnL):
    """`groups`: how many; None: as many as the clients fall into, perhaps one. With 1 nothing but sums over everybody is sent.
    `lam`: how firmly a client's layers are held near its group's, in units of its Gram_k's mean eigenvalue; None: in the last
    layer what leave-one-out says, in the others what does best on a part of the client's samples that is kept out meanwhile."""

    name: ClassVar[str] = "pfedacnnl"
    summary: ClassVar[str] = "networks solved layer by layer for groups of clients, then each client's own layers near them"

    groups: int | None = None
    lam: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_penalties("lam")
        if self.lam == 0 or (self.groups is not None and self.groups < 1):
            raise GramfoldError("pFedACnnL needs a positive lam and at least one group, or None to have them chosen")

    @property
    def rounds(self) -> int:
        return super().rounds + (self.groups != 1)

    def local(self, client: ClientData, broadcast: Packet) -> PerClient | GroupedMoments:  # type: ignore[override]
        if self.groups != 1 and "centres" not in broadcast.arrays:
            return PerClient({client.name: class_sums(client.train, len(broadcast.meta["labels"]))})
        own = self._group(client, broadcast)
        networks = [network_of(broadcast, f"{g}/") for g in range(self._count(broadcast))]
        moments = fold_patches(networks[own], client.train, broadcast)
        return GroupedMoments({own: moments}, [network.fingerprint for network in networks])

    def check(self, upload: Any, broadcast: Packet) -> None:
        if self.groups != 1 and "centres" not in broadcast.arrays:
            check_sums(upload, broadcast.meta["features"]["shape"][2], len(broadcast.meta["labels"]))
            return
        if not isinstance(upload, GroupedMoments) or len(upload.groups) != 1:
            raise GramfoldError("moments of one group were expected")
        ((own, moments),) = upload.groups.items()
        if own >= self._count(broadcast):
            raise GramfoldError(f"there is no group {own}")
        check_space(moments, network_of(broadcast, f"{own}/"), labels_of(broadcast))

    def aggregate(self, total: PerClient | GroupedMoments, broadcast: Packet) -> Packet:  # type: ignore[override]
        if isinstance(total, PerClient):
            means, centres = group(total.in_order(), self.groups)
            return Packet({"means": means, "centres": centres}, {**broadcast.meta, "chosen": {"groups": len(centres)}})
        number, seed = broadcast.meta["layers"], broadcast.meta["features"]["seed"]
        parts: dict[str, Array] = {}
        chosen: dict[str, Any] = dict(broadcast.meta.get("chosen", {}))
        leverages = []
        for g in range(self._count(broadcast)):
            moments = total.groups[g] if g in total.groups else total.total()  # a group whose clients did not answer
            network = network_of(broadcast, f"{g}/")
            if network.complete:
                beta, factor = solve_pooled(moments, self.beta)
                parts[f"{g}/weights"] = factor.solve(moments.cross)
                leverages.append(mean_leverage(factor, beta, moments.n))
            else:
                layer = solve_layer(moments, network.next, seed, number, self.beta)
                parts |= {f"{g}/layer.{number}": layer.weights, f"{g}/codes.{number}": layer.codes}
        if not leverages:
            return with_layer(broadcast, parts)
        known = broadcast.arrays
        return Packet({**known, **parts}, {**broadcast.meta, "chosen": chosen, "leverages": leverages}, known=frozenset(known))

    def personalize(self, client: ClientData, broadcast: Packet) -> Head:
        own = self._group(client, broadcast)
        hold = self.lam if self.lam is not None else self._best_hold(client, broadcast, own)
        network = next(self._networks(client.train, broadcast, own, [hold]))
        weights, lam = self._last(network, client.train, broadcast, own)
        chosen = {"group": own, "hold": None if math.isinf(hold) else hold, "lam": lam}
        return Head([Stream(network, weights)], labels_of(broadcast), method=self.name, chosen=chosen)

    def _networks(self, train: Samples, broadcast: Packet, own: int, holds: Sequence[float]) -> Iterator[ConvolutionMap]:
        """A client's layers, all but the last, for each of some holds."""
        shared = network_of(broadcast, f"{own}/")
        first = None  # the first layer's moments are the same for all of them
        for hold in holds:
            if math.isinf(hold):
                yield shared
                continue
            network = ConvolutionMap(shared.description, {})
            for number, (name, weights) in enumerate(shared.arrays.items()):
                moments = first if first is not None and number == 0 else fold_patches(network, train, broadcast)
                first = moments if number == 0 else first
                layer = _held(moments, weights, broadcast[f"{own}/codes.{number}"], hold)
                network = ConvolutionMap(shared.description, {**network.arrays, name: layer})
            yield network

    def _last(self, network: ConvolutionMap, train: Samples, broadcast: Packet, own: int) -> tuple[Array, float]:
        """A client's last layer, and its lam."""
        rows, shared = network(train.inputs), broadcast[f"{own}/weights"]
        targets = target_rows(train, broadcast, rows)
        residuals = targets - rows @ shared
        if self.lam is None:
            lam = _left_out_lam(rows, targets, residuals, broadcast.meta["leverages"][own])
        else:
            lam = self.lam * float((rows**2).sum()) / rows.shape[1]
        # (Gram + lam I)^-1 (B + lam W) = W + (Gram + lam I)^-1 F'(Y - F W)
        return shared + ridge_from_rows(rows, residuals, lam), lam

    def _best_hold(self, client: ClientData, broadcast: Packet, own: int) -> float:
        codes = arrays.to_numpy(client.train.targets)
        if len(codes) < MIN_SAMPLES or not network_of(broadcast, f"{own}/").labels_seen:
            return HOLDS[0]
        kept, held_out = stratified(codes, VALIDATED, seeds.generator(broadcast.meta["features"]["seed"], f"hold/{client.name}"))
        train, test = (Samples(client.train.inputs[part], client.train.targets[part]) for part in (kept, held_out))

        right = {}
        for hold, network in zip(HOLDS, self._networks(train, broadcast, own, HOLDS), strict=True):
            weights, _ = self._last(network, train, broadcast, own)
            found = arrays.to_numpy((network(test.inputs) @ weights).argmax(1))
            right[hold] = int((found == codes[held_out]).sum())
        return max(HOLDS, key=lambda hold: right[hold])  # where they tie, the first

    def global_head(self, broadcast: Packet) -> Head | None:  # type: ignore[override]
        """The network of the one group, where there is one."""
        if "1/weights" in broadcast.arrays:
            return None
        return Head([Stream(network_of(broadcast, "0/"), broadcast["0/weights"])], labels_of(broadcast), method=self.name)

    def _count(self, broadcast: Packet) -> int:
        """How many groups there are."""
        return len(broadcast["centres"]) if self.groups != 1 else 1

    def _group(self, client: ClientData, broadcast: Packet) -> int:
        if self.groups == 1:
            return 0
        centres, means = arrays.to_numpy(broadcast["centres"]), arrays.to_numpy(broadcast["means"])
        own = class_sums(client.train, len(means))
        return nearest(describe(own["counts"], own["sums"], means), centres)


def _held(own: Moments, shared: Array, codes: Array, lam: float) -> Array:
    """A client's layer: its solved filters near the shared ones, then the drawn ones as they are."""
    solved = codes.shape[1]
    penalty = lam * float(own.lower_gram.diagonal().sum()) / own.dim
    wanted = own.cross @ codes + penalty * shared[:, :solved]
    return arrays.concatenate([factorise(own.lower_gram, penalty).solve(wanted), shared[:, solved:]], axis=1)


def _left_out_lam(rows: Array, targets: Array, residuals: Array, leverage: float) -> float:
    """lam of the last layer by leave-one-out; the shared layer has seen the client's samples, and is left out going by its mean
    leverage."""
    kernel = Kernel.of(rows)
    honest = residuals / max(1.0 - leverage, 1e-3)
    candidates: list[Candidate] = [
        ({"lam": float(lam)}, targets - kernel.left_out_residuals(honest, float(lam))) for lam in penalty_grid(kernel)
    ]
    return choose(candidates, targets, classification=True)["lam"]
