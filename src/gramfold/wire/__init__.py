"""Serialisation for messages and files: named arrays and small metadata, as safetensors. No pickle anywhere."""

from gramfold.wire.files import append, file_name, is_temporary, private_folder, read, sync_folder, write_atomically
from gramfold.wire.lock import locked
from gramfold.wire.mapped import mapped
from gramfold.wire.packet import FORMAT, Packet, Shapes, dtype_name, packet_size, serialised_size
from gramfold.wire.sealed import CHECKSUM, opened, read_lines, read_sealed, sealed, sealed_line, write_sealed
from gramfold.wire.strict_json import read_json
from gramfold.wire.triangle import (
    add_lower,
    lower_diagonal,
    lower_size,
    pack_lower,
    pack_upper,
    unpack_lower,
    unpack_upper,
    upper_size,
)

__all__ = [
    "CHECKSUM", "FORMAT", "Packet", "Shapes", "add_lower", "append", "dtype_name", "file_name", "is_temporary", "locked",
    "lower_diagonal", "lower_size", "mapped", "opened", "pack_lower", "pack_upper", "packet_size", "private_folder",
    "read", "read_json", "read_lines", "read_sealed", "sealed", "sealed_line", "serialised_size",
    "sync_folder", "unpack_lower", "unpack_upper",
    "upper_size", "write_atomically", "write_sealed",
]  # fmt: skip
