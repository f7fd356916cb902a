"""HDA, the hierarchical directional alignment of HEART-PFL: every stage of a network is drawn towards its class prototypes.

Early stages by direction, 1 - cos(z, p): what they see differs in scale from client to client. Late stages by value,
mean (z - p)^2: there the scale is part of the meaning.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity


def alignment(stages: Sequence[Tensor], prototypes: Sequence[Tensor], y: Tensor, split: int = 2) -> Tensor:
    """The loss of each sample, averaged over stages: pooled stage outputs (n x d_l) against prototypes (classes x d_l), the first
    `split` stages by direction. All may be stacked over clients."""
    losses = []
    for number, (z, known) in enumerate(zip(stages, prototypes, strict=True)):
        wanted = known.gather(-2, y[..., None].expand(*y.shape, known.shape[-1]))
        losses.append(1 - cosine_similarity(z, wanted, dim=-1) if number < split else (z - wanted).square().mean(-1))
    return torch.stack(losses).mean(0)


def class_means(stages: Sequence[Tensor], y: Tensor, classes: int) -> list[Tensor]:
    """The mean output of every stage for every class; zero for a class without samples."""
    counts = torch.bincount(y, minlength=classes).clamp(min=1)[:, None]
    return [z.new_zeros(classes, z.shape[1]).index_add_(0, y, z) / counts for z in stages]
