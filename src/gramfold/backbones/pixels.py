"""Images as networks take them: decoded, turned upright, RGB, resized to a square, normalised."""

import functools
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold.backbones.base import UnreadableSampleError
from gramfold.imports import require

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SHARPNESS = -0.75
"""The parameter of the cubic that enlarges: that of torch, OpenCV and ONNX."""


def read_image(sample: Any) -> "Image":
    """An RGB image, upright, from a path, the bytes of a file, an array (H x W or H x W x channels), or a PIL image."""
    images = require("PIL.Image", "images", "reading images")
    operations = require("PIL.ImageOps", "images", "reading images")
    try:
        if isinstance(sample, Mapping):  # as Hugging Face stores images that are not decoded
            sample = sample.get("bytes") or sample.get("path")
        if isinstance(sample, np.ndarray):
            image = images.fromarray(_bytes(sample))
        elif isinstance(sample, bytes | bytearray | memoryview):
            image = images.open(io.BytesIO(sample))
        elif isinstance(sample, str | Path):
            image = images.open(sample)
        else:
            image = sample
        upright: Image = operations.exif_transpose(image).convert("RGB")
    except Exception as error:  # decoders of many formats raise what they like
        raise UnreadableSampleError(f"cannot be read as an image: {type(error).__name__}: {error}") from None
    return upright


def _bytes(pixels: np.ndarray) -> np.ndarray:
    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    return pixels if pixels.dtype == np.uint8 else np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)


@dataclass(frozen=True)
class Pixels:
    """The preprocessing of a network: its square, and the mean and spread of its colours in [0, 1]."""

    size: int = 224
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def describe(self) -> dict[str, Any]:
        return {"resize": "bicubic", **asdict(self)}

    def __call__(self, sample: Any) -> np.ndarray:
        """3 x size x size float32."""
        image = read_image(sample)
        if max(image.size) <= self.size:
            colours = enlarged(np.asarray(image, dtype=np.float32), self.size)
        else:  # a photo: averaged over what becomes one pixel
            cubic = require("PIL.Image", "images", "resizing images").Resampling.BICUBIC
            colours = np.asarray(image.resize((self.size, self.size), cubic, reducing_gap=3.0), dtype=np.float32)
        square: np.ndarray = colours / np.float32(255)
        square -= np.asarray(self.mean, dtype=np.float32)
        square /= np.asarray(self.std, dtype=np.float32)
        return np.ascontiguousarray(square.transpose(2, 0, 1))


def enlarged(image: np.ndarray, size: int) -> np.ndarray:
    """An H x W x 3 image in 0..255 as size x size x 3, by cubic interpolation, clipped to where colours are.

    >>> enlarged(np.full((2, 3, 3), 7.0, dtype=np.float32), 4)[..., 0].round(4).tolist()[0]
    [7.0, 7.0, 7.0, 7.0]
    """
    height, width, channels = image.shape
    tall = cubic(height, size) @ image.reshape(height, width * channels)
    wide = tall.reshape(size, width, channels).transpose(1, 0, 2).reshape(width, size * channels)
    square = (cubic(width, size) @ wide).reshape(size, size, channels).transpose(1, 0, 2)
    return np.asarray(np.clip(square, 0, 255))


@functools.lru_cache(maxsize=32)
def cubic(before: int, after: int) -> np.ndarray:
    """The after x before matrix of cubic interpolation between pixels' centres, edges repeated."""
    places = (np.arange(after) + 0.5) * (before / after) - 0.5
    first = np.floor(places).astype(int)
    matrix = np.zeros((after, before))
    for offset in range(-1, 3):
        distance = np.abs(places - (first + offset))
        near = ((SHARPNESS + 2) * distance - (SHARPNESS + 3)) * distance**2 + 1
        far = ((SHARPNESS * distance - 5 * SHARPNESS) * distance + 8 * SHARPNESS) * distance - 4 * SHARPNESS
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
        np.add.at(matrix, (np.arange(after), np.clip(first + offset, 0, before - 1)), weights)
    return matrix.astype(np.float32)
