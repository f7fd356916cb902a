"""HDA, the hierarchical directional alignment of HEART-PFL: every stage of a network is drawn towards its class prototypes.

Early stages by direction, 1 - cos(z, p): what they see differs in scale from client to client. Late stages by value,
mean (z - p)^2: there the scale is part of the meaning.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

DIRECTION_STAGES = 2
"""The number of early stages aligned by direction."""


def alignment(stages: Sequence[Tensor], prototypes: Sequence[Tensor], y: Tensor) -> Tensor:
    """The loss of each sample, averaged over stages: pooled stage outputs (n x d_l) against prototypes (classes x d_l)."""
    losses = []
    for number, (z, known) in enumerate(zip(stages, prototypes, strict=True)):
        wanted = known[y]
        losses.append(1 - cosine_similarity(z, wanted, dim=1) if number < DIRECTION_STAGES else (z - wanted).square().mean(1))
    return torch.stack(losses).mean(0)


def class_means(stages: Sequence[Tensor], y: Tensor, classes: int) -> list[Tensor]:
    """The mean output of every stage for every class; zero for a class without samples."""
    counts = torch.bincount(y, minlength=classes).clamp(min=1)[:, None]
    return [z.new_zeros(classes, z.shape[1]).index_add_(0, y, z) / counts for z in stages]
