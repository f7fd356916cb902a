"""Triangular factors of a stack of symmetric systems as products alone: what an accelerator is good at, however many there are.

A factorisation of one system of a few hundred rows keeps a small part of a card busy, and its libraries' batched ones are made
for tiny systems. Block by block, all systems at once, nearly everything is a product; only diagonal blocks are factorised.
With L L' = A, and W = L^-1, a block row of W is

    W_ii = L_ii^-1        W_i,<i = -W_ii L_i,<i W_<i,<i

and every solution is a product with W. (As exact as substitution, up to the condition of L's diagonal blocks.)
"""

from typing import Any

BLOCK = 64
"""Columns at a time."""


def inverse_factors(matrices: Any) -> tuple[Any, Any]:
    """L^-1 (clients x n x n, zero above) of tensors, which are written over; and for each whether it has none."""
    import torch

    clients, n = matrices.shape[0], matrices.shape[-1]
    inverse = torch.zeros_like(matrices)
    failed = torch.zeros(clients, dtype=torch.int32, device=matrices.device)
    eye = torch.eye(min(BLOCK, n), dtype=matrices.dtype, device=matrices.device)
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        here, info = torch.linalg.cholesky_ex(matrices[:, start:end, start:end])
        failed |= info
        own = torch.linalg.solve_triangular(here, eye[: end - start, : end - start], upper=False)
        inverse[:, start:end, start:end] = own
        if start:
            left = matrices[:, start:end, :start] @ inverse[:, :start, :start]
            inverse[:, start:end, :start] = torch.matmul(own, left).neg_()
        if end < n:
            below = matrices[:, end:, start:end] @ own.mT
            matrices[:, end:, start:end] = below
            rest = matrices[:, end:, end:]
            rest.baddbmm_(below, below.mT, alpha=-1.0)
    return inverse, failed
