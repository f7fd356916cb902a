"""What travels: named arrays and small metadata, as safetensors. No pickle anywhere."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gramfold.arrays import Array, to_numpy
from gramfold.errors import GramfoldError

# In the order in which safetensors lays tensors out; tensors of one dtype follow by name.
_DTYPES = {
    "uint64": "U64", "int64": "I64", "float64": "F64", "float32": "F32", "uint32": "U32",
    "int32": "I32", "float16": "F16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_LAYOUT = list(_DTYPES.values())


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
        return {"meta": json.dumps(dict(self.meta))} | {key: ",".join(sorted(names)) for key, names in lists.items()}

    def to_bytes(self) -> bytes:
        arrays = {
            name: pack_lower(array) if name in self.triangular else np.asarray(to_numpy(array), order="C")
            for name, array in self.arrays.items()
            if name not in self.known
        }
        return bytes(save(arrays, self._metadata()))

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
            triangular, known = (frozenset(filter(None, metadata[key].split(","))) for key in ("triangular", "known"))
            meta = json.loads(metadata["meta"])
            if not isinstance(meta, dict):
                raise ValueError("its metadata is no object")
            for name in triangular:
                arrays[name] = unpack_lower(arrays[name])
        except (SafetensorError, KeyError, ValueError) as error:
            raise GramfoldError(f"not a gramfold message: {error}") from None
        return cls(arrays, meta, triangular, known)


Shapes = Mapping[str, tuple[tuple[int, ...], str]]
"""Shape and dtype (F64, I64 ...) of arrays, by name."""


def serialised_size(shapes: Shapes, metadata: Mapping[str, str]) -> int:
    """Bytes of a safetensors file that holds arrays of these shapes and this metadata."""
    header, offset = _layout(shapes, metadata)
    length = len(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode())
    return 8 + -(-length // 8) * 8 + offset


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


def lower_size(m: int) -> int:
    return m * (m + 1) // 2


def pack_lower(matrix: Array) -> np.ndarray:
    """The lower triangle, row by row, as one vector."""
    matrix = to_numpy(matrix)
    m = len(matrix)
    packed = np.empty(lower_size(m), matrix.dtype)
    for i in range(m):
        packed[lower_size(i) : lower_size(i + 1)] = matrix[i, : i + 1]
    return packed


def unpack_lower(packed: np.ndarray) -> np.ndarray:
    """The square matrix with this lower triangle and zeros above."""
    m = (int(np.sqrt(8 * packed.size + 1)) - 1) // 2
    if packed.ndim != 1 or lower_size(m) != packed.size:
        raise GramfoldError(f"{packed.size} numbers are not the triangle of a square matrix")
    matrix = np.zeros((m, m), packed.dtype)
    for i in range(m):
        matrix[i, : i + 1] = packed[lower_size(i) : lower_size(i + 1)]
    return matrix


def lower_diagonal(m: int) -> np.ndarray:
    """Where the diagonal lies in a packed lower triangle."""
    ends = np.arange(1, m + 1)
    return ends * (ends + 1) // 2 - 1


def add_lower(matrix: np.ndarray, packed: np.ndarray) -> None:
    """Add a packed lower triangle to that of a matrix."""
    for i in range(len(matrix)):
        matrix[i, : i + 1] += packed[lower_size(i) : lower_size(i + 1)]


def upper_size(r: int, m: int) -> int:
    return r * m - r * (r - 1) // 2


def pack_upper(matrix: Array) -> np.ndarray:
    """The upper trapezoid of an r x m matrix (r <= m), row by row, as one vector."""
    matrix = to_numpy(matrix)
    return np.concatenate([matrix[i, i:] for i in range(len(matrix))]) if len(matrix) else np.empty(0)


def unpack_upper(packed: np.ndarray, r: int, m: int) -> np.ndarray:
    """The r x m matrix with this upper trapezoid and zeros below."""
    if r > m or packed.shape != (upper_size(r, m),):
        raise GramfoldError(f"{packed.size} numbers are not the upper trapezoid of a {r} x {m} matrix")
    matrix = np.zeros((r, m), packed.dtype)
    for i in range(r):
        matrix[i, i:] = packed[upper_size(i, m) : upper_size(i + 1, m)]
    return matrix


def write_atomically(path: Path, *pieces: bytes | memoryview) -> None:
    """Write under a temporary name, then rename: nobody ever sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(pieces)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise GramfoldError(f"cannot write {path}: {error.strerror}") from None


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise GramfoldError(f"cannot read {path}: {error.strerror}") from None


def file_name(name: str) -> str:
    """A client's name as a file name of its own that cannot leave its folder."""
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
