"""An upload that came over a network, back from its packet: which kind it is stands in its metadata."""

from gramfold.arrays import all_finite
from gramfold.errors import GramfoldError
from gramfold.grouped import Grouped
from gramfold.moments import Moments
from gramfold.sums import Gathered, Sums
from gramfold.wire import Packet


def unpack(packet: Packet) -> Moments | Grouped | Sums | Gathered:
    """The moments, moments by group, sums or gathered parcels in a packet, checked as far as they can be checked alone.

    >>> import numpy as np
    >>> unpack(Sums({"w": np.ones(2)}).pack())["w"].tolist()
    [1.0, 1.0]
    """
    if "moments" in packet.meta:
        return Moments.unpack(packet)
    if "groups" in packet.meta:
        return Grouped.unpack(packet)
    for name, part in packet.arrays.items():
        if not all_finite(part):
            raise GramfoldError(f"an upload must be finite; found NaN or infinity in {name}")
    if "gathered" not in packet.meta:
        return Sums.unpack(packet)
    try:
        return Gathered.unpack(packet)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise GramfoldError(f"not a message of gathered parcels: {error}") from None
