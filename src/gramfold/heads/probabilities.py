"""From scores to probabilities, which are never surer than the samples behind them allow.

A head's softmax may say 1e-33, but nobody has seen 1e33 samples. Of the n that it was made of, none at best was of a class that
it held impossible; that the next one is has then the probability u = (1/2) / (n + 1) (Krichevsky and Trofimov's rule). So a part
u of every prediction is spread over all C classes alike:

    p' = (1 - u) p + u / C

No probability is less than u / C, order and argmax stay, and whatever the samples are: the log loss is at most log((n + 1) 2 C),
and never worse than without the floor by more than -log(1 - u), about 1 / (2 n).
"""

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(shifted / shifted.sum(1, keepdims=True))


def unforeseen_after(n: float) -> float:
    """u, after n samples.

    >>> round(unforeseen_after(57), 4)
    0.0086
    """
    return 0.5 / (n + 1.0)


def floored(shares: np.ndarray, unforeseen: float) -> np.ndarray:
    """p' of n x classes probabilities p."""
    return np.asarray((1.0 - unforeseen) * shares + unforeseen / shares.shape[1])
