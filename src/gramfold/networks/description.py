"""The notation for networks: "linear", "mlp:256", "cnn:32", "resnet18", "resnet:8x1"; and the small dict it becomes."""

from collections.abc import Sequence
from typing import Any

from gramfold.errors import FeaturesError

USAGE = "linear, mlp:WIDTH, cnn:WIDTH, resnet18 or resnet:WIDTHxBLOCKS"
ON_IMAGES = ("cnn", "resnet")


def describe(spec: str, shape: Sequence[int], classes: int, seed: int, **more: Any) -> dict[str, Any]:
    """All that is needed to build a network for inputs of this shape.

    >>> describe("mlp:64", (16,), 10, seed=0)["width"]
    64
    """
    kind, _, size = spec.partition(":")
    try:
        if spec == "resnet18":
            given: dict[str, Any] = {"kind": "resnet", "width": 64, "blocks": 2, "stem": "imagenet"}
        elif kind == "resnet":
            width, _, blocks = size.partition("x")
            given = {"kind": kind, "width": int(width), "blocks": int(blocks), "stem": "small"}
        elif kind in ("mlp", "cnn"):
            given = {"kind": kind, "width": int(size)}
        elif spec == "linear":
            given = {"kind": kind}
        else:
            raise ValueError
        if min(given.get("width", 1), given.get("blocks", 1)) < 1:
            raise ValueError
    except ValueError:
        raise FeaturesError(f"cannot read model {spec!r}; write {USAGE}") from None
    images = len(shape) == 3
    if images != (kind.removesuffix("18") in ON_IMAGES):
        wanted, held = ("images", "features") if not images else ("features", "images")
        raise FeaturesError(f"model {spec!r} is for {wanted}, but this data holds {held}; write {USAGE}")
    return {**given, "shape": list(shape), "classes": classes, "seed": seed, **more}
