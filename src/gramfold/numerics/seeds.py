"""Named random streams: each depends on its name and the root seed alone, never on call order."""

import hashlib

import numpy as np


def _sequence(seed: int, name: str) -> np.random.SeedSequence:
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])


def generator(seed: int, name: str) -> np.random.Generator:
    """The random generator called `name` under a root seed."""
    return np.random.default_rng(_sequence(seed, name))


def frozen(seed: int, name: str) -> np.random.RandomState:
    """The same for what must be equal on every machine and NumPy release: RandomState's streams are frozen for good."""
    return np.random.RandomState(np.random.MT19937(_sequence(seed, name)))
