"""An upload that came over a network, back from its packet: which kind it is stands in its metadata."""

from gramfold.errors import GramfoldError
from gramfold.moments import Moments
from gramfold.numerics.arrays import all_finite
from gramfold.uploads.grouped_moments import GroupedMoments
from gramfold.uploads.named_sums import NamedSums, PerClient
from gramfold.wire import Packet


def unpack(packet: Packet) -> Moments | GroupedMoments | NamedSums | PerClient:
    """The moments, moments by group, sums or gathered parcels in a packet, checked as far as they can be checked alone.

    >>> import numpy as np
    >>> unpack(NamedSums({"w": np.ones(2)}).pack())["w"].tolist()
    [1.0, 1.0]
    """
    if "moments" in packet.meta:
        return Moments.unpack(packet)
    if "groups" in packet.meta:
        return GroupedMoments.unpack(packet)
    for name, part in packet.arrays.items():
        if not all_finite(part):
            raise GramfoldError(f"an upload must be finite; found NaN or infinity in {name}")
    if "gathered" not in packet.meta:
        return NamedSums.unpack(packet)
    try:
        return PerClient.unpack(packet)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise GramfoldError(f"not a message of gathered parcels: {error}") from None
