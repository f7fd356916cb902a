"""SAFLe (Bacellar et al., CVPR 2026, arXiv 2512.03336): AFL on codes of random groups of bucketed inputs.

client   sums of its inputs and of their squares                    so that buckets lie alike in every input
server   means and variances
client   moments of [1, codes], see features/buckets                embeddings summed over groups: a linear head on codes
server   W = (S + beta P)^-1 M                                      as in AFL
client   uses W

Derived from the paper's description: bits that overlap (is the input above a threshold?), shuffled into groups, an embedding of
the classes' scores for each corner of a group. Neither the paper's sizes nor where its thresholds lie were at hand: here they
stand at quantiles of a normal distribution, which takes the first, small round.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import Bias, Buckets, Chain, Concat, FeatureMap, Standardize, draw
from gramfold.federation import Task
from gramfold.methods.afl import AFL
from gramfold.methods.analytic import Begin, Shared
from gramfold.methods.protocol import ClientData, Method
from gramfold.methods.spaces import Space, counting, draw_map, plain_term
from gramfold.moments import Implied
from gramfold.numerics import arrays
from gramfold.uploads import NamedSums
from gramfold.wire import Packet
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Spread(Record, kind="safle/spread"):
    """Where the inputs, as this space has them, lie and how far they spread is asked."""

    space: Space
    seed: int

    def check_packet(self, packet: Packet) -> None:
        if packet.meta.get("kind") != NamedSums.kind:
            raise GramfoldError(f"expected sums of inputs, got {packet.meta.get('kind')}")

    def check(self, upload: Any) -> None:
        if not isinstance(upload, NamedSums):
            raise GramfoldError(f"expected sums of inputs, got {upload.kind}")
        dim = self.space.map.dim
        upload.require_shapes({"inputs": (dim,), "squares": (dim,), "n": (1,)})

    @property
    def implied(self) -> Implied:
        return Implied()


@dataclass(frozen=True)
class SAFLe(AFL):
    """One shared head on bucketed inputs, exactly that of pooled data. `dim`: how many features; `group`: bits in a group;
    `levels`: thresholds for each input. `beta`: the ridge penalty; None: by GCV. `features` are those that are bucketed."""

    name: ClassVar[str] = "safle"
    summary: ClassVar[str] = "AFL on codes of random groups of bucketed inputs"
    paper: ClassVar[str] = "Bacellar et al., CVPR 2026, arXiv 2512.03336"

    dim: int = 4096
    group: int = 4
    levels: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        Buckets(self.dim, self.group, self.levels)
        if self._plan is not None:
            raise GramfoldError("safle buckets features as they are; use a map without @")

    @property
    def rounds(self) -> int:
        return 2

    @property
    def adds_up(self) -> bool:
        return False

    def is_last(self, round_number: int, broadcast: Any) -> bool:
        return not isinstance(broadcast, Spread)

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> Method:
        return self

    def begin(self, task: Task) -> Spread:
        return Spread(Space.of(draw_map(self.features or plain_term(task), task), task), task.seed)

    def asked(self, broadcast: Any) -> Any:
        return broadcast if isinstance(broadcast, Spread) else super().asked(broadcast)

    def local(self, client: ClientData, broadcast: Any) -> Any:
        return spread(client, broadcast.space) if isinstance(broadcast, Spread) else self.upload(client, broadcast)

    def aggregate(self, total: Any, broadcast: Any) -> Begin | Shared:
        if not isinstance(broadcast, Spread):
            return self.solve(total, broadcast)
        mean, scale = (arrays.to_numpy(part) for part in standardisation(total))
        plain = FeatureMap.from_description(broadcast.space.map.description["map"])
        codes = Chain(
            [plain, Standardize(tuple(mean), tuple(scale)), Concat([Bias(), Buckets(self.dim, self.group, self.levels)])]
        )
        space = broadcast.space
        return Begin(Space(draw(codes, space.map.inputs, broadcast.seed), space.labels, space.outputs, True))


def spread(client: ClientData, space: Space) -> NamedSums:
    """Sums of a client's inputs and of their squares."""
    train, total = counting(client), None
    for block in arrays.blocks(train.n, space.map.dim):
        rows = space.map(train.inputs[block])
        weights = arrays.like(np.ones(len(rows)) if train.weights is None else train.weights[block], rows)
        part = NamedSums({"inputs": weights @ rows, "squares": weights @ rows**2, "n": weights.sum()[None]})
        total = part if total is None else total.__iadd__(part)
    assert total is not None
    return total


def standardisation(total: NamedSums) -> tuple[Any, Any]:
    """Means and spreads of all clients' inputs; an input that is always the same is only shifted."""
    mean = total["inputs"] / total["n"]
    scale = (total["squares"] / total["n"] - mean**2).clip(0.0) ** 0.5
    return mean, scale + (scale <= 1e-9 * abs(mean))  # and one that is always zero: 0 <= 0
