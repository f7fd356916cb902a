"""What a round asks for, and what uploads from elsewhere are held against."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gramfold.errors import MethodError
from gramfold.moments import Implied
from gramfold.uploads import NamedSums
from gramfold.wire import Packet


class Asked:
    """By default anything, of which nothing is known."""

    @property
    def implied(self) -> Implied:
        """What holds for the features behind every upload, whatever the samples."""
        return Implied()

    def check_packet(self, packet: Packet) -> None:
        """Raise unless a packet can hold what was asked for, going by the sizes it claims: engines call this for packets from
        other processes, before they make anything of them."""

    def check(self, upload: Any) -> None:
        """Raise unless an upload is what was asked for; engines call this for uploads from other processes. No upload may depend
        on it that an earlier one was valid: whoever answers first may be the one who lies."""


@dataclass(frozen=True)
class Anything(Asked):
    """Uploads of which no more is known than this."""

    known: Implied = field(default_factory=Implied)

    @property
    def implied(self) -> Implied:
        return self.known


@dataclass(frozen=True)
class AskedSums(Asked):
    """Named sums of these shapes."""

    shapes: Mapping[str, tuple[int, ...]]

    def check_packet(self, packet: Packet) -> None:
        if packet.meta.get("kind") != NamedSums.kind:
            raise MethodError(f"expected named sums, got {packet.meta.get('kind')}")

    def check(self, upload: Any) -> None:
        if not isinstance(upload, NamedSums):
            raise MethodError(f"expected named sums, got {upload.kind}")
        upload.require_shapes(self.shapes)
