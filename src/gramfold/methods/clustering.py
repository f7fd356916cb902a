"""Groups of similar clients: by their class counts and their mean image of each class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold.convolution.network import pixels
from gramfold.errors import MethodError
from gramfold.federation import Samples
from gramfold.methods.asked import Asked
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.uploads import PerClient

THUMBNAIL_SIZE = 4
"""Class means are taken over images reduced to this height and width."""
MAX_GROUPS = 8
"""The largest number of groups chosen automatically; more can be requested."""
MIN_SILHOUETTE = 0.25
"""With a mean silhouette below this, all clients form one group."""


def class_sums(train: Samples, classes: int) -> dict[str, Array]:
    """A client's class counts, and the sum of each class's reduced images."""
    import torch
    from torch.nn import functional

    parts = []
    for block in arrays.blocks(train.n, int(np.prod(train.inputs.shape[1:]))):
        small = functional.adaptive_avg_pool2d(pixels(torch.as_tensor(train.inputs[block])), THUMBNAIL_SIZE)
        parts.append(small.reshape(len(small), -1))
    codes = arrays.to_numpy(train.targets)
    sums = arrays.class_sums(arrays.to_numpy(torch.cat(parts)), codes, classes).T
    return {"counts": np.bincount(codes, minlength=classes).astype(np.float64), "sums": np.ascontiguousarray(sums)}


@dataclass(frozen=True)
class ClassSums(Asked):
    """Class counts and sums of reduced images, and nothing else."""

    channels: int
    classes: int

    def check(self, upload: Any) -> None:
        shapes = {"counts": (self.classes,), "sums": (self.classes, self.channels * THUMBNAIL_SIZE**2)}
        parcels = list(upload.parcels.values()) if isinstance(upload, PerClient) else []
        if [{key: tuple(part.shape) for key, part in parcel.items()} for parcel in parcels] != [shapes]:
            raise MethodError(f"expected counts of {self.classes} classes and sums of their images")
        if float(parcels[0]["counts"].min()) < 0 or not float(parcels[0]["counts"].sum()) > 0:
            raise MethodError("class counts must be non-negative and not all zero")


def describe(counts: np.ndarray, sums: np.ndarray, means: np.ndarray) -> np.ndarray:
    """A client's coordinates: the square roots of its class shares, and the deviations of its class means from the pooled ones,
    on the fixed scale of pixels; zero for a class that it does not have."""
    shares = counts / counts.sum()
    deviations = (sums / np.maximum(counts, 1)[:, None] - means) * np.sqrt(shares / sums.shape[1])[:, None]
    return np.concatenate([np.sqrt(shares), deviations.ravel()])


def group(parcels: Sequence[Mapping[str, Array]], groups: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The pooled class means, and the centres of the groups. `groups` None: as many as have the best silhouette, or one."""
    counts, sums = (np.stack([arrays.to_numpy(parcel[key]) for parcel in parcels]) for key in ("counts", "sums"))
    means = sums.sum(0) / np.maximum(counts.sum(0), 1)[:, None]
    points = np.stack([describe(*pair, means) for pair in zip(counts, sums, strict=True)])
    if groups is not None:
        if groups > len(points):
            raise MethodError(f"{groups} groups of {len(points)} clients are impossible; ask for fewer")
        return means, _centres(points, groups)[0]
    from sklearn.metrics import silhouette_score

    best, found = MIN_SILHOUETTE, points.mean(0)[None]
    for count in range(2, min(MAX_GROUPS, len(points) - 1) + 1):
        centres, labels = _centres(points, count)
        if len(np.unique(labels)) < count:  # fewer distinct clients than groups
            break
        score = float(silhouette_score(points, labels))
        if score > best * (1 + 1e-9):
            best, found = score, centres
    return means, found


def nearest(point: np.ndarray, centres: np.ndarray) -> int:
    return int(((centres - point) ** 2).sum(1).argmin())


def _centres(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """k-means started from the points farthest apart: deterministic, so the same clients always form the same groups."""
    chosen = [int(((points - points.mean(0)) ** 2).sum(1).argmin())]
    while len(chosen) < count:
        apart = np.min([((points - points[i]) ** 2).sum(1) for i in chosen], axis=0)
        chosen.append(int(apart.argmax()))
    centres = points[chosen]
    for _ in range(100):
        labels = np.array([nearest(point, centres) for point in points])
        moved = np.stack([points[labels == g].mean(0) if (labels == g).any() else centres[g] for g in range(count)])
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres, labels
