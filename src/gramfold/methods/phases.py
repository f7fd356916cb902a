"""Phases: rounds before a method's own, in which clients are asked for small sums and something is found out that its broadcasts
then hold - the map of the features, how clients differ.

    question.begin(start, seed) -> Phase      at the server: the first round, or what is known without one
    phase.local(client) -> upload             at each client
    phase.after(total) -> Phase               at the server: the next round, or what was found
    into(start, found) -> start               at the server: what clients are sent next, found out included

A method has a chain of them, which ends with what clients are sent before the round of the moments.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from gramfold.methods.asked import Asked, AskedSums
from gramfold.methods.protocol import ClientData
from gramfold.wire import Packet
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Phase(Record, Asked, ABC):
    """Where a phase stands, which is what clients are sent in its round. Its sums are of `shapes`, unless `check_packet` and
    `check` say something else."""

    start: Record
    """The method's broadcast before the moments, but for what is yet to be found out."""
    seed: int
    place: int = field(default=0, kw_only=True)
    """Which of the method's phases this is."""

    @abstractmethod
    def local(self, client: ClientData) -> Any:
        """The upload of one client."""

    @abstractmethod
    def after(self, total: Any) -> Any:
        """The phase as it is after a round, from the sum of the uploads; where there is nothing left to ask, what was found."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the named sums that are asked for."""
        return {}

    def check_packet(self, packet: Packet) -> None:
        AskedSums(self.shapes).check_packet(packet)

    def check(self, upload: Any) -> None:
        AskedSums(self.shapes).check(upload)


class Question(Protocol):
    """What a phase is to find out."""

    @property
    def rounds(self) -> int:
        """At most."""

    def begin(self, start: Any, seed: int) -> Any:
        """The phase's first round; what is found, where nothing is to be asked."""


class Link(NamedTuple):
    """A phase in a method's chain, and what it finds put `into` the method's broadcast."""

    question: Question
    into: Callable[[Any, Any], Record]


def begun(chain: Sequence[Link], start: Record, seed: int, place: int = 0) -> Record:
    """What clients are sent first by the phases from this place on; after the last, what they are sent before the moments."""
    for at, link in enumerate(chain[place:], place):
        found = link.question.begin(start, seed)
        if isinstance(found, Phase):
            return replace(found, place=at)
        start = link.into(start, found)
    return start


def following(chain: Sequence[Link], phase: Phase, total: Any) -> Record:
    """What clients are sent after a phase's round."""
    found = phase.after(total)
    if isinstance(found, Phase):
        return found
    return begun(chain, chain[phase.place].into(phase.start, found), phase.seed, phase.place + 1)
