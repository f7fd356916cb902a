"""From tokens to one row: the class token, the mean of the others, or both side by side."""

import numpy as np

from gramfold.errors import BackboneError

CLS, MEAN, BOTH = "cls", "mean", "both"
POOLINGS = (CLS, MEAN, BOTH)


def check_pooling(pooling: str) -> str:
    if pooling not in POOLINGS:
        raise BackboneError(f"unknown pooling {pooling!r}; known: {', '.join(POOLINGS)}")
    return pooling


def pool_patches(tokens: np.ndarray, pooling: str) -> np.ndarray:
    """Rows from what a vision model gives: n x tokens x d with the class token first, n x channels x H x W, or rows already."""
    if tokens.ndim == 2:
        return tokens
    if tokens.ndim == 4:
        return np.asarray(tokens.mean((2, 3)))
    if tokens.ndim != 3:
        raise BackboneError(f"cannot pool an output of shape {tokens.shape}; name a tensor of n x tokens x d")
    parts = {CLS: tokens[:, 0], MEAN: tokens[:, 1:].mean(1)}
    return np.asarray(parts[pooling]) if pooling in parts else np.concatenate(list(parts.values()), axis=1)


def pool_words(tokens: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Rows from what a text model gives: the mean is over all tokens that stand for words of the text."""
    if tokens.ndim == 2:
        return tokens
    weights = mask[:, :, None].astype(tokens.dtype)
    mean = (tokens * weights).sum(1) / np.maximum(weights.sum(1), 1)
    parts = {CLS: tokens[:, 0], MEAN: mean}
    return np.asarray(parts[pooling]) if pooling in parts else np.concatenate(list(parts.values()), axis=1)
