"""PACE's heads in few numbers: of a small client not weights (m x C) but its samples, and what each of them adds (n x C).

Weights of a ridge in the dual are F'a, and a move of the shared solution A^-1 F'a: of the client's own there are its inputs, from
which F follows, and the coordinates a. Written is whichever is smaller; either way the head is the same.
"""

from typing import Any

import numpy as np

from gramfold.features import Map
from gramfold.heads import Stream, Unsolved
from gramfold.methods.pace.broadcast import Streams
from gramfold.methods.pace.candidates import Basis, Candidate, OwnRidge
from gramfold.methods.pace.client import OwnSamples
from gramfold.methods.pace.heads import Solution
from gramfold.methods.pace.influence import OfFactor
from gramfold.methods.pace.server import Pooled
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.numerics.stacks import transposed

RIDGE, MOVE = "pace/ridge", "pace/move"


def unsolved(broadcast: Streams, samples: OwnSamples, mixture: Candidate) -> list[Solution]:
    """What `client.solution` gives, with coordinates in place of weights where these are more."""
    pooled, clients = samples.given.pooled, samples.padding.clients
    base: list[Any] = [pooled.weights] * clients
    streams: list[list[Stream]] = [[] for _ in range(clients)]
    offsets: list[Array | float] = [0.0] * clients
    own = _own(samples)
    for basis, coordinates in mixture.coordinates.items():
        small = _dual(basis) and _smaller(basis, samples)
        weights, intercepts = (None, None) if small else basis.solution(coordinates)
        for k in np.flatnonzero(mixture.present[basis]):
            numbers = {"numbers": arrays.to_numpy(coordinates[k, : samples.padding.sizes[k]])}
            if basis.moves:
                about = {"group": _group(pooled, broadcast)}
                base[k] = Unsolved(MOVE, own[k] | numbers, about) if weights is None else base[k] + weights[k]
                continue
            map = getattr(basis, "map")  # noqa: B009 (only a basis that does not move has one)
            if weights is None or intercepts is None:
                assert isinstance(basis, OwnRidge)
                streams[k].append(Stream(map, Unsolved(RIDGE, own[k] | numbers, {"map": _place(map, broadcast)})))
                offsets[k] = offsets[k] + _intercept(basis, coordinates, int(k))
            else:
                streams[k].append(Stream(map, weights[k]))
                offsets[k] = offsets[k] + (intercepts if isinstance(intercepts, float) else intercepts[k])
    map = samples.given.space.map
    return [(Stream(map, weights), beside, offset) for weights, beside, offset in zip(base, streams, offsets, strict=True)]


def solved(weights: Unsolved, broadcast: Streams) -> Array:
    """The weights that `Unsolved` stands for."""
    own, about = weights.arrays, weights.about
    roots = None if "weights" not in own else np.sqrt(own["weights"])[:, None]
    if weights.kind == RIDGE:
        map = broadcast.maps[int(about["map"])]
        ridge = OwnRidge(map, map(own["inputs"])[None], None if roots is None else roots[None])
        return (transposed(ridge.rows) @ own["numbers"])[0]
    pooled = broadcast.pooled if about["group"] is None else broadcast.groups[int(about["group"])].pooled
    assert pooled is not None
    rows = broadcast.space.map(own["inputs"])
    influence = OfFactor(pooled.leverage, rows if roots is None else rows * roots, Padding([len(rows)]))  # type: ignore[arg-type]
    return pooled.weights + influence.solution(own["numbers"][None])[0][0]


def _dual(basis: Basis) -> bool:
    return isinstance(basis, OwnRidge | OfFactor) and basis.dual


def _smaller(basis: Basis, samples: OwnSamples) -> bool:
    """Whether inputs and coordinates of the largest client are fewer bytes than weights."""
    inputs = samples.inputs
    if not isinstance(inputs, np.ndarray) or inputs.ndim != 2:
        return False
    outputs, width = samples.targets.shape[-1], basis.map.dim if isinstance(basis, OwnRidge) else samples.given.space.map.dim
    each = inputs.shape[1] * inputs.itemsize + 8 * (outputs + (samples.train.weights is not None))
    return bool(samples.padding.most * each < 8 * width * outputs)


def _own(samples: OwnSamples) -> list[dict[str, Array]]:
    """What is written of each client's samples: once, however many weights follow from it."""
    ends = np.cumsum(samples.padding.sizes)[:-1]
    inputs, weights = np.split(samples.inputs, ends), samples.train.weights
    if weights is None:
        return [{"inputs": part} for part in inputs]
    return [
        {"inputs": part, "weights": often}
        for part, often in zip(inputs, np.split(np.asarray(weights, float), ends), strict=True)
    ]  # fmt: skip


def _intercept(ridge: OwnRidge, coordinates: Array, k: int) -> Array:
    """`FreeRidge.solution`'s, without the weights."""
    along = (ridge.centre[k] @ ridge.rows[k].T) @ coordinates[k, :-1]
    return coordinates[k, -1] - along[0]


def _place(map: Map, broadcast: Streams) -> int:
    return next(i for i, each in enumerate(broadcast.maps) if each is map)


def _group(pooled: Pooled, broadcast: Streams) -> int | None:
    return next((i for i, group in enumerate(broadcast.groups) if group.pooled is pooled), None)
