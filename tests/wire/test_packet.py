"""Packets: what comes back is what was sent, the size is known beforehand, and nothing else is taken for one."""

import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from gramfold import wire
from gramfold.errors import GramfoldError
from gramfold.wire import FORMAT, Packet
from gramfold.wire.packet import _DTYPES

OURS = {"format": str(FORMAT)}
NAMES = st.text(st.characters(codec="utf-8", exclude_characters=","), min_size=1, max_size=12).filter(
    lambda s: s != "__metadata__"
)
SHAPES = st.lists(st.integers(0, 12), max_size=3).map(tuple)
META = st.dictionaries(st.text(max_size=8), st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
), max_size=4)  # fmt: skip


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    arrays, triangular = {}, set()
    for name in draw(st.lists(NAMES, max_size=5, unique=True)):
        dtype = draw(st.sampled_from(list(_DTYPES)))
        if draw(st.booleans()):
            size = draw(st.integers(0, 9))
            shape = (size, size)
            triangular.add(name)
        else:
            shape = draw(SHAPES)
        values = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape).astype(dtype)
        arrays[name] = np.tril(values) if name in triangular else values
    return Packet(arrays, draw(META), frozenset(triangular))


@given(packets())
def test_packets_come_back_and_their_size_is_known_beforehand(packet):
    data = packet.to_bytes()
    assert packet.wire_bytes == len(data)
    assert data == packet.to_bytes() == b"".join(packet.pieces())
    back = Packet.from_bytes(data)
    assert back.meta == packet.meta
    assert back.triangular == packet.triangular
    assert back.arrays.keys() == packet.arrays.keys()
    for name, array in packet.arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)
    assert back.to_bytes() == data


@given(packets())
def test_a_packet_is_laid_out_as_safetensors_would(packet):
    parts = {name: wire.pack_lower(part) if name in packet.triangular else part for name, part in packet.arrays.items()}
    theirs, ours = save(parts, packet._metadata()), packet.to_bytes()
    size = 8 + int.from_bytes(ours[:8], "little")
    assert len(theirs) == len(ours)
    assert theirs[size:] == ours[size:]
    read = json.loads(ours[8:size])
    read["__metadata__"]["sha256"] = "0" * 64
    assert json.loads(theirs[8:size]) == read  # its metadata come in any order


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": str(FORMAT + 1)}, f"written by a newer gramfold (format {FORMAT + 1}, this reads {FORMAT}); upgrade"),
        ({"format": "1"}, f"format 1 is that of an older gramfold (this reads {FORMAT}); write it anew"),
        ({"format": None}, f"format 1 is that of an older gramfold (this reads {FORMAT}); write it anew"),
        ({"format": "two"}, "not a gramfold message"),
    ],
)
def test_another_format_is_refused_in_one_line(changes, message):
    metadata = {**Packet({}, {"a": 1})._metadata(), **changes}
    data = save({"x": np.zeros(2)}, {key: value for key, value in metadata.items() if value is not None})
    with pytest.raises(GramfoldError, match=re.escape(message)):
        Packet.from_bytes(data)


def test_labels_in_any_script_have_their_true_size():
    packet = Packet({"größe": np.zeros(3)}, {"labels": ["Katze", "狗", "القط", 'a"b\\c\n', "\x01\x7f", "🦊"]})
    assert packet.wire_bytes == len(packet.to_bytes())
    assert Packet.from_bytes(packet.to_bytes()).meta == packet.meta


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.uint8, torch.bool])
def test_torch_tensors_travel_like_arrays(dtype):
    tensor = torch.ones(3, 3).to(dtype).tril()
    packet = Packet({"a": tensor, "b": tensor.T}, {}, frozenset("a"))
    assert packet.wire_bytes == len(packet.to_bytes())
    back = Packet.from_bytes(packet.to_bytes())
    np.testing.assert_array_equal(back["a"], tensor.numpy())
    np.testing.assert_array_equal(back["b"], tensor.T.numpy())


@given(st.integers(0, 12), st.integers(0, 12))
def test_triangles_and_trapezoids_unpack_to_what_was_packed(r, m):
    values = np.random.default_rng(0).standard_normal((m, m))
    packed = wire.pack_lower(values)
    assert packed.shape == (wire.lower_size(m),)
    np.testing.assert_array_equal(wire.unpack_lower(packed), np.tril(values))
    r = min(r, m)
    packed = wire.pack_upper(values[:r])
    assert packed.shape == (wire.upper_size(r, m),)
    np.testing.assert_array_equal(wire.unpack_upper(packed, r, m), np.triu(values[:r]))


@pytest.mark.parametrize(
    "unpack",
    [
        lambda: wire.unpack_lower(np.zeros(4)),
        lambda: wire.unpack_lower(np.zeros((2, 3))),
        lambda: wire.unpack_upper(np.zeros(4), 2, 3),
        lambda: wire.unpack_upper(np.zeros(6), 3, 2),
    ],
)
def test_numbers_that_make_no_triangle_are_refused(unpack):
    with pytest.raises(GramfoldError, match="not the"):
        unpack()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a",
        b"\xff" * 64,
        save({"x": np.zeros(2)}),  # safetensors, but not ours
        save({"x": np.zeros(2)}, OURS),
        save({"x": np.zeros(2)}, OURS | {"meta": "{}"}),
        save({"x": np.zeros(2)}, OURS | {"meta": "{", "triangular": "", "known": ""}),
        save({"x": np.zeros(2)}, OURS | {"meta": "[]", "triangular": "", "known": ""}),
        save({"x": np.zeros(2)}, OURS | {"meta": "3", "triangular": "", "known": ""}),
        save({"x": np.zeros(3)}, OURS | {"meta": "{}", "triangular": "y", "known": ""}),  # the triangle it names is not there
        save({"x": np.zeros(4)}, OURS | {"meta": "{}", "triangular": "x", "known": ""}),
    ],
)
def test_what_is_not_a_packet_is_refused(data):
    with pytest.raises(GramfoldError):
        Packet.from_bytes(data)


def test_every_changed_byte_is_noticed():
    """Raw damage anywhere: in the header, its padding, its length, the arrays, the checksum itself."""
    packet = Packet({"x": np.arange(5.0), "t": np.tril(np.ones((3, 3))), "flag": np.ones(3, bool)}, {"n": 1}, frozenset("t"))
    data = packet.to_bytes()
    for place in range(len(data)):
        for flip in (1, 32, 128):
            damaged = bytearray(data)
            damaged[place] ^= flip
            with pytest.raises(GramfoldError, match=r"damaged file|newer gramfold|older gramfold"):
                Packet.from_bytes(bytes(damaged))


@given(st.binary(max_size=300))
def test_random_bytes_are_no_packet(data):
    with pytest.raises(GramfoldError, match="not a gramfold message"):
        Packet.from_bytes(data)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    wire.write_atomically(path, b"old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(GramfoldError, match="No space left"):
        wire.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
