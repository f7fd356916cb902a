"""A residual network whose convolutions are frozen, in training, for many clients in one pass.

What is frozen is the same for all clients, so that one convolution serves all their images; what each client trains is small:
normalisation, adapters (1x1 convolutions) and a head, which are products of stacked matrices. Images lie channels last, clients
first: K x B x height x width x channels. `torch.func.vmap` computes the same by way of grouped convolutions, many times slower.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import conv2d, max_pool2d

from gramfold.networks.layers import MOMENTUM, pixels
from gramfold.networks.resnet import DROPOUT

EPSILON = 1e-5


class SideBySide:
    """One pass: `weights` by name, those that clients train with a first dimension of clients; each sample's `share` in its
    client's batch (K x B, padding none); `noise` for dropout."""

    def __init__(self, weights: Mapping[str, Tensor], share: Tensor, noise: Tensor | None) -> None:
        self._weights, self._share, self._noise = weights, share, noise
        self._largest = share.amax(1, keepdim=True)
        self._alone = self._largest == 1  # a batch of one has no statistics of its own
        self._live = share * ~self._alone
        self._drawn = 0
        self._unbiased: dict[int, Tensor] = {}
        self._seen: dict[str, tuple[Tensor, Tensor]] = {}

    def stages(self, x: Tensor, blocks: int, wide: bool) -> list[Tensor]:
        """The pooled output of every stage, K x B x channels."""
        z = self._convolution("base.conv1", pixels(x), 2 if wide else 1)
        z = self._norm("base.bn1", z).relu()
        if wide:
            z = _over_images(lambda images: max_pool2d(images, 3, 2, 1), z)
        out = []
        for stage in range(1, 5):
            for i in range(blocks):
                z = self._block(f"base.layer{stage}.{i}", z, 2 if stage > 1 and i == 0 else 1)
            out.append(z.mean((2, 3)))
        return out

    def statistics(self) -> dict[str, Tensor]:
        """The running statistics after the pass; of all layers at once, since each is tiny."""
        names = [f"{name}.{key}" for name in self._seen for key in ("running_mean", "running_var")]
        found = [part for parts in self._seen.values() for part in parts]
        return dict(zip(names, torch._foreach_lerp([self._weights[name] for name in names], found, MOMENTUM), strict=True))

    def _block(self, name: str, x: Tensor, stride: int) -> Tensor:
        z = self._adapter(f"{name}.adapter1", self._convolution(f"{name}.conv1", x, stride))
        z = self._norm(f"{name}.bn1", z).relu()
        z = self._adapter(f"{name}.adapter2", self._convolution(f"{name}.conv2", z))
        z = self._norm(f"{name}.bn2", z)
        if f"{name}.downsample.0.weight" in self._weights:
            x = self._norm(f"{name}.downsample.1", self._convolution(f"{name}.downsample.0", x[:, :, ::stride, ::stride]))
        return (z + x).relu()

    def _convolution(self, name: str, x: Tensor, stride: int = 1) -> Tensor:
        weight = self._weights[f"{name}.weight"]
        return _over_images(lambda images: conv2d(images, weight, stride=stride, padding=weight.shape[-1] // 2), x)

    def _adapter(self, name: str, x: Tensor) -> Tensor:
        """x + Conv1x1(Dropout(BN(x))); the convolution is a product with each client's own matrix."""
        if f"{name}.mix.weight" not in self._weights:
            return x
        z = self._norm(f"{name}.norm", x)
        if self._noise is not None:
            entries = z[0, 0].numel()
            drawn = self._noise[..., self._drawn : self._drawn + entries].view(z.shape)
            z = z * (drawn >= DROPOUT)
            self._drawn += entries
        kept = 1 - DROPOUT if self._noise is not None else 1.0
        mix = self._weights[f"{name}.mix.weight"].flatten(2).mT / kept
        # image by image: one product over all of a client's pixels is a long sum that a GPU does not split
        mixed: Tensor = z.flatten(2, 3) @ mix[:, None]
        return x + mixed.view(x.shape)

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias, mean, variance = (
            self._weights[f"{name}.{key}"] for key in ("weight", "bias", "running_mean", "running_var")
        )
        apply: Callable[..., tuple[Tensor, Tensor, Tensor]] = _Normalized.apply
        out, found, spread = apply(x, weight, bias, mean, variance, self._share, self._live, self._alone)
        self._seen[name] = found, spread * self._correction(x.shape[2] * x.shape[3])
        return out

    def _correction(self, pixels: int) -> Tensor:
        """What makes a variance over all pixels of a client's batch unbiased."""
        if pixels not in self._unbiased:
            count = pixels / self._largest
            self._unbiased[pixels] = torch.where(self._alone, 1, count / (count - 1).clamp(min=1))
        return self._unbiased[pixels]


class _Normalized(Function):
    """Batch normalisation of each client's samples by their own weighted mean and variance; a batch of one by the running ones.

    Beside the outputs it returns the mean and variance used. Its gradient is written out because autograd's takes three times as
    many passes over the images.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, known_mean: Tensor, known_variance: Tensor,
        share: Tensor, live: Tensor, alone: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        variances, means = torch.var_mean(x, (2, 3), correction=0)
        own_mean = (share[:, None] @ means)[:, 0]
        apart = means - own_mean[:, None]
        own_variance = (share[:, None] @ torch.addcmul(variances, apart, apart))[:, 0]
        mean, variance = torch.where(alone, known_mean, own_mean), torch.where(alone, known_variance, own_variance)
        inverse = (variance + EPSILON).rsqrt()
        scale = weight * inverse
        out = torch.addcmul(_wide(torch.addcmul(bias, mean, scale, value=-1)), x, _wide(scale))
        ctx.save_for_backward(x, mean, inverse, scale, live)
        ctx.mark_non_differentiable(mean, variance)
        ctx.set_materialize_grads(False)
        return out, mean, variance

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        x, mean, inverse, scale, live = ctx.saved_tensors
        d_bias = dy.sum((1, 2, 3))
        d_weight = torch.addcmul((dy * x).sum((1, 2, 3)), mean, d_bias, value=-1) * inverse
        slope = scale * inverse * d_weight
        level = torch.addcmul(scale * d_bias, mean, slope, value=-1)
        weight = (live / -(x.shape[2] * x.shape[3]))[..., None]  # a row's weight in the mean, subtracted
        through = torch.addcmul((weight * level[:, None])[:, :, None, None], x, (weight * slope[:, None])[:, :, None, None])
        dx = torch.addcmul(through, dy, _wide(scale))
        trained = ctx.needs_input_grad[1]
        return dx, d_weight if trained else None, d_bias if trained else None, None, None, None, None, None


def _wide(per_client: Tensor) -> Tensor:
    """K x channels against K x B x height x width x channels."""
    return per_client[:, None, None, None]


def _over_images(function: Any, x: Tensor) -> Tensor:
    """A function of n x channels x height x width, on all clients' images; no memory is moved."""
    out: Tensor = function(x.flatten(0, 1).movedim(-1, 1))
    return out.movedim(1, -1).view(*x.shape[:2], *out.shape[-2:], out.shape[1])
