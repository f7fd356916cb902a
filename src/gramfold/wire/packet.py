"""What travels: named arrays and small metadata, as safetensors. No pickle anywhere."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from gramfold.errors import MALFORMED, FileError, MessageError
from gramfold.numerics.arrays import Array, to_numpy
from gramfold.wire.triangle import lower_size, pack_lower, unpack_lower

# In the order in which safetensors lays tensors out; tensors of one dtype follow by name.
_DTYPES = {
    "uint64": "U64", "int64": "I64", "float64": "F64", "float32": "F32", "uint32": "U32",
    "int32": "I32", "float16": "F16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_LAYOUT = list(_DTYPES.values())


FORMAT = 3
"""What packets and files are written as. Those of gramfold's first days name no format: that is 1; 2 had no checksum."""
_CHECKSUM = "sha256"
_PREFIX = f'{{"__metadata__":{{"{_CHECKSUM}":"'.encode()
_AT = slice(8 + len(_PREFIX), 8 + len(_PREFIX) + hashlib.sha256().digest_size * 2)
"""Where the checksum of all other bytes stands: first in the header, so that it is found without reading anything."""


@dataclass(frozen=True)
class Packet:
    """Named arrays and metadata. Arrays named in `triangular` are lower triangles and travel packed; those in `known` were sent
    in an earlier round and do not travel again."""

    arrays: Mapping[str, Array] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    triangular: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    @cached_property
    def wire_bytes(self) -> int:
        """The length of `to_bytes()`, without making it."""
        return serialised_size(self._shapes(), self._metadata())

    def _shapes(self) -> "Shapes":
        return {
            name: ((lower_size(len(array)),) if name in self.triangular else tuple(array.shape), dtype_name(array))
            for name, array in self.arrays.items()
            if name not in self.known
        }

    def _metadata(self) -> dict[str, str]:
        lists = {"triangular": self.triangular - self.known, "known": self.known}
        named = {key: ",".join(sorted(names)) for key, names in lists.items()}
        return {_CHECKSUM: "0" * (_AT.stop - _AT.start), "format": str(FORMAT), "meta": json.dumps(dict(self.meta)), **named}

    def to_bytes(self) -> bytes:
        """The same bytes for the same packet, always."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The same in pieces, each array where it lies: for what is too large to be laid out twice."""
        header, _ = _layout(self._shapes(), self._metadata())
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        beginning = len(text).to_bytes(8, "little") + text
        del header["__metadata__"]
        yield _sealed(beginning, self._contents(header))
        yield from self._contents(header)

    def _contents(self, names: Iterable[str]) -> Iterator[bytes | memoryview]:
        for name in names:
            array = self.arrays[name]
            packed = pack_lower(array) if name in self.triangular else np.ascontiguousarray(to_numpy(array))
            yield packed.reshape(-1).view(np.uint8).data if packed.size else b""

    def digest(self) -> str:
        """The SHA-256 of its bytes."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def completed(self, earlier: Mapping[str, Array]) -> "Packet":
        """The packet with the arrays that it counts on being known, as they came in earlier ones."""
        missing = self.known - set(self.arrays) - set(earlier)
        if missing:
            raise MessageError(f"a message counts on arrays that never came: {', '.join(sorted(missing))}")
        return Packet(
            {**{name: earlier[name] for name in self.known if name in earlier}, **self.arrays},
            self.meta,
            self.triangular,
            self.known,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Packet":
        """The packet in these bytes; a single one of them that is not as it was written is noticed."""
        try:
            size = int.from_bytes(data[:8], "little")
            if size > len(data) - 8:
                raise ValueError("it is cut off")
            metadata = json.loads(data[8 : 8 + size])["__metadata__"]
            _require_format(int(metadata["format"]) if "format" in metadata or "meta" not in metadata else 1)
            if data[8 : _AT.start] != _PREFIX or data[_AT] != _checksum((data[: _AT.start], memoryview(data)[_AT.stop :])):
                raise ValueError("the checksum in it is not that of its content")
            arrays = load(data)
            triangular, known = (frozenset(filter(None, metadata[key].split(","))) for key in ("triangular", "known"))
            meta = json.loads(metadata["meta"])
            if not isinstance(meta, dict):
                raise ValueError("its metadata is no object")
            for name in triangular:
                arrays[name] = unpack_lower(arrays[name])
        except (SafetensorError, *MALFORMED) as error:
            raise MessageError(f"not a gramfold message, or a damaged file: {error}") from None
        return cls(arrays, meta, triangular, known)


def _checksum(pieces: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest().encode()


def _sealed(beginning: bytes, contents: Iterable[bytes | memoryview]) -> bytes:
    """The beginning of a packet, with the checksum of all that is not the checksum."""
    checksum = _checksum(chain((beginning[: _AT.start], beginning[_AT.stop :]), contents))
    return beginning[: _AT.start] + checksum + beginning[_AT.stop :]


def _require_format(found: int) -> None:
    if found > FORMAT:
        raise FileError(f"written by a newer gramfold (format {found}, this reads {FORMAT}); upgrade")
    if found < FORMAT:
        raise FileError(f"format {found} is that of an older gramfold (this reads {FORMAT}); write it anew")


Shapes = Mapping[str, tuple[tuple[int, ...], str]]
"""Shape and dtype (F64, I64 ...) of arrays, by name."""


def serialised_size(shapes: Shapes, metadata: Mapping[str, str]) -> int:
    """Bytes of a safetensors file that holds arrays of these shapes and this metadata."""
    header, offset = _layout(shapes, metadata)
    length = len(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode())
    return 8 + -(-length // 8) * 8 + offset


def packet_size(shapes: Shapes, meta: Mapping[str, Any]) -> int:
    """Bytes of a packet that holds arrays of these shapes and this metadata."""
    return serialised_size(shapes, Packet({}, meta)._metadata())


def _layout(shapes: Shapes, metadata: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    """The header of such a file, its arrays in their order, and how many bytes follow it."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    offset = 0
    for name in sorted(shapes, key=lambda name: (_LAYOUT.index(shapes[name][1]), name)):
        shape, dtype = shapes[name]
        end = offset + int(np.prod(shape, dtype=np.int64)) * _itemsize(dtype)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    return header, offset


def _itemsize(dtype: str) -> int:
    return 1 if dtype == "BOOL" else int(dtype[1:]) // 8


def dtype_name(array: Array) -> str:
    """The name of its numbers' type as safetensors has it."""
    return _DTYPES[str(array.dtype).removeprefix("torch.")]
