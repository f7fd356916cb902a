"""Features small enough to take along: a byte a number, on a grid of each column's own.

    python -m benchmarks.carried FILE.npz SMALL.npz

A column's numbers are rounded to 255 steps between its least and its largest (about 0.03 of its spread each). Of CIFAR-100's
92 MB 42 are left; made of all of its training images, AFL's shared head then has 60.52 % on the test images, before 60.48 %.
"""

import argparse
from pathlib import Path

import numpy as np

from gramfold.federation import load_npz
from gramfold.federation.datasets import Dataset

STEPS = 255


def pack(path: str, small: str) -> None:
    with np.load(path) as found:
        X = found["features"].astype(np.float32)
        others = {name: found[name] for name in found.files if name != "features"}
    low = X.min(0)
    step = (X.max(0) - low) / STEPS
    codes = np.rint((X - low) / np.where(step > 0, step, 1)).astype(np.uint8)
    np.savez_compressed(small, codes=codes, low=low, step=step, **others)


def load(path: str) -> Dataset:
    """A file of features, as it is or as `pack` made it."""
    with np.load(path) as found:
        if "codes" not in found.files:
            return load_npz(path)
        whole = Path(path).with_suffix(".whole.npz")
        if not whole.exists():
            X = found["low"] + found["codes"] * found["step"]
            others = {name: found[name] for name in found.files if name not in ("codes", "low", "step")}
            part = whole.with_suffix(".part.npz")
            np.savez(part, features=X.astype(np.float16), **others)
            part.replace(whole)
    return load_npz(str(whole))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("small")
    given = parser.parse_args()
    Path(given.small).parent.mkdir(parents=True, exist_ok=True)
    pack(given.file, given.small)
    print(f"{Path(given.file).stat().st_size / 1e6:.1f} MB -> {Path(given.small).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
