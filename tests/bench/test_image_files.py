"""Image data sets from folders: read as they are packed, and taken only if they are what they are said to be."""

import gzip

import numpy as np
import pytest

from gramfold.bench import image_files
from gramfold.bench.image_files import digest, load_images
from gramfold.errors import GramfoldError

IMAGES, LABELS = np.random.default_rng(0).integers(0, 256, (30, 5, 4), dtype=np.uint8), np.arange(30, dtype=np.uint8) % 10


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return head + array.tobytes()


@pytest.fixture(params=["", ".gz"])
def folder(tmp_path, request):
    """20 images to train on and 10 to test on."""
    pack = gzip.compress if request.param else bytes
    for part, rows in (("train", slice(0, 20)), ("t10k", slice(20, 30))):
        (tmp_path / f"{part}-images-idx3-ubyte{request.param}").write_bytes(pack(idx(IMAGES[rows])))
        (tmp_path / f"{part}-labels-idx1-ubyte{request.param}").write_bytes(pack(idx(LABELS[rows])))
    return tmp_path


def test_a_known_content_is_read_however_it_is_packed(folder, monkeypatch):
    expected = digest(IMAGES[..., None], LABELS, np.arange(30) < 20)
    monkeypatch.setattr(image_files, "KNOWN", {expected: "small"})
    found = load_images(str(folder))
    assert (found.name, found.inputs.shape, int(found.train.sum())) == ("small", (30, 5, 4, 1), 20)
    np.testing.assert_array_equal(found.targets, LABELS)


def test_other_images_and_missing_files_are_refused(folder):
    with pytest.raises(GramfoldError, match=r"not those of cifar10, fashion-mnist, mnist; is it complete\?"):
        load_images(str(folder))
    next(folder.glob("t10k-labels*")).unlink()
    with pytest.raises(GramfoldError, match="has no t10k-labels-idx1-ubyte"):
        load_images(str(folder))
