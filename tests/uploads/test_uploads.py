"""An upload comes back from its packet as what it was, whichever kind it is."""

import numpy as np
import pytest

import gramfold as gf
from gramfold import uploads
from gramfold.errors import GramfoldError, MessageError
from gramfold.uploads import GroupedMoments, NamedSums, PerClient
from gramfold.wire import Packet
from strategies import distance


def travelled(upload) -> Packet:
    return Packet.from_bytes(upload.pack().to_bytes())


@pytest.mark.parametrize("n", [3, 50])
def test_moments(n, rng):
    moments = gf.Moments.from_features(rng.standard_normal((n, 8)), rng.integers(0, 3, n), classes=3)
    back = uploads.unpack(travelled(moments))
    assert distance(back, moments) < 1e-12


def test_moments_by_group(rng):
    groups = {g: gf.Moments.from_features(rng.standard_normal((9, 4)), rng.integers(0, 3, 9), classes=3) for g in (0, 2)}
    back = uploads.unpack(travelled(GroupedMoments(groups, [""] * 3)))
    assert isinstance(back, GroupedMoments)
    assert all(distance(back.groups[g], moments) < 1e-12 for g, moments in groups.items())


def test_sums_and_parcels():
    back = uploads.unpack(travelled(NamedSums({"n": np.array([3.0]), "model/w": np.ones((2, 2), np.float32)})))
    assert isinstance(back, NamedSums)
    assert back["model/w"].dtype == np.float32
    gathered = uploads.unpack(travelled(PerClient({"a": {"x": np.ones(2)}, "b": {"x": np.zeros(1), "y": np.ones(1)}})))
    assert isinstance(gathered, PerClient)
    assert [sorted(parcel) for parcel in gathered.in_order()] == [["x"], ["x", "y"]]


@pytest.mark.parametrize(
    ("packet", "match"),
    [
        (Packet({"w": np.array([1.0, np.nan])}, {"kind": "named-sums"}), "NaN or infinity in w"),
        (Packet({"0/w": np.array([np.inf])}, {"kind": "per-client", "clients": ["a"]}), "NaN or infinity"),
        (Packet({"w": np.ones(1)}, {"kind": "per-client", "clients": ["a"]}), "parcels by client"),
        (Packet({"7/w": np.ones(1)}, {"kind": "per-client", "clients": ["a"]}), "parcels by client"),
        (Packet({"-1/w": np.ones(1)}, {"kind": "per-client", "clients": ["a"]}), "parcels by client"),
        (Packet({}, {"kind": "per-client", "clients": ["a", "a"]}), "parcels by client"),
        (Packet({}, {"kind": "per-client", "clients": [["a"]]}), "parcels by client"),
        (Packet({}, {"kind": "per-client", "clients": 3}), "parcels by client"),
        (Packet({}, {"kind": "moments", "form": "triangle"}), "not a message of moments"),
        (Packet({}, {"kind": "grouped-moments", "groups": {}, "fingerprints": ["a"]}), "need a group"),
        (Packet({}, {"kind": "grouped-moments", "groups": {"0": {}}, "fingerprints": 3}), "moments by group"),
        (Packet({"1/x": np.ones(1)}, {"kind": "grouped-moments", "groups": {}, "fingerprints": []}), "belongs to none"),
        (Packet({}, {"kind": "hologram"}), "unknown kind of upload 'hologram'; known: moments, grouped-moments, named-sums"),
        (Packet({}, {"kind": ["moments"]}), "unknown kind of upload"),
        (Packet({"w": np.ones(2)}), "unknown kind of upload None"),
    ],
)
def test_what_cannot_be_is_refused(packet, match):
    with pytest.raises(GramfoldError, match=match):
        uploads.unpack(packet)


def test_sums_of_different_things_do_not_add_and_stay_as_they_were():
    total = NamedSums({"w": np.ones(2), "n": np.ones(1)})
    for other in (
        NamedSums({"w": np.ones(3), "n": np.ones(1)}),
        NamedSums({"w": np.ones(2)}),
        NamedSums({"w": np.ones(2), "m": np.ones(1)}),
    ):
        with pytest.raises(MessageError):
            total += other
    assert total["w"].tolist() == [1, 1]
