"""Base of the analytic methods: a feature map, frozen or learned first, and one round in which moments are folded."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gramfold.features import FeatureMap, Map
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods import learning
from gramfold.methods.learning import DirectionsPlan, Finding, Learning, Plan, directions
from gramfold.methods.learning.own_parts import Common
from gramfold.methods.protocol import ClientData, Method
from gramfold.methods.spaces import FEWER, MapLike, Space, counting, draw_map, plain_term
from gramfold.moments import Implied, Moments
from gramfold.numerics import memory
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet
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
        _ = self._plan

    @property
    def _plan(self) -> Plan | DirectionsPlan | None:
        return learning.plan_of(self.features)

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> Method:
        if self.features is not None:
            return self
        if task.inputs > directions.WIDE and self.learns and not (once or bounded):
            return replace(self, features=directions.default(task.samples, masked))
        return replace(self, features=f"bias+{plain_term(task, bounded)}")

    @property
    def rounds(self) -> int:
        return 1 + (self._plan.rounds if self._plan is not None else 0)

    @property
    def adds_up(self) -> bool:
        return self.rounds > 0

    @property
    def takes_own_parts(self) -> bool:
        """Whether clients take what is their own out of continuous targets while features are learned."""
        return False

    def again(self, task: Task, broadcast: Any) -> Record:
        """The map stays as it was learned."""
        if self._plan is None:
            return super().again(task, broadcast)
        return self.learned(self._started(task), broadcast.space.map)

    def _started(self, task: Task) -> Record:
        """The method's first broadcast, but for the map that is to be learned."""
        return self.start(Space.of(draw_map("bias+linear", task), task), task)

    def is_last(self, round_number: int, broadcast: Any) -> bool:
        """Learning may take fewer rounds than it was given."""
        return not isinstance(broadcast, Learning | Finding)

    def begin(self, task: Task) -> Any:
        if self.features is None:
            return self.settled(task).begin(task)
        if self._plan is None:
            space = Space.of(draw_map(self.features, task), task)
            if self.learns:
                memory.ask(SQUARES * 8 * space.map.dim**2, f"sums of {space.map.dim} features", FEWER)
            return self.start(space, task)
        if isinstance(self._plan, DirectionsPlan):
            return Finding.begin(self._plan, task, self._started(task))
        return learning.begin(self._plan, task, self._started(task), self.takes_own_parts)

    def start(self, space: Space, task: Task) -> Record:
        """What clients are sent before the round of the moments in a space."""
        return Begin(space)

    def learned(self, start: Any, map: Map, common: Common | None = None) -> Record:
        """The same with the map that was learned; `common`: where clients take own parts out of their targets."""
        started: Record = replace(start, space=replace(start.space, map=map))
        return started

    def local(self, client: ClientData, broadcast: Any) -> Any:
        if isinstance(broadcast, Learning):
            return learning.local(client, broadcast)
        if isinstance(broadcast, Finding):
            return broadcast.local(counting(client))
        return self.upload(client, broadcast)

    def upload(self, client: ClientData, broadcast: Any) -> Moments:
        """The moments of a client's samples."""
        space: Space = broadcast.space
        return space.fold(client)

    def aggregate(self, total: Any, broadcast: Any) -> Any:
        if isinstance(broadcast, Finding):
            found = broadcast.after(total)
            return found if isinstance(found, Finding) else self.learned(broadcast.start, found)
        if not isinstance(broadcast, Learning):
            return self.solve(total, broadcast)
        after = learning.step(total, broadcast)
        return after if isinstance(after, Learning) else self.learned(broadcast.start, after, learning.in_common(broadcast))

    @abstractmethod
    def solve(self, total: Moments, broadcast: Any) -> Record:
        """What clients are sent after the round of the moments, from their sum."""

    def asked(self, broadcast: Any) -> Any:
        """What uploads are held against: the round's `check_packet`, `check` and `implied`."""
        return broadcast if isinstance(broadcast, Learning | Finding) else broadcast.space

    def check_packet(self, packet: Packet, broadcast: Any) -> None:
        self.asked(broadcast).check_packet(packet)

    def check(self, upload: Any, broadcast: Any) -> None:
        self.asked(broadcast).check(upload)

    def implied(self, broadcast: Any) -> Implied:
        implied: Implied = self.asked(broadcast).implied
        return implied

    def global_head(self, broadcast: Any) -> Head | None:
        if not hasattr(broadcast, "weights"):
            return None
        head: Head = broadcast.space.head(broadcast.weights, self.name, temperature=getattr(broadcast, "temperature", None))
        return head

    def parameters(self) -> Mapping[str, Any]:
        given = super().parameters()
        return {key: value.describe() if isinstance(value, FeatureMap) else value for key, value in given.items()}
