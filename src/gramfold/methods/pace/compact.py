"""PACE's heads in few numbers: of a small client not weights (m x C) but its samples, and what each of them adds (n x C).

Weights of a ridge in the dual are F'a, and a move of the shared solution A^-1 F'a: of the client's own there are its inputs, from
which F follows, and the coordinates a. Written is whichever is smaller; either way the head is the same.
"""

import numpy as np

from gramfold.heads import Unsolved
from gramfold.methods.pace.broadcast import Streams
from gramfold.methods.pace.candidates import Basis, OwnRidge
from gramfold.methods.pace.client import OwnSamples
from gramfold.methods.pace.heads import OfClient, Written
from gramfold.methods.pace.influence import OfFactor
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.numerics.stacks import transposed

RIDGE, MOVE = "pace/ridge", "pace/move"


def unsolved(broadcast: Streams, samples: OwnSamples) -> Written:
    """What stands for weights where coordinates and inputs are fewer numbers."""
    own, pooled = _own(samples), samples.given.pooled
    group = next((i for i, group in enumerate(broadcast.groups) if group.pooled is pooled), None)

    def written(basis: Basis, coordinates: Array) -> OfClient | None:
        if not (isinstance(basis, OwnRidge | OfFactor) and basis.dual and _smaller(basis, samples)):
            return None

        def of_client(k: int) -> tuple[Unsolved, Array | float]:
            arrays_of = own[k] | {"numbers": arrays.to_numpy(coordinates[k, : samples.padding.sizes[k]])}
            if isinstance(basis, OfFactor):
                return Unsolved(MOVE, arrays_of, {"group": group}), 0.0
            place = next(i for i, each in enumerate(broadcast.maps) if each is basis.map)
            along = (basis.centre[k] @ basis.rows[k].T) @ coordinates[k, :-1]  # as in `FreeRidge.solution`
            return Unsolved(RIDGE, arrays_of, {"map": place}), coordinates[k, -1] - along[0]

        return of_client

    return written


def weights_of(weights: Unsolved, broadcast: Streams) -> Array:
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


def _smaller(basis: OwnRidge | OfFactor, samples: OwnSamples) -> bool:
    """Whether inputs and coordinates of the largest client are fewer bytes than weights."""
    inputs = samples.inputs
    if not isinstance(inputs, np.ndarray) or inputs.ndim != 2:
        return False
    outputs, width = samples.targets.shape[-1], (basis.map or samples.given.space.map).dim
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
