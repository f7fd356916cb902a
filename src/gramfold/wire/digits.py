"""Broadcasts in fewer bits. A matrix is rounded before anybody computes with it, the server included, and travels as the numbers
that it then holds: in float32, or in float16 in units of its columns' largest number. What is small stays as it is, and so do
vectors; a triangle is a factor of a system, and keeps float32 at least.
"""

from collections.abc import Mapping
from typing import TypeVar

from gramfold.errors import MessageError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire.packet import Packet
from gramfold.wire.record import DIGITS, UNITS, Record, widened

PRECISIONS = ("float64", "float32", "float16", "int8")
"""What numbers may travel in, the fewest bits last; int8 is for uploads, and means float16 in broadcasts."""
SMALL = 4096
"""Numbers up to which a matrix is small."""
R = TypeVar("R", bound=Record)


def require_precision(precision: str | None) -> None:
    if precision not in (None, *PRECISIONS):
        raise MessageError(f"numbers travel in one of {', '.join(PRECISIONS)}, not {precision!r}")


def rounded(record: R, precision: str | None) -> R:
    """The record with the numbers that it travels in. Arrays that hold no others stay the same objects, so that what a client
    has received before is recognised; a map whose arrays are others is another map."""
    if precision in (None, "float64"):
        return record
    packet = record.pack()
    kept = {name: _kept(array, _form(packet, name, precision)) for name, array in packet.arrays.items()}
    if all(array is packet.arrays[name] for name, array in kept.items()):
        return record
    return type(record).unpack(Packet(kept, packet.meta, packet.triangular), trusted=False)


def narrowed(packet: Packet, precision: str | None) -> Packet:
    """A packet of rounded numbers, as it travels."""
    forms = {} if precision in (None, "float64") else {name: _form(packet, name, precision) for name in packet.arrays}
    forms = {name: form for name, form in forms.items() if form is not None}
    if not forms:
        return packet
    sent = {key: part for name, array in packet.arrays.items() for key, part in _sent(name, array, forms.get(name)).items()}
    return Packet(sent, {**packet.meta, DIGITS: sorted(forms)}, packet.triangular)


def _form(packet: Packet, name: str, precision: str | None) -> str | None:
    """What a matrix travels in; None: as it is."""
    array = packet.arrays[name]
    if len(array.shape) != 2 or arrays.to_numpy(array[:0]).dtype.name != "float64" or array.shape[0] * array.shape[1] <= SMALL:
        return None
    return "float32" if name in packet.triangular or precision == "float32" else "float16"


def _sent(name: str, array: Array, form: str | None) -> Mapping[str, Array]:
    if form is None:
        return {name: array}
    if form == "float32":
        return {name: arrays.cast(array, form)}
    units = arrays.row_max(abs(array).T)
    return {name: arrays.cast(array / (units + (units == 0)), form), name + UNITS: units}


def _kept(array: Array, form: str | None) -> Array:
    if form is None:
        return array
    rounded = widened({DIGITS: [""]}, _sent("", array, form))[""]
    return array if bool((rounded == array).all()) else rounded
