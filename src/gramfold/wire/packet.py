"""What travels: named arrays and small metadata, as safetensors. No pickle anywhere."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from gramfold.errors import GramfoldError
from gramfold.numerics.arrays import Array, to_numpy
from gramfold.wire.triangle import lower_size, pack_lower, unpack_lower

# In the order in which safetensors lays tensors out; tensors of one dtype follow by name.
_DTYPES = {
    "uint64": "U64", "int64": "I64", "float64": "F64", "float32": "F32", "uint32": "U32",
    "int32": "I32", "float16": "F16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_LAYOUT = list(_DTYPES.values())


FORMAT = 2
"""What packets and files are written as. Those of gramfold's first days name no format: that is 1."""


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

    @property
    def wire_bytes(self) -> int:
        """The length of `to_bytes()`, without making it."""
        return serialised_size(self._shapes(), self._metadata())

    def _shapes(self) -> "Shapes":
        return {
            name: ((lower_size(len(array)),) if name in self.triangular else tuple(array.shape), _dtype_name(array))
            for name, array in self.arrays.items()
            if name not in self.known
        }

    def _metadata(self) -> dict[str, str]:
        lists = {"triangular": self.triangular - self.known, "known": self.known}
        named = {key: ",".join(sorted(names)) for key, names in lists.items()}
        return {"format": str(FORMAT), "meta": json.dumps(dict(self.meta)), **named}

    def to_bytes(self) -> bytes:
        """The same bytes for the same packet, always."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The same in pieces, each array where it lies: for what is too large to be laid out twice."""
        header, _ = _layout(self._shapes(), self._metadata())
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        yield len(text).to_bytes(8, "little") + text
        del header["__metadata__"]
        for name in header:
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
            raise GramfoldError(f"a message counts on arrays that never came: {', '.join(sorted(missing))}")
        return Packet(
            {**{name: earlier[name] for name in self.known if name in earlier}, **self.arrays},
            self.meta,
            self.triangular,
            self.known,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Packet":
        try:
            arrays = load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            metadata = header["__metadata__"]
            _require_format(int(metadata["format"]) if "format" in metadata or "meta" not in metadata else 1)
            triangular, known = (frozenset(filter(None, metadata[key].split(","))) for key in ("triangular", "known"))
            meta = json.loads(metadata["meta"])
            if not isinstance(meta, dict):
                raise ValueError("its metadata is no object")
            for name in triangular:
                arrays[name] = unpack_lower(arrays[name])
        except (SafetensorError, KeyError, ValueError) as error:
            raise GramfoldError(f"not a gramfold message: {error}") from None
        return cls(arrays, meta, triangular, known)


def _require_format(found: int) -> None:
    if found > FORMAT:
        raise GramfoldError(f"written by a newer gramfold (format {found}, this reads {FORMAT}); upgrade")
    if found < FORMAT:
        raise GramfoldError(f"format {found} is that of an older gramfold (this reads {FORMAT}); write it anew")


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


def _dtype_name(array: Array) -> str:
    return _DTYPES[str(array.dtype).removeprefix("torch.")]
