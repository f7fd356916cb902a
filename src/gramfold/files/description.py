"""What parts say of their data before there is a task: it adds up, as moments do."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from gramfold import uploads
from gramfold.errors import MALFORMED, PartsError
from gramfold.sources import TableStatistics
from gramfold.uploads.base import Apart
from gramfold.wire import Packet


@uploads.register
class Description(Apart):
    """Shapes, classes, how many training samples; of a table the statistics of its columns, of features what made them."""

    kind: ClassVar[str] = "description"
    no_vector: ClassVar[str] = "a description of data is no vector that could be summed"

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.said = dict(said)

    def __iadd__(self, other: "Description") -> "Description":
        mine, theirs = self.said, other.said
        for key, what in (("shape", "sample shape"), ("inputs", "numbers per sample"), ("outputs", "targets")):
            free = (key == "inputs" and "table" in mine) or (key == "outputs" and mine["labels"] is not None)
            if mine[key] != theirs[key] and not free:
                raise PartsError(f"they differ in their {what}: {mine[key]} and {theirs[key]}")
        if (mine["labels"] is None) != (theirs["labels"] is None):
            raise PartsError("one has classes, the other continuous targets")
        if ("table" in mine) != ("table" in theirs):
            raise PartsError("one is a table for the encoder, the other features")
        if mine.get("origin", {}).get("fingerprint") != theirs.get("origin", {}).get("fingerprint"):
            raise PartsError("their features come from different backbones")
        said = {**mine, "samples": mine["samples"] + theirs["samples"]}
        if mine["labels"] is not None:
            both = {*mine["labels"], *theirs["labels"]}
            if len({type(label) for label in both}) > 1:
                raise PartsError("one numbers its classes, the other names them")
            said |= {"labels": sorted(both), "outputs": len(both)}
        if "table" in mine:
            said["table"] = (TableStatistics.from_dict(mine["table"]) + TableStatistics.from_dict(theirs["table"])).to_dict()
        self.said = said
        return self

    def copy(self) -> "Description":
        return Description(self.said)

    @property
    def n(self) -> int:
        return int(self.said["samples"])

    def pack(self) -> Packet:
        return Packet({}, {"kind": self.kind, "said": json.loads(json.dumps(self.said))})

    @classmethod
    def unpack(cls, packet: Packet, *, exact_counts: bool = True) -> "Description":
        try:
            said: Any = packet.meta["said"]
            labels = said["labels"]
            whole = (said["inputs"], said["outputs"], said["samples"], *said["shape"])
            if not all(type(number) is int and number >= 0 for number in whole):
                raise ValueError("sizes must be whole numbers")
            if labels is not None and not all(type(label) in (int, str) for label in labels):
                raise ValueError("classes must be numbers or names")
            if "table" in said:
                TableStatistics.from_dict(said["table"])
            return cls({key: said[key] for key in ("inputs", "shape", "labels", "outputs", "samples", "declared")} | {
                key: said[key] for key in ("table", "origin") if key in said
            })  # fmt: skip
        except MALFORMED as error:
            raise PartsError(f"not a description of data: {error!r}") from None
