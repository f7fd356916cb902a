"""Each client alone: a tuned ridge on its own data. The baseline that federation has to beat.

client   W_k = (G_k + beta P)^-1 B_k, beta by leave-one-out; P as in solve/units
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.errors import MethodError
from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin
from gramfold.methods.parts.selection import Candidate, choose_candidate, penalty_grid
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting, root_weights
from gramfold.numerics import memory
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import require_products
from gramfold.renamed import renamed
from gramfold.solve.own import OwnRidge
from gramfold.solve.temperature import fit_temperature


@renamed(beta="penalty")
@dataclass(frozen=True)
class Local(Analytic):
    """No federation. `penalty`: the ridge penalty; None: each client's own, by leave-one-out."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "each client alone: ridge on its own data"
    paper: ClassVar[str] = "ridge regression"
    penalties: ClassVar[tuple[str, ...]] = ("penalty",)
    probabilistic: ClassVar[bool] = True
    learns: ClassVar[bool] = False

    penalty: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._plan is not None:
            raise MethodError("local learns nothing together; use a map without @learned")

    @property
    def rounds(self) -> int:
        return 0

    def solve(self, total: Any, broadcast: Begin) -> Begin:
        return broadcast

    def personalize(self, client: ClientData, broadcast: Begin) -> Head:
        space = broadcast.space
        train = counting(client)
        width = space.map.dim
        memory.ask(
            3 * 8 * width * train.n, f"client {client.name!r}: {train.n} samples of {width} features", "give fewer columns"
        )
        rows = space.map(train.inputs)
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        require_products(features=rows, targets=targets)
        ridges = {bool(units.shared): OwnRidge(rows, roots, units) for units in space.units().tried(self.penalty)}
        found, scores = choose_candidate(self._left_out(ridges, targets), targets, space.classification, train.weights)
        weights = ridges[bool(found.pop("one_unit"))].solve(targets, found["penalty"])
        temperature = fit_temperature(scores, train.targets, counts=train.weights) if space.classification else None
        return space.head(weights, self.name, found if self.penalty is None else {}, temperature)

    def _left_out(self, ridges: Mapping[bool, OwnRidge], targets: Array) -> Iterator[Candidate]:
        for one_unit, ridge in ridges.items():
            for penalty in map(float, penalty_grid(ridge.kernel) if self.penalty is None else [self.penalty]):
                yield {"penalty": penalty, "one_unit": one_unit}, ridge.left_out(targets, penalty)
