"""Arrays of an .npz file: only those that are asked for, and only after their headers have been read."""

import math
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from gramfold.errors import MALFORMED, FileError

LARGE = 2**30
"""Bytes that a file may unfold to, however small it is."""
SLACK = 64
"""Bytes between two entries: some writers put sizes there. No array is as short."""
MOST_UNFOLDED = 100
"""How many times its size a larger file may unfold to: rows that are nearly all zeros do so, a trap does so a thousand times."""


def read_arrays(path: Path, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays called so, where they are there: numbers and text, never Python objects."""
    key = ""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {}
            for entry in archive.infolist():
                with archive.open(entry):  # both of its names are compared: one that was damaged is not overlooked
                    entries[entry.filename.removesuffix(".npy")] = entry
            _require_no_gaps(archive, path)
            found = [key for key in wanted if key in entries]
            size = sum(entries[key].file_size for key in found)
            if size > max(LARGE, MOST_UNFOLDED * path.stat().st_size):
                raise FileError(f"{path.name} would unfold to {size / 2**30:.1f} GB; write it anew without compression")
            content = {}
            for key in found:
                with archive.open(entries[key]) as file:
                    _check_header(file, entries[key].file_size, f"{path.name}: `{key}`")
                with archive.open(entries[key]) as file:
                    content[key] = npy.read_array(file, allow_pickle=False)
                    if file.read(1):
                        raise ValueError(f"`{key}` is longer than it says")
            return content
    except (OSError, EOFError, struct.error, zipfile.BadZipFile, zlib.error, *MALFORMED) as error:
        raise FileError(f"{path} is not a readable .npz file: {error}") from None


def _require_no_gaps(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise where the list of entries leaves room for one that it does not name: damage can hide an entry as the comment of
    another."""
    end = 0
    with path.open("rb") as file:
        for entry in sorted(archive.infolist(), key=lambda entry: entry.header_offset):
            if entry.header_offset - end > SLACK:
                break
            file.seek(entry.header_offset)
            name, extra = struct.unpack("<26x2H", file.read(30))
            end = entry.header_offset + 30 + name + extra + entry.compress_size
    if archive.start_dir - end > SLACK:
        raise ValueError("its list of arrays leaves some out")


def _check_header(file: IO[bytes], size: int, what: str) -> None:
    """Raise unless an array is of numbers or text, and of the size that its entry has."""
    version = npy.read_magic(file)
    shape, _, dtype = npy.read_array_header_1_0(file) if version == (1, 0) else npy.read_array_header_2_0(file)
    if dtype.hasobject:
        raise FileError(
            f"{what} holds Python objects, as a column of text from pandas does; save it as numbers, or with .astype(str)"
        )
    if dtype.names:
        fields = ", ".join(dtype.names)
        raise FileError(
            f"{what} has fields ({fields}), not one number or word each; survival times, an event and a time, are not served yet"
        )
    if dtype.kind not in "fiubcUS":
        raise FileError(f"{what} must be numbers or text, got dtype {dtype}")
    if math.prod(shape) * dtype.itemsize != size - file.tell():
        raise FileError(f"{what} says that it has shape {shape}, which is not what is there")
