"""An .npz file: what nobody asked for is not read, and no array is believed to be what it says before it is compared."""

import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from gramfold.errors import FileError, GramfoldError
from gramfold.federation import load_npz
from gramfold.wire.npz import read_arrays

X, Y = np.eye(6), np.arange(6) % 2


def npy(array: np.ndarray, **changes: object) -> bytes:
    """An array's file, whose header may say something else."""
    out = io.BytesIO()
    np.lib.format.write_array(out, array)
    if not changes:
        return out.getvalue()
    header = str({"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | changes).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.tobytes()


def archive(path, **entries: bytes):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries.items():
            file.writestr(f"{name}.npy", data)
    return path


def test_keys_nobody_asked_for_are_not_read(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", features=X, labels=Y, more=np.zeros(2**23))
    tracemalloc.start()
    assert len(load_npz(tmp_path / "x.npz").inputs) == 6
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23  # the 64 MB of zeros were left where they are


def test_a_key_nobody_asked_for_may_be_anything(tmp_path):
    np.savez(tmp_path / "x.npz", features=X, labels=Y, more=np.array([{}], object))
    assert len(load_npz(tmp_path / "x.npz").inputs) == 6


@pytest.mark.parametrize("shape", [(10**6, 10**6), (10**30,), (3,), (-6, -6), ("x",), 5])
def test_a_header_that_promises_what_is_not_there_is_refused(tmp_path, shape):
    path = archive(tmp_path / "x.npz", features=npy(X, shape=shape), labels=npy(Y))
    with pytest.raises(GramfoldError, match=r"x\.npz"):
        load_npz(path)


def test_a_file_that_was_made_to_fill_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gramfold.wire.npz.LARGE", 2**20)
    path = archive(tmp_path / "x.npz", features=npy(np.zeros((2**10, 2**10))), labels=npy(np.arange(2**10) % 2))
    with pytest.raises(FileError):
        load_npz(path)


def test_a_key_whose_name_was_damaged_is_not_overlooked(tmp_path):
    np.savez(tmp_path / "x.npz", features=X, labels=Y, train=np.arange(6) < 4)
    data = (tmp_path / "x.npz").read_bytes()
    place = data.rindex(b"train.npy")
    (tmp_path / "x.npz").write_bytes(data[:place] + b"drain" + data[place + 5 :])
    with pytest.raises(GramfoldError, match="not a readable"):
        load_npz(tmp_path / "x.npz")


def test_no_python_objects(tmp_path):
    np.savez(tmp_path / "x.npz", features=X, labels=np.array(["a", None] * 3, object))
    with pytest.raises(GramfoldError, match="`labels` holds Python objects"):
        load_npz(tmp_path / "x.npz")
    assert list(read_arrays(tmp_path / "x.npz", ("features",))) == ["features"]
