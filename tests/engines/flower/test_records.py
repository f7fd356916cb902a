"""Packets survive Flower's records, and what is no message of ours is refused."""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gramfold.engines.flower import records
from gramfold.errors import GramfoldError
from gramfold.remote.messages import Message
from gramfold.wire import Packet

ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_]), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)
)
META = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3))


@given(arrays=st.dictionaries(st.text(min_size=1, max_size=8), ARRAYS, max_size=4), meta=META, m=st.integers(0, 5))
def test_a_packet_comes_back_as_it_was(arrays, meta, m):
    triangle = np.tril(np.arange(m * m, dtype=float).reshape(m, m))
    packet = Packet({**arrays, "factor/1": triangle}, meta, frozenset({"factor/1"}))
    message = records.read(records.RecordBuilder().content(Message({"round": 3}, {"broadcast": packet})))
    back = message.packets["broadcast"]
    assert message.header == {"round": 3}
    assert (back.meta, back.triangular, back.known) == (meta, packet.triangular, frozenset())
    assert back.arrays.keys() == packet.arrays.keys()
    for name, array in packet.arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


def test_a_triangle_travels_packed_and_known_arrays_not_at_all():
    packet = Packet({"factor": np.eye(10), "omega": np.eye(3)}, {}, frozenset({"factor"}), frozenset({"omega"}))
    made = records.packet_records("broadcast", packet)
    assert {name: array.shape for name, array in made["broadcast/arrays"].items()} == {"factor": (55,)}
    back = records.read(records.RecordBuilder().content(Message({}, {"broadcast": packet}))).packets["broadcast"]
    assert back.known == {"omega"}
    assert back.completed({"omega": np.eye(3)})["omega"].shape == (3, 3)


def test_messages_to_many_share_their_records():
    packet, builder = Packet({"w": np.ones(1000)}), records.RecordBuilder()
    one, other = (builder.content(Message({"to": k}, {"broadcast": packet})) for k in (1, 2))
    assert one["broadcast/arrays"]["w"] is other["broadcast/arrays"]["w"]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"header": ConfigRecord({"json": "["})},
        {"header": ConfigRecord({"json": "[]"})},
        {"header": ConfigRecord({})},
        {"header": ArrayRecord()},
        {"header": ConfigRecord({"json": "{}"}), "upload/arrays": ArrayRecord()},
        {
            "header": ConfigRecord({"json": "{}"}),
            "upload/arrays": ArrayRecord({"w": Array("float64", (2,), "numpy.ndarray", b"no array")}),
            "upload/meta": ConfigRecord({"json": '{"meta": {}, "triangular": [], "known": []}'}),
        },
        {
            "header": ConfigRecord({"json": "{}"}),
            "upload/arrays": ArrayRecord({"w": Array(np.ones(2))}),
            "upload/meta": ConfigRecord({"json": '{"meta": {}, "triangular": ["w"], "known": []}'}),
        },
    ],
)
def test_what_is_no_message_is_refused(content):
    with pytest.raises(GramfoldError):
        records.read(RecordDict(content))
