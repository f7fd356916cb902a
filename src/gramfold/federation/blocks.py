"""Blocks of samples that give each other away: windows of one recording, visits of one patient, pictures of one film.

They stay on one side of every split, and are left out together wherever a sample is left out.
"""

from typing import Any

import numpy as np

from gramfold.numerics import inputs


def block_codes(given: Any, n: int, whose: str) -> np.ndarray:
    """The block of each of n samples, as numbers from 0 on; names may be of any kind."""
    return np.unique(inputs.names(given, n, "blocks", whose), return_inverse=True)[1].astype(np.int64)


def held_out_size(n: np.ndarray, test: float) -> np.ndarray:
    """How many of n samples are held out: both parts non-empty where that is possible."""
    return np.minimum(np.maximum(np.rint(test * n), 1), np.maximum(n - 1, 0)).astype(np.int64) if test > 0 else n * 0


def stratified(
    codes: np.ndarray, test: float, rng: np.random.Generator, blocks: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out, spread evenly over the classes; of `blocks`, whole ones, spread over the classes that
    most of their samples are of. A single block is all for training."""
    if blocks is not None:
        return _of_blocks(codes, test, rng, blocks)
    n = len(codes)
    size = int(held_out_size(np.array(n), test))
    order = rng.permutation(n)
    order = order[np.argsort(codes[order], kind="stable")]
    # every (n/size)-th sample of the class-sorted list, from a random start
    picked = np.floor((np.arange(size) + rng.uniform()) * (n / max(size, 1))).astype(np.int64)
    held_out = np.zeros(n, dtype=bool)
    held_out[picked] = True
    return np.sort(order[~held_out]), np.sort(order[held_out])


def _of_blocks(codes: np.ndarray, test: float, rng: np.random.Generator, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known, place = np.unique(blocks, return_inverse=True)
    classes, of = np.unique(codes, return_inverse=True)
    counts = np.zeros((len(known), len(classes)), dtype=np.int64)
    np.add.at(counts, (place, of), 1)
    _, picked = stratified(counts.argmax(1), test, rng)
    held_out = np.isin(place, picked)
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
