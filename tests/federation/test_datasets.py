"""Data from files: what is read, and that whatever is wrong is said in one sentence with the file's name."""

import contextlib
import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold.errors import FileError, GramfoldError
from gramfold.federation import digits, load_dataset, load_npz

X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
Y = np.array([0, 1, 2, 0, 1, 2])


@pytest.fixture
def write(tmp_path):
    def write(**content):
        np.savez(tmp_path / "data.npz", **content)
        return tmp_path / "data.npz"

    return write


def test_features_labels_training_rows_and_clients_are_read(write):
    train, client = np.array([1, 1, 0, 1, 0, 1], bool), np.array(["a", "b"] * 3)
    data = load_npz(write(features=X, labels=Y, train=train, client=client))
    np.testing.assert_array_equal(data.inputs, X)
    np.testing.assert_array_equal(data.targets, Y)
    np.testing.assert_array_equal(data.train, train)
    np.testing.assert_array_equal(data.client, client)
    assert (data.name, data.labels, data.outputs) == ("data.npz", (0, 1, 2), 3)
    assert load_dataset(str(write(features=X, labels=Y))).name == "data.npz"


def test_labels_may_be_names_or_numbers_with_names(write):
    named = load_npz(write(features=X, labels=np.array(["b", "a", "c", "b", "a", "c"])))
    assert named.labels == ("a", "b", "c")
    assert named.targets.tolist() == [1, 0, 2, 1, 0, 2]
    gaps = load_npz(write(features=X, labels=np.array([10, 30, 10, 30, 10, 30])))
    assert (gaps.labels, gaps.targets.tolist()) == ((10, 30), [0, 1] * 3)
    classes = load_npz(write(features=X, labels=np.array([0, 3, 0, 3, 0, 3]), classes=np.array(["a", "b", "c", "d"])))
    assert (classes.labels, classes.targets.tolist()) == (("a", "b", "c", "d"), [0, 3] * 3)
    whole = load_npz(write(features=X, labels=Y.astype(np.float64)))
    assert (whole.labels, whole.targets.tolist()) == ((0, 1, 2), Y.tolist())


@pytest.mark.parametrize(
    ("dtype", "kept"), [("float64", "float64"), ("float32", "float32"), ("float16", "float32"), ("int16", "float32")]
)
def test_features_are_floating_point(write, dtype, kept):
    assert load_npz(write(features=np.ones((6, 2), dtype), labels=Y)).inputs.dtype == kept


def test_images_stay_bytes(write):
    images = np.zeros((6, 4, 4, 3), np.uint8)
    data = load_npz(write(images=images, labels=Y))
    assert (data.inputs.shape, data.inputs.dtype) == (images.shape, np.uint8)


BAD = {
    "no features": ({"labels": Y}, "needs `labels` and either `features`, `images` or `series`; found labels"),
    "no labels": ({"features": X}, "needs `labels`"),
    "both": ({"features": X, "images": X, "labels": Y}, "either `features`, `images` or `series`"),
    "nothing": ({}, "found nothing"),
    "NaN": ({"features": np.where(np.arange(6)[:, None] == 4, np.nan, X), "labels": Y}, "sample 4 has NaN"),
    "infinity": ({"features": np.full((6, 2), np.inf), "labels": Y}, "sample 0 has NaN or infinite"),
    "words for features": ({"features": np.array([["a"]] * 6), "labels": Y}, "must be numbers"),
    "complex features": ({"features": X.astype(complex), "labels": Y}, "must be numbers"),
    "a number for features": ({"features": np.float32(3), "labels": Y}, "features"),
    "flat features": ({"features": X[:, 0], "labels": Y}, "expected features"),
    "cubic features": ({"features": X[:, :, None], "labels": Y}, "expected features"),
    "too few labels": ({"features": X, "labels": Y[:-1]}, "`labels` has shape"),
    "one-hot labels": ({"features": X, "labels": np.eye(3)[Y]}, "`labels` has shape"),
    "an origin without end": ({"features": X, "labels": Y, "origin": np.array("[" * 100_000)}, "where its features come from"),
    "negative labels": ({"features": X, "labels": Y - 1}, "out of range: found -1"),
    "negative whole fractions": ({"features": X, "labels": Y - 1.0}, "out of range: found -1"),
    "labels without names": ({"features": X, "labels": Y, "classes": np.array(["a", "b"])}, "found 2, but `classes` names 2"),
    "names for named labels": ({"features": X, "labels": Y.astype(str), "classes": np.array(["0", "1", "2"])}, "labels"),
    "fractional labels": ({"features": X, "labels": Y + 0.5}, "fractions"),
    "NaN labels": ({"features": X, "labels": np.where(Y == 1, np.nan, Y)}, "fractions or NaN"),
    "complex labels": ({"features": X, "labels": Y.astype(complex)}, "class numbers or names"),
    "one class": ({"features": X, "labels": 0 * Y}, "only one class"),
    "one class of several named": ({"features": X, "labels": 0 * Y, "classes": np.array(["a", "b"])}, "only one class"),
    "no samples": ({"features": X[:0], "labels": Y[:0]}, "no samples"),
    "no samples but names": ({"features": X[:0], "labels": Y[:0], "classes": np.array(["a", "b"])}, "no samples"),
    "all for training": ({"features": X, "labels": Y, "train": np.ones(6, bool)}, "`train` is the same for all"),
    "none for training": ({"features": X, "labels": Y, "train": np.zeros(6, bool)}, "`train` is the same for all"),
    "fractional training": ({"features": X, "labels": Y, "train": np.full(6, 0.5)}, "`train` must be True or False"),
    "too few training marks": ({"features": X, "labels": Y, "train": np.array([True, False])}, "`train` has shape"),
    "too few clients": ({"features": X, "labels": Y, "client": np.array(["a"])}, "`client` has shape"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_content_is_named(write, what):
    content, message = BAD[what]
    path = write(**content)
    with pytest.raises(GramfoldError, match=message) as error:
        load_npz(path)
    assert "data.npz" in str(error.value)


def test_pickled_arrays_are_refused(write):
    with pytest.raises(GramfoldError, match=r"`labels` holds Python objects.*astype\(str\)"):
        load_npz(write(features=X, labels=np.array([0, "a", None, 1, 2, 3], dtype=object)))


def saved(save, *args, **kwargs) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *args, **kwargs)
    return buffer.getvalue()


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


WHOLE = saved(np.savez_compressed, features=np.random.default_rng(0).standard_normal((40, 9)), labels=np.arange(40) % 2)
BYTES = {
    "an empty file": b"",
    "text": b"features,labels\n1,2\n",
    "a pickle": b"\x80\x04K\x01.",
    "an .npy file": saved(np.save, X),
    "half an .npz file": WHOLE[: len(WHOLE) // 2],
    "a zip of text": zipped(features=b"hello", labels=b"world"),
    "a zip of broken arrays": zipped(**{"features.npy": b"\x93NUMPY", "labels.npy": b"\x93NUMPY\x01\x00"}),
}


@pytest.mark.parametrize("what", BYTES)
def test_what_is_no_npz_file_is_refused(tmp_path, what):
    path = tmp_path / "data.npz"
    path.write_bytes(BYTES[what])
    with pytest.raises(GramfoldError, match=r"data\.npz"):
        load_npz(path)


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_flipped_byte_gives_an_error_or_data_but_no_crash(tmp_path_factory, place, flip):
    data = bytearray(WHOLE)
    data[place] ^= flip
    path = tmp_path_factory.getbasetemp() / "flipped.npz"
    path.write_bytes(bytes(data))
    with contextlib.suppress(GramfoldError):
        load_npz(path)


def test_missing_files_and_directories_are_named(tmp_path):
    for path in (tmp_path / "nowhere.npz", tmp_path):
        with pytest.raises(FileError):
            load_npz(path)
    with pytest.raises(GramfoldError, match="no such data file: mnist"):
        load_dataset("mnist")


def test_digits_need_no_file():
    data = digits()
    assert (data.inputs.shape, data.inputs.dtype, data.outputs) == ((1797, 64), np.float32, 10)
    np.testing.assert_array_equal(np.unique(data.codes), np.arange(10))
