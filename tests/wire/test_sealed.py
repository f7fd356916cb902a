"""JSON files of our own: what was written comes back, and nothing else does."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold import wire
from gramfold.errors import FileError

CONTENT = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(-9, 9), st.text(max_size=5), st.lists(st.floats(-1, 1))))


@given(CONTENT.filter(lambda content: not content.keys() & {"format", "checksum"}))
def test_what_was_sealed_opens(content):
    travelled = json.loads(json.dumps(wire.sealed(content)))
    assert wire.opened(travelled) == {"format": 1, **content}


def test_a_changed_file_does_not_open(tmp_path):
    path = tmp_path / "places.json"
    wire.write_sealed(path, {"sums": [1, 2]})
    assert wire.read_sealed(path)["sums"] == [1, 2]
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text(path.read_text().replace("2", "3"))
    with pytest.raises(ValueError, match="checksum"):
        wire.read_sealed(path)
    wire.write_sealed(path, {"format": 2})
    with pytest.raises(FileError):
        wire.read_sealed(path)


def test_lines_are_sealed_one_by_one(tmp_path):
    path = tmp_path / "sent.jsonl"
    path.write_bytes(wire.sealed_line({"n": 1}) + wire.sealed_line({"n": 2}))
    assert [line["n"] for line in wire.read_lines(path)] == [1, 2]
    path.write_bytes(path.read_bytes().replace(b'"n": 2', b'"n": 7'))
    with pytest.raises(ValueError, match="checksum"):
        wire.read_lines(path)
