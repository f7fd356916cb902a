"""A method that asks how clients differ: the rounds for that between those of learned features and that of the moments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gramfold.errors import GramfoldError
from gramfold.federation import Task
from gramfold.methods.analytic import Analytic
from gramfold.methods.asked import Asked
from gramfold.methods.differences.found import Found
from gramfold.methods.differences.groups import Groups, is_groups
from gramfold.methods.differences.phase import Plan
from gramfold.methods.learning import directions
from gramfold.methods.phases import Link
from gramfold.methods.protocol import ClientData, Method, Revisable
from gramfold.methods.spaces import OneGroup, Space
from gramfold.moments import Moments


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
    def phases(self) -> Sequence[Link]:
        return (*super().phases, Link(self._differences, lambda start, found: replace(start, found=found)))

    def revisable(self, broadcast: Any) -> Revisable | None:
        revisable = super().revisable(broadcast)
        if revisable is None:
            return None
        found: Found = broadcast.found or Found()
        grouped = found.groups is not None and found.groups.named is None  # a client's group is found from all of its samples
        learned = self._plan is not None or grouped or found.personal is not None or found.effects is not None
        return replace(revisable, by_sample=not grouped, learned=learned)

    def upload(self, client: ClientData, broadcast: Any) -> Any:
        moments, groups = self.moments(client, broadcast), groups_of(broadcast)
        return moments if groups is None else groups.grouped(client, moments)

    def moments(self, client: ClientData, broadcast: Any) -> Moments:
        """A client's, as they travel."""
        moments: Moments = super().upload(client, broadcast)
        return moments

    def sum_of(self, clients: Sequence[ClientData], broadcast: Any) -> Any:
        whole = groups_of(broadcast) is None
        return super().sum_of(clients, broadcast) if whole else Method.sum_of(self, clients, broadcast)

    def asked(self, broadcast: Any) -> Asked:
        groups = groups_of(broadcast)
        if groups is None:
            return super().asked(broadcast)
        space: Space = broadcast.space
        return OneGroup([space] * (groups.count + 1), space.implied)


def groups_of(broadcast: Any) -> Groups | None:
    """The groups by which moments are folded."""
    found = getattr(broadcast, "found", None)
    return found.groups if isinstance(found, Found) else None
