"""Packets as Flower records and back: arrays as an ArrayRecord, everything else as JSON in a ConfigRecord."""

import json
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from gramfold import wire
from gramfold.errors import NetworkError
from gramfold.numerics.arrays import to_numpy
from gramfold.remote.messages import Message
from gramfold.wire import Packet

HEADER = "header"
ARRAYS, META = "/arrays", "/meta"
Records = dict[str, ArrayRecord | ConfigRecord]


def packet_records(name: str, packet: Packet) -> Records:
    """The records of one packet. Messages to many sites share them, so that its arrays are serialised once."""
    parts = {
        key: Array(wire.pack_lower(part) if key in packet.triangular else np.ascontiguousarray(to_numpy(part)))
        for key, part in packet.arrays.items()
        if key not in packet.known
    }
    metadata = {
        "meta": dict(packet.meta), "triangular": sorted(packet.triangular - packet.known), "known": sorted(packet.known),
    }  # fmt: skip
    return {name + ARRAYS: ArrayRecord(parts), name + META: ConfigRecord({"json": json.dumps(metadata)})}


class RecordBuilder:
    """Converts messages to records; a packet that goes to many sites is converted once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Packet, Records]] = {}

    def content(self, message: Message) -> RecordDict:
        records = RecordDict()
        records[HEADER] = ConfigRecord({"json": json.dumps(dict(message.header))})
        for name, packet in message.packets.items():
            if id(packet) not in self._made:
                self._made = {id(packet): (packet, packet_records(name, packet))}
            for key, record in self._made[id(packet)][1].items():
                records[key] = record
        return records


def read(records: RecordDict) -> Message:
    """The message in records, which are emptied in the process: no array is in memory twice."""
    try:
        header = _object(records[HEADER])
        names = [name.removesuffix(ARRAYS) for name in records if name.endswith(ARRAYS)]
        return Message(header, {name: _packet(records, name) for name in names})
    except (KeyError, TypeError, ValueError) as error:
        raise NetworkError(f"not a gramfold message: {error}") from None


def _packet(records: RecordDict, name: str) -> Packet:
    metadata, parts = _object(records[name + META]), records[name + ARRAYS]
    triangular = frozenset(metadata["triangular"])
    arrays: dict[str, np.ndarray] = {}
    for key in list(parts):
        array = parts.pop(key).numpy()  # type: ignore[union-attr]
        arrays[key] = wire.unpack_lower(array) if key in triangular else array
    return Packet(arrays, metadata["meta"], triangular, frozenset(metadata["known"]))


def _object(record: Any) -> dict[str, Any]:
    metadata = wire.read_json(record["json"])
    if not isinstance(metadata, dict):
        raise TypeError("its metadata is not an object")
    return metadata
