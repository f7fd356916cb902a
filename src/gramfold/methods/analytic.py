"""Base of the analytic methods: a feature map, frozen or learned first, and one round in which moments are folded."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods import learning
from gramfold.methods.asked import Asked
from gramfold.methods.learning import DirectionsPlan, Learned, Plan, directions
from gramfold.methods.phases import Link, Phase, begun, following
from gramfold.methods.protocol import ClientData, Method, Revisable
from gramfold.methods.spaces import FEWER, MapLike, Space, draw_map, plain_term, together
from gramfold.moments import Moments
from gramfold.numerics import memory
from gramfold.numerics.arrays import Array
from gramfold.wire.record import Record

SQUARES = 4
"""Matrices of features x features at the server: the sum, its factor, and room to work."""


@dataclass(frozen=True)
class Begin(Record, kind="begin"):
    """The first broadcast of a one-round method."""

    space: Space


@dataclass(frozen=True)
class Shared(Record, kind="shared"):
    """One head for all clients, with its mean leverage and (for classes) its temperature."""

    space: Space
    weights: Array
    chosen: Mapping[str, Any]
    leverage: float = 0.0
    temperature: float | None = None


@dataclass(frozen=True)
class Analytic(Method):
    """One round: every client sends the moments of its mapped features. Where the map is to be learned (`...@learned`), the
    rounds of the learning come first."""

    weighted: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    """Whether there are rounds in which features can be learned."""

    features: MapLike | None = None
    """None: a linear one, of rows of one length where a backbone made them, else of columns as they are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._plan

    @property
    def _plan(self) -> Plan | DirectionsPlan | None:
        return learning.plan_of(self.features)

    @property
    def phases(self) -> Sequence[Link]:
        """The rounds before that of the moments."""
        return () if self._plan is None else (Link(self._plan, self.learned),)

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> Method:
        if self.features is not None:
            return self
        if task.inputs > directions.WIDE and self.learns and not (once or bounded):
            return replace(self, features=directions.default(task.samples, masked))
        return replace(self, features=f"bias+{plain_term(task, bounded)}")

    @property
    def rounds(self) -> int:
        return 1 + sum(link.question.rounds for link in self.phases)

    def is_last(self, round_number: int, broadcast: Any) -> bool:
        """Phases may take fewer rounds than they were given."""
        return not isinstance(broadcast, Phase)

    def revisable(self, broadcast: Any) -> Revisable | None:
        if isinstance(broadcast, Phase) or not self.rounds:
            return None
        if not self.phases:
            return Revisable(self.begin)
        return Revisable(lambda task: self.learned(self._started(task), Learned(broadcast.space.map)), learned=True)

    def begin(self, task: Task) -> Any:
        if self.features is None:
            return self.settled(task).begin(task)
        return begun(self.phases, self._started(task), task.seed)

    def _started(self, task: Task) -> Record:
        """The method's first broadcast, but for what its phases find out."""
        if self._plan is not None:
            return self.start(Space.of(draw_map("bias+linear", task), task), task)
        assert self.features is not None
        space = Space.of(draw_map(self.features, task), task)
        if self.learns:
            memory.ask(SQUARES * 8 * space.map.dim**2, f"sums of {space.map.dim} features", FEWER)
        return self.start(space, task)

    def start(self, space: Space, task: Task) -> Record:
        """What clients are sent before the round of the moments in a space."""
        return Begin(space)

    def learned(self, start: Any, found: Learned) -> Record:
        """The same with the map that was learned."""
        started: Record = replace(start, space=replace(start.space, map=found.map))
        return started

    def local(self, client: ClientData, broadcast: Any) -> Any:
        return broadcast.local(client) if isinstance(broadcast, Phase) else self.upload(client, broadcast)

    def upload(self, client: ClientData, broadcast: Any) -> Any:
        """The moments of a client's samples."""
        return broadcast.space.fold(client)

    def sum_of(self, clients: Sequence[ClientData], broadcast: Any) -> Any:
        found = self.revisable(broadcast)
        if found is None or not found.by_sample or self.rounds_numbers:
            return super().sum_of(clients, broadcast)
        return self.upload(ClientData("all", together(clients)[0]), broadcast)

    def aggregate(self, total: Any, broadcast: Any) -> Any:
        if isinstance(broadcast, Phase):
            return following(self.phases, broadcast, total)
        return self.solve(total, broadcast)

    @abstractmethod
    def solve(self, total: Moments, broadcast: Any) -> Record:
        """What clients are sent after the round of the moments, from their sum."""

    def asked(self, broadcast: Any) -> Asked:
        asked: Asked = broadcast if isinstance(broadcast, Phase) else broadcast.space
        return asked

    def global_head(self, broadcast: Any) -> Head | None:
        if not hasattr(broadcast, "weights"):
            return None
        head: Head = broadcast.space.head(broadcast.weights, self.name, temperature=getattr(broadcast, "temperature", None))
        return head
