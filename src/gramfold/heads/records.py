"""A head among thousands: a record of the numbers that are its own, and by name what it has in common with the others.

    layout     what its numbers are: JSON, the same for many heads
    content    these numbers, one array after another

What is common are the arrays and maps of what all clients were sent: an array that is that very object is not written again.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.errors import MALFORMED, HeadError
from gramfold.heads.head import Head, head_of
from gramfold.heads.streams import Stream, Unsolved, key_of
from gramfold.numerics.arrays import Array, to_numpy
from gramfold.wire import Packet
from gramfold.wire.record import Record, maps_in

WORD = 8
"""Bytes that arrays begin at a multiple of."""
FLOAT = "\0float"
"""In a layout: a number that is in the content."""
Solve = Callable[[Unsolved], Array]


@dataclass(frozen=True)
class HeadRecord:
    """One head as it is kept."""

    layout: str
    content: bytes


class InCommon:
    """What heads share: what all clients were sent, and `more` arrays by name that follow from it."""

    def __init__(self, broadcast: Record, more: Mapping[str, Array]) -> None:
        self.arrays = {**broadcast.pack().arrays, **more}
        self._names = {id(array): name for name, array in self.arrays.items()}
        self._maps = {key_of(map): map for map in maps_in(broadcast)}
        self._described = {id(map.description) for map in self._maps.values()}

    # --- writing ---

    def written(self, head: Head) -> HeadRecord:
        packet, content = head.pack(), _Content()
        said: list[float] = []
        meta = _without_floats(packet.meta, said, self._described)
        content.add(np.array(said))
        arrays = {name: self._written(array, content) for name, array in packet.arrays.items()}
        layout = {"meta": meta, "arrays": arrays, "own": content.shapes}
        return HeadRecord(json.dumps(layout, separators=(",", ":")), content.joined())

    def _written(self, array: Any, content: "_Content") -> dict[str, Any]:
        if isinstance(array, Unsolved):
            parts = {name: self._written(part, content) for name, part in array.arrays.items()}
            return {"unsolved": array.kind, "about": dict(array.about), "arrays": parts}
        name = self._names.get(id(array))
        return {"own": content.add(array)} if name is None else {"common": name}

    # --- reading ---

    def read(self, record: HeadRecord, solve: Solve) -> Head:
        """The head in a record; `solve` makes weights of what stands for them."""
        try:
            layout = json.loads(record.layout)
            own = _laid_out(layout["own"], record.content)
            meta = _with_floats(layout["meta"], iter(own[0].tolist()))
            arrays = {name: self._read(place, own, solve) for name, place in layout["arrays"].items()}
            return self._with_maps(head_of(Packet(arrays, meta)))
        except MALFORMED as error:
            raise HeadError(f"not a record of a head: {error!r}") from None

    def _read(self, place: Mapping[str, Any], own: list[np.ndarray], solve: Solve) -> Array:
        if "unsolved" in place:
            parts = {name: self._read(part, own, solve) for name, part in place["arrays"].items()}
            return solve(Unsolved(place["unsolved"], parts, place["about"]))
        return own[place["own"]] if "own" in place else self.arrays[place["common"]]

    def _with_maps(self, head: Head) -> Head:
        """The head with the maps that are drawn already."""
        streams, refinement = ([self._shared(stream) for stream in part] for part in (head.streams, head.refinement))
        return head if head.kind != Head.kind else replace(head, streams=streams, refinement=refinement)

    def _shared(self, stream: Stream) -> Stream:
        return replace(stream, map=self._maps.get(key_of(stream.map), stream.map))


class _Content:
    """Arrays on their way into a record, each once."""

    def __init__(self) -> None:
        self.shapes: list[tuple[str, tuple[int, ...]]] = []
        self._pieces: list[bytes] = []
        self._places: dict[int, int] = {}

    def add(self, array: Array) -> int:
        """Its place among them."""
        place = self._places.get(id(array))
        if place is None:
            plain = to_numpy(array)
            self.shapes.append((plain.dtype.str, plain.shape))
            self._pieces.append(plain.tobytes())
            place = self._places[id(array)] = len(self._pieces) - 1
        return place

    def joined(self) -> bytes:
        return b"".join(piece + bytes(-len(piece) % WORD) for piece in self._pieces)


def _laid_out(shapes: Any, content: bytes) -> list[np.ndarray]:
    found, at = [], 0
    for kind, shape in shapes:
        array = np.frombuffer(content, np.dtype(kind), math.prod(shape), at).reshape(shape)
        found.append(array)
        at += array.nbytes + -array.nbytes % WORD
    return found


def _without_floats(value: Any, said: list[float], common: Set[int]) -> Any:
    """Plain values with their floats taken out, in order; what all heads say alike (`common`, by its id) stays as it is."""
    kind = type(value)
    if kind is str or kind is int or value is None or id(value) in common:  # most are, and of a million heads each is asked
        return value
    if isinstance(value, float):
        said.append(value)
        return FLOAT
    if kind is dict or isinstance(value, Mapping):
        return {key: _without_floats(part, said, common) for key, part in value.items()}
    return [_without_floats(part, said, common) for part in value] if isinstance(value, list | tuple) else value


def _with_floats(value: Any, said: Iterator[float]) -> Any:
    if value == FLOAT:
        return next(said)
    if isinstance(value, dict):
        return {key: _with_floats(part, said) for key, part in value.items()}
    return [_with_floats(part, said) for part in value] if isinstance(value, list) else value
