"""Where solved filters should come from: what labels are encoded by, and how heavy the ridge is. On validation images only.

    python -m benchmarks.filters NAME=FILE.npz ... [--images 40000] [--device cuda] [--out OUT.json]

Plain PyTorch on pooled images, without the product: convolutions whose filters are W = (C + r I)^-p B, B = cov(patch, code), each
output scaled to mean 0 and variance 1, then ridge on what they end in, with the best of four penalties on the validation images,
which are a quarter of those drawn (a fifth of fewer than 20,000). `image`: a code for each class; `place`: one for each class and
place of the patch.
"""

import argparse
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

FIVE, LENET = ((3, 32, 2), (3, 64, 2), (3, 64, 1)), ((5, 6, 2), (5, 16, 2))
"""Size of a filter, filters, and size of the squares of which the maximum is taken, for each convolution."""
BLOCK = 2**22
"""Numbers that are laid out at a time."""


@dataclass(frozen=True)
class Way:
    """`codes`: image, place, or none (filters drawn evenly where patches are white). `power`: p."""

    name: str
    network: tuple[tuple[int, int, int], ...] = FIVE
    codes: str = "place"
    ridge: float = 0.0
    power: float = 1.0


WAYS = [
    Way("five, image", codes="image"),
    Way("five, none", codes="none", power=0.5, ridge=0.1),
    Way("five, place"),
    Way("five, place, r 0.1", ridge=0.1),
    Way("five, place, r 1", ridge=1.0),
    Way("five, place, r 10", ridge=10.0),
    Way("five, place, p 1/2", power=0.5),
    Way("lenet, image", LENET, "image"),
    Way("lenet, place", LENET),
]


def convolved(
    x: Tensor, held_out: Tensor, y: Tensor, way: Way, layer: tuple[int, int, int], seed: torch.Generator
) -> list[Tensor]:
    """One convolution, solved on x, applied to both."""
    size, filters, pooled = layer
    border = [size // 2] * 4
    x, held_out = functional.pad(x, border), functional.pad(held_out, border)
    side, hot = x.shape[2] - size + 1, functional.one_hot(y).double()
    d, places, classes = x.shape[1] * size**2, side * (x.shape[3] - size + 1), hot.shape[1]
    gram, sums = x.new_zeros(d, d), x.new_zeros(classes, d * places)
    each = max(1, BLOCK // (d * places))
    for start in range(0, len(x), each):
        columns = functional.unfold(x[start : start + each], size)
        rows = columns.transpose(1, 2).reshape(-1, d)
        gram += rows.T @ rows
        sums += hot[start : start + each].T @ columns.flatten(1)
    by_place = sums.reshape(classes, d, places)
    n = len(x) * places
    mean = by_place.sum((0, 2)) / n
    covariance = gram / n - mean[:, None] * mean
    centred = by_place - hot.mean(0)[:, None, None] * by_place.sum(0)
    values, vectors = torch.linalg.eigh(covariance)
    floor = (way.ridge + 1e-9) * values.mean()
    drawn = {"image": (classes, filters), "place": (classes, places, filters), "none": (d, filters)}[way.codes]
    codes = torch.randn(drawn, generator=seed, dtype=torch.float64).to(x.device)
    cross = codes
    if way.codes != "none":
        cross = centred.sum(2).T @ codes if way.codes == "image" else torch.einsum("cdp,cpf->df", centred, codes)
    weights = vectors @ ((vectors.T @ cross) / ((values.clamp(min=0) + floor) ** way.power)[:, None])
    weights /= (weights * (covariance @ weights)).sum(0).sqrt()
    kernels, bias = weights.T.reshape(filters, -1, size, size), -(mean @ weights)

    def apply(images: Tensor) -> Tensor:
        parts = [functional.conv2d(images[i : i + each], kernels, bias).relu() for i in range(0, len(images), each)]
        return torch.cat([functional.max_pool2d(part, pooled) for part in parts])

    return [apply(x), apply(held_out)]


def accuracy(x: Tensor, y: Tensor, held_out: Tensor, wanted: Tensor) -> float:
    """Of ridge on what the convolutions end in."""
    rows, tested = (functional.pad(part.flatten(1), [1, 0], value=1.0) for part in (x, held_out))
    gram, cross = rows.T @ rows, rows.T @ functional.one_hot(y).double()
    unit = gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    tried = [torch.linalg.solve(gram + share * unit, cross) for share in (1e-5, 1e-4, 1e-3, 1e-2)]
    return max(float((tested @ weights).argmax(1).eq(wanted).double().mean()) for weights in tried)


def measure(way: Way, images: Tensor, labels: Tensor) -> float:
    kept, seed = int((0.75 if len(images) >= 20000 else 0.8) * len(images)), torch.Generator().manual_seed(0)
    x, held_out, y, wanted = images[:kept], images[kept:], labels[:kept], labels[kept:]
    for layer in way.network:
        x, held_out = convolved(x, held_out, y, way, layer, seed)
    return accuracy(x, y, held_out, wanted)


def load(path: str, count: int, device: str) -> tuple[Tensor, Tensor]:
    """Some of a file's training images, as the product scales them, and their labels."""
    content = np.load(path)
    images, labels = content["images"], content["labels"]
    if "train" in content:
        images, labels = images[content["train"]], labels[content["train"]]
    kept = np.random.RandomState(0).permutation(len(images))[:count]
    images = images[kept] if images.ndim == 4 else images[kept][..., None]
    pixels = torch.as_tensor(images).to(device).permute(0, 3, 1, 2).double()
    return (pixels / 255 - 0.5) / 0.25, torch.as_tensor(labels[kept].astype(np.int64)).to(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", help="NAME=FILE.npz")
    parser.add_argument("--images", type=int, default=40000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, path in (part.split("=", 1) for part in given.data):
        images, labels = load(path, given.images, given.device)
        for way in WAYS:
            begun = time.perf_counter()
            row = {"way": way.name, "data": name, "images": len(images), "accuracy": measure(way, images, labels)}
            rows.append({**row, "seconds": time.perf_counter() - begun, "device": given.device})
            print(json.dumps(rows[-1]), flush=True)
    if given.out:
        with open(given.out, "w") as file:
            json.dump({"runs": rows}, file, indent=1)


if __name__ == "__main__":
    main()
