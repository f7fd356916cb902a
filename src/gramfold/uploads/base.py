"""What every upload keeps to, whatever it holds. Engines, privacy and storage are written against this, and against no kind."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn, Protocol, Self

import numpy as np

from gramfold.errors import MessageError
from gramfold.wire import Packet


class Upload(Protocol):
    """What a client sends: a value that adds up, is a message, and, where the method allows it, is a vector.

    `+=` may write to its left side and never to its right one. `pack` and all that reads change nothing.
    """

    kind: ClassVar[str]
    """What `uploads.unpack` and `uploads.from_vector` go by; it stands in a packet's metadata and in `public()`."""

    def __iadd__(self, other: Self) -> Self: ...

    def copy(self) -> Self:
        """Another, which `+=` may write to."""

    def settle(self) -> Self:
        """Itself, once nothing more will be added: ready to be read without being held twice."""

    def rounded(self, precision: str) -> Self:
        """The same in fewer digits, and to travel in so many bits ("float32", "float16" or "int8"), as far as it can be."""

    @property
    def wire_bytes(self) -> int:
        """The length of `pack().to_bytes()`."""

    def pack(self) -> Packet:
        """The message that carries it."""

    @classmethod
    def unpack(cls, packet: Packet, *, exact_counts: bool = True) -> Self:
        """What `pack` gave, checked. `exact_counts`: whether samples must be counted in whole numbers, which weights and noise do
        not leave; for kinds that count none it says nothing."""

    def vector(self) -> np.ndarray:
        """All that is private as one float64 vector, whose length follows from `public()` alone. The vector of a sum is the sum
        of the vectors, up to rounding."""

    def public(self) -> dict[str, Any]:
        """All else, as JSON: the same for every client that sends to one sum."""

    @classmethod
    def from_vector(cls, vector: np.ndarray, public: Mapping[str, Any]) -> Self:
        """The upload with this vector, bit for bit. The numbers must be finite; with noise they may be no upload of any data."""


class Apart(ABC):
    """An upload that is no vector which could be summed, and travels as it is."""

    no_vector: ClassVar[str]
    """Why there is none."""

    def settle(self) -> Self:
        return self

    def rounded(self, precision: str) -> Self:
        """As it is: what it holds is for the method to say."""
        return self

    @abstractmethod
    def pack(self) -> Packet:
        """The message that carries it."""

    @property
    def wire_bytes(self) -> int:
        return self.pack().wire_bytes

    def vector(self) -> NoReturn:
        raise MessageError(self.no_vector)

    def public(self) -> NoReturn:
        raise MessageError(self.no_vector)

    @classmethod
    def from_vector(cls, vector: np.ndarray, public: Mapping[str, Any]) -> NoReturn:
        raise MessageError(cls.no_vector)
