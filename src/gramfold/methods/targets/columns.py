"""A method on columns of values that are made of its clients' targets."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.federation import Samples, Task
from gramfold.heads import Head
from gramfold.methods.analytic import Analytic
from gramfold.methods.asked import Asked
from gramfold.methods.phases import Phase
from gramfold.methods.protocol import IN_CODE, ClientData, Method, Revisable
from gramfold.moments import Moments
from gramfold.moments.products import Products
from gramfold.numerics import arrays
from gramfold.wire.record import Record


@dataclass(frozen=True)
class OnColumns(Method):
    """What is asked of a method, answered by `inner` on columns of values. It goes by the name and the parameters of that."""

    summary: ClassVar[str] = "a method on columns of values that targets are made of"
    paper: ClassVar[str] = ""

    inner: Analytic = field(metadata=IN_CODE)
    names: tuple[int | str, ...] = field(default=(), metadata=IN_CODE)
    """What the columns are of: labels, or classes."""

    def __post_init__(self) -> None:
        for told in ("name", "probabilistic", "weighted", "threaded", "remedies", "precision", "input_kinds"):
            object.__setattr__(self, told, getattr(self.inner, told))

    def parameters(self) -> Mapping[str, Any]:
        return self.inner.parameters()

    # --- what targets become ---

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many columns."""

    @abstractmethod
    def columns(self, targets: np.ndarray) -> np.ndarray:
        """The columns of samples, n x outputs."""

    def on_columns(self, client: ClientData) -> ClientData:
        train = client.train
        columns = arrays.like(self.columns(np.asarray(arrays.to_numpy(train.targets))), train.targets)
        return replace(client, train=Samples(train.inputs, columns, train.weights, train.blocks))

    # --- rounds ---

    @property
    def rounds(self) -> int:
        return self.inner.rounds

    def is_last(self, round_number: int, broadcast: Any) -> bool:
        return self.inner.is_last(round_number, broadcast)

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> Method:
        settled: Any = self.inner.settled(task.of_values(self.outputs), once, bounded, masked)
        return replace(self, inner=settled)

    def begin(self, task: Task) -> Record:
        begun: Record = self.inner.begin(task.of_values(self.outputs))
        return begun

    def local(self, client: ClientData, broadcast: Any) -> Any:
        return self.inner.local(self.on_columns(client), broadcast)

    def asked(self, broadcast: Any) -> Asked:
        return self.inner.asked(broadcast)

    def aggregate(self, total: Any, broadcast: Any) -> Record:
        if isinstance(broadcast, Phase):
            found: Record = self.inner.aggregate(total, broadcast)
            return found
        return self.solved(total, broadcast)

    @abstractmethod
    def solved(self, total: Moments, broadcast: Any) -> Record:
        """What clients are sent after the round of the moments."""

    # --- heads ---

    @abstractmethod
    def personalize_many(self, clients: Sequence[ClientData], broadcast: Any) -> list[Head]: ...

    def personalize(self, client: ClientData, broadcast: Any) -> Head:
        return self.personalize_many([client], broadcast)[0]

    def numbers_per_sample(self, broadcast: Any) -> int | None:
        return self.inner.numbers_per_sample(self.plain(broadcast))

    def plain(self, broadcast: Any) -> Any:
        """The broadcast of `inner` that a broadcast holds."""
        return getattr(broadcast, "inner", broadcast)

    def revisable(self, broadcast: Any) -> Revisable | None:
        found = self.inner.revisable(self.plain(broadcast))
        if found is None:
            return None
        again: Callable[[Task], Record] = found.again
        return replace(found, again=lambda task: self.widened(again(task.of_values(self.outputs))))

    def widened(self, begun: Any) -> Record:
        """A broadcast before the moments, for all columns again."""
        made: Record = replace(begun, space=replace(begun.space, labels=None, outputs=self.outputs))
        return made


def of_column(total: Moments, column: int) -> Moments:
    """Moments of one of the columns of values."""
    one = Moments(total.dim, 1, fingerprint=total.fingerprint, like=total.products.like)
    one.exact_n, one.extra_weight, one.rounding = total.exact_n, total.extra_weight, total.rounding
    one.squares = total.squares[column : column + 1]
    one.products = Products.of(total.lower_gram, total.cross[:, column : column + 1])
    return one
