"""A method that asks how clients differ: the rounds for that between those of learned features and that of the moments."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gramfold.errors import GramfoldError
from gramfold.federation import Task
from gramfold.methods.analytic import Analytic
from gramfold.methods.differences.found import Found
from gramfold.methods.differences.groups import Groups, Slots, is_groups
from gramfold.methods.differences.phase import Differing, Plan
from gramfold.methods.learning import Finding, Learning, directions
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space
from gramfold.moments import Moments
from gramfold.wire.record import Record

LEARNS = (Learning, Finding)
"""The rounds before."""


@dataclass(frozen=True)
class Differs(Analytic):
    """Its broadcasts around the moments have a field `found`, and folded are moments by group where groups were found."""

    groups: bool | Mapping[str, str] | None = None
    personal: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.groups, bool | None) and not is_groups(self.groups):
            raise GramfoldError(
                "groups is True, False, None, or the group of each client by name, such as {'berlin': 'scanner A'}"
            )
        if not isinstance(self.personal, bool | None):
            raise GramfoldError(f"personal is True, False or None (where it pays), not {self.personal!r}")

    def questions(self, task: Task, once: bool, bounded: bool, masked: bool) -> dict[str, Any]:
        """`groups` and `personal`, once it is settled whether these are asked for. Where nobody says they are, if the method has
        the choice of its features and rounds, no masks on its sums, and inputs that are not too wide; of continuous targets
        groups only on request."""
        if bounded and (self.groups not in (None, False) or self.personal):
            raise GramfoldError(
                "how clients differ is learned from sums without noise: with differential privacy leave out groups and personal"
            )
        chooses = self.features is None and getattr(self, "learn", None) is not False and task.inputs <= directions.WIDE
        free = chooses and not once and not masked
        groups = free and task.labels is not None if self.groups is None else self.groups
        return {"groups": groups, "personal": free if self.personal is None else self.personal}

    @property
    def _differences(self) -> Plan:
        given = None if isinstance(self.groups, bool | None) else Groups.given(self.groups)
        return Plan(self.groups is True, self.personal is True, given)

    @property
    def rounds(self) -> int:
        return super().rounds + self._differences.rounds

    def is_last(self, round_number: int, broadcast: Any) -> bool:
        return super().is_last(round_number, broadcast) and not isinstance(broadcast, Differing)

    def learned_before(self, broadcast: Any) -> bool:
        found: Found = broadcast.found or Found()
        grouped = found.groups is not None and found.groups.named is None
        return self._plan is not None or grouped or found.personal is not None

    def by_sample(self, broadcast: Any) -> bool:
        groups = groups_of(broadcast)  # a client's is found from all of its samples
        return groups is None or groups.named is not None

    def begin(self, task: Task) -> Any:
        if self.features is None:
            return self.settled(task).begin(task)
        begun = super().begin(task)
        return begun if isinstance(begun, LEARNS) else self._differing(begun)

    def _differing(self, start: Any) -> Record:
        """What is asked about how clients differ, before the moments."""
        space: Space = start.space
        if getattr(start, "common", None) is not None and space.outputs is not None:
            # targets are folded twice; asked are those as they are
            space = replace(space, outputs=space.outputs // 2)
        begun = Differing.begin(self._differences, space, start.seed, start)
        answered: Record = replace(start, found=begun) if isinstance(begun, Found) else begun
        return answered

    def local(self, client: ClientData, broadcast: Any) -> Any:
        if isinstance(broadcast, Differing):
            return broadcast.local(client)
        if isinstance(broadcast, LEARNS):
            return super().local(client, broadcast)
        moments, groups = self.moments(client, broadcast), groups_of(broadcast)
        return moments if groups is None else groups.grouped(client, moments)

    def moments(self, client: ClientData, broadcast: Any) -> Moments:
        """A client's, as they travel."""
        return self.upload(client, broadcast)

    def aggregate(self, total: Any, broadcast: Any) -> Any:
        if isinstance(broadcast, Differing):
            after = broadcast.step(total)
            start: Any = broadcast.start
            return after if isinstance(after, Differing) else replace(start, found=after)
        after = super().aggregate(total, broadcast)
        learned = isinstance(broadcast, LEARNS) and not isinstance(after, LEARNS)
        return self._differing(after) if learned else after

    def asked(self, broadcast: Any) -> Any:
        if isinstance(broadcast, Differing):
            return broadcast
        groups = groups_of(broadcast)
        return super().asked(broadcast) if groups is None else Slots(groups, broadcast.space)


def groups_of(broadcast: Any) -> Groups | None:
    """The groups by which moments are folded."""
    found = getattr(broadcast, "found", None)
    return found.groups if isinstance(found, Found) else None
