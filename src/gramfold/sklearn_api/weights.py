"""Weights of samples: which have any, and a federation of those that do."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gramfold.errors import InputError
from gramfold.federation import Federation, Samples


def weighed(sample_weight: Any, n: int) -> tuple[np.ndarray | slice, np.ndarray | None]:
    """Which samples have any weight, and their weights; None where all count once."""
    if sample_weight is None:
        return slice(None), None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("sample_weight must hold numbers, one per sample") from None
    weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n,):
        raise InputError(f"sample_weight must hold one number per sample: got shape {weights.shape} for {n} samples")
    if not (np.isfinite(weights).all() and weights.min() >= 0):
        raise InputError("sample_weight must hold finite numbers, none of them negative")
    kept = np.flatnonzero(weights)
    if not len(kept):
        raise InputError("sample_weight is zero for all samples; at least one must have a weight")
    weights = weights[kept]
    return kept, None if (weights == 1).all() else weights


def weighted(federation: Federation, weights: dict[str, np.ndarray]) -> Federation:
    """The federation with its training samples weighted; of how many samples it is goes by their sum."""
    clients = [
        dataclasses.replace(client, train=partial(_with_weights, client.train, weights[client.name])) for client in federation
    ]
    total = sum(float(part.sum()) for part in weights.values())
    return dataclasses.replace(federation, clients=clients, task=dataclasses.replace(federation.task, samples=round(total)))


def _with_weights(train: Callable[[], Samples], weights: np.ndarray) -> Samples:
    samples = train()
    return Samples(*samples, weights, samples.blocks)
