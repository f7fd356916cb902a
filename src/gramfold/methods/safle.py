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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import MethodError
from gramfold.features import Bias, Buckets, Chain, Concat, FeatureMap, Standardize, draw
from gramfold.federation import Task
from gramfold.methods.afl import AFL
from gramfold.methods.analytic import Begin
from gramfold.methods.phases import Link, Phase
from gramfold.methods.protocol import ClientData, Method
from gramfold.methods.spaces import Space, counting, draw_map, plain_term
from gramfold.numerics import arrays
from gramfold.renamed import renamed
from gramfold.uploads import NamedSums
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Spread(Phase, kind="safle/spread"):
    """The round that asks where the inputs, as `start` maps them, lie and how far they spread."""

    start: Begin

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        dim = self.start.space.map.dim
        return {"inputs": (dim,), "squares": (dim,), "n": (1,)}

    def local(self, client: ClientData) -> NamedSums:
        train, space, total = counting(client), self.start.space, None
        for block in arrays.blocks(train.n, space.map.dim):
            rows = space.map(train.inputs[block])
            weights = arrays.like(np.ones(len(rows)) if train.weights is None else train.weights[block], rows)
            part = NamedSums({"inputs": weights @ rows, "squares": weights @ rows**2, "n": weights.sum()[None]})
            total = part if total is None else total.__iadd__(part)
        assert total is not None
        return total

    def after(self, total: NamedSums) -> Standardize:
        """Means and spreads; an input that is always the same is only shifted."""
        mean, square = (arrays.to_numpy(total[name] / total["n"]) for name in ("inputs", "squares"))
        scale = np.sqrt(np.maximum(square - mean**2, 0.0))
        scale = scale + (scale <= 1e-9 * abs(mean))  # also one that is always zero
        return Standardize(tuple(mean), tuple(scale))


@dataclass(frozen=True)
class Bucketed:
    """The question of that phase."""

    @property
    def rounds(self) -> int:
        return 1

    def begin(self, start: Begin, seed: int) -> Spread:
        return Spread(start, seed)


@renamed(beta="penalty")
@dataclass(frozen=True)
class SAFLe(AFL):
    """One shared head on bucketed inputs, exactly that of pooled data. `dim`: how many features; `group`: bits in a group;
    `levels`: thresholds for each input. `penalty`: the ridge penalty; None: by GCV. `features` are those that are bucketed."""

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
            raise MethodError("safle buckets features as they are; use a map without @")

    @property
    def phases(self) -> Sequence[Link]:
        return (Link(Bucketed(), self._coded),)

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> Method:
        return self if self.features is not None else replace(self, features=plain_term(task, bounded))

    def _started(self, task: Task) -> Record:
        assert self.features is not None
        return self.start(Space.of(draw_map(self.features, task), task), task)

    def _coded(self, start: Begin, standard: Standardize) -> Record:
        """What clients are sent before the moments: the inputs' map, then codes of it."""
        described: Any = start.space.map.description
        buckets = Concat([Bias(), Buckets(self.dim, self.group, self.levels)])
        codes = Chain([FeatureMap.from_description(described["map"]), standard, buckets])
        space = replace(start.space, map=draw(codes, start.space.map.inputs, described["seed"]))
        return replace(start, space=space)
