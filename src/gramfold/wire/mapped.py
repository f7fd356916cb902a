"""A packet's file as arrays that are read where they are asked for: for a few numbers out of a file of many."""

import json
from pathlib import Path

import numpy as np

from gramfold.errors import MALFORMED, FileError

_TYPES = {"U64": np.uint64, "I64": np.int64, "F64": np.float64, "F32": np.float32, "U32": np.uint32, "U8": np.uint8}


def mapped(path: Path) -> dict[str, np.ndarray]:
    """The arrays of the packet in a file, by name. Its checksum is not looked at, which would read all of it."""
    try:
        content = np.memmap(path, np.uint8, mode="r")
        begin = 8 + int.from_bytes(content[:8].tobytes(), "little")
        header = json.loads(content[8:begin].tobytes())
        found = {}
        for name, about in header.items():
            if name != "__metadata__":
                start, end = (begin + int(at) for at in about["data_offsets"])
                found[name] = content[start:end].view(_TYPES[about["dtype"]]).reshape(about["shape"])
        return found
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    except MALFORMED as error:
        raise FileError(f"{path} is damaged: {error!r}") from None
