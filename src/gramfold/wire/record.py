"""Typed, serialisable values: frozen dataclasses of arrays, maps, other records and plain values, to a packet and back.

Every field is written under an explicit tag, so a reader never guesses. Arrays are not copied: one that a record carries over
from its predecessor stays the same object, which shows an engine what a client already has.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from gramfold.errors import MessageError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire.packet import Packet

DIGITS, UNITS = "digits", "/units"
"""In a packet's metadata: the matrices that travel in fewer bits than they have; those in float16 with the units of their
columns, under a name of this ending."""
RESTORE: dict[str, Callable[[Mapping[str, Any], Mapping[str, Array], str | None], Any]] = {}
"""How to restore a map from its description, its arrays and its fingerprint; `features` registers itself here."""


class Record:
    """Base of serialisable dataclasses, registered under an explicit kind: `class Ridge(Record, kind="ridge")`."""

    kinds: ClassVar[dict[str, type["Record"]]] = {}
    kind: ClassVar[str] = ""
    triangular: ClassVar[frozenset[str]] = frozenset()
    """Fields that are lower triangles; they are sent packed."""

    def __init_subclass__(cls, kind: str = "", triangular: str = "") -> None:
        if kind:
            cls.kind = kind
            Record.kinds[kind] = cls
        if triangular:
            cls.triangular = frozenset({triangular})

    def pack(self) -> Packet:
        writer = _Writer()
        meta = writer.write(self, "")
        return Packet(writer.arrays, meta, frozenset(writer.triangular))

    @classmethod
    def unpack(cls, packet: Packet, trusted: bool = True) -> Self:
        """The record in a packet; raises unless it is one of this class. `trusted`: whether maps have the fingerprints that they
        come with, and not those of their arrays."""
        try:
            value = _read(packet.meta, widened(packet.meta, packet.arrays), trusted)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise MessageError(f"not a readable state: {error!r}") from None
        if not isinstance(value, cls):
            raise MessageError(f"expected {cls.__name__}, got {type(value).__name__}")
        return value


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.triangular: set[str] = set()

    def write(self, value: Any, place: str) -> Any:
        """`value` under its tag; its arrays are collected under names that begin with `place`."""
        if isinstance(value, Record):
            fields = dataclasses.fields(value)  # type: ignore[arg-type]
            self.triangular |= {_under(place, name) for name in value.triangular}
            parts = {f.name: self.write(getattr(value, f.name), _under(place, f.name)) for f in fields}
            return {"record": value.kind, "fields": parts}
        if hasattr(value, "fingerprint") and hasattr(value, "description"):
            self.arrays |= {_under(place, name): array for name, array in value.arrays.items()}
            return {
                "map": value.description, "fingerprint": value.fingerprint, "place": place, "arrays": list(value.arrays),
            }  # fmt: skip
        if isinstance(value, np.generic):
            return {"value": value.item()}
        if hasattr(value, "dtype"):
            self.arrays[place] = value
            return {"array": place}
        if _is_plain(value):
            return {"tuple": list(value)} if isinstance(value, tuple) else {"value": value}
        if isinstance(value, Mapping):
            return {"mapping": {key: self.write(part, f"{place}/{key}") for key, part in value.items()}}
        if isinstance(value, list | tuple):
            return {"items": [self.write(part, f"{place}/{i}") for i, part in enumerate(value)]}
        raise MessageError(f"{place or 'a state'} cannot be serialised: it holds a {type(value).__name__}")


def widened(meta: Mapping[str, Any], packed: Mapping[str, Array]) -> Mapping[str, Array]:
    """The arrays of a packet, those in float64 again that travelled in fewer bits."""
    wide = {name: arrays.float64(packed[name]) * packed.get(name + UNITS, 1.0) for name in meta.get(DIGITS, ())}
    return {**packed, **wide}


def _read(tagged: Mapping[str, Any], arrays: Mapping[str, Array], trusted: bool) -> Any:
    if "record" in tagged:
        kind = Record.kinds[tagged["record"]]
        made = kind(**{name: _read(part, arrays, trusted) for name, part in tagged["fields"].items()})
        for name in kind.triangular:
            shape = tuple(getattr(made, name).shape)
            if len(shape) != 2 or shape[0] != shape[1]:
                raise ValueError(f"{name} of shape {shape} is no triangle")
        return made
    if "map" in tagged:
        parts = {name: arrays[_under(tagged["place"], name)] for name in tagged["arrays"]}
        return RESTORE["map"](tagged["map"], parts, tagged["fingerprint"] if trusted else None)
    if "array" in tagged:
        return arrays[tagged["array"]]
    if "mapping" in tagged:
        return {key: _read(part, arrays, trusted) for key, part in tagged["mapping"].items()}
    if "items" in tagged:
        return [_read(part, arrays, trusted) for part in tagged["items"]]
    return tuple(tagged["tuple"]) if "tuple" in tagged else tagged["value"]


def maps_in(value: Any) -> Iterator[Any]:
    """The maps in a record, wherever they are."""
    if isinstance(value, Record):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]  # type: ignore[arg-type]
    if hasattr(value, "fingerprint") and hasattr(value, "description"):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        yield from (found for part in (value.values() if isinstance(value, Mapping) else value) for found in maps_in(part))


def _under(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _is_plain(value: Any) -> bool:
    """Whether it is JSON already."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(part) and not isinstance(part, tuple) for part in value)
    return value is None or isinstance(value, bool | int | float | str)


def plain(value: Any) -> Any:
    """A value after a JSON round trip."""
    return json.loads(json.dumps(value))
