"""A residual network with adapters (HEART-PFL); without them it is the usual ResNet, and its weights go by the usual names."""

import torch
from torch import Tensor, nn

from gramfold.networks.layers import Norm, Pixels

DROPOUT = 0.3


class Adapter(nn.Module):
    """a(x) = x + Conv1x1(Dropout(BN(x))). Dropout follows `noise`, uniform numbers in [0, 1) for every entry of x (channels
    last), passed in because each of the clients trained side by side has its own random stream."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = Norm(width)
        self.mix = nn.Conv2d(width, width, 1, bias=False)
        self.noise: Tensor | None = None
        self.entries = 0

    def forward(self, x: Tensor) -> Tensor:
        z = self.norm(x)
        self.entries = z[0].numel()
        if self.training and self.noise is not None:
            kept = self.noise.reshape(-1, *z.shape[-2:], z.shape[-3]).movedim(-1, -3) >= DROPOUT
            z = z * kept / (1 - DROPOUT)
        mixed: Tensor = self.mix(z)
        return x + mixed


class StridedConv1x1(nn.Conv2d):
    """A 1x1 convolution with a stride, as a plain one on every stride-th pixel: oneDNN's strided one writes past its memory on
    few channels, and crashes or hangs (uxlfoundation/oneDNN#6035)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(inputs, outputs, 1, bias=False)
        self._step = stride

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x[..., :: self._step, :: self._step])


class Block(nn.Module):
    """Two 3x3 convolutions, each followed by an adapter and normalisation, around a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, adapters: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.adapter1 = Adapter(outputs) if adapters else nn.Identity()
        self.bn1 = Norm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.adapter2 = Adapter(outputs) if adapters else nn.Identity()
        self.bn2 = Norm(outputs)
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(StridedConv1x1(inputs, outputs, stride), Norm(outputs))

    def forward(self, x: Tensor) -> Tensor:
        z = torch.relu(self.bn1(self.adapter1(self.conv1(x))))
        z = self.bn2(self.adapter2(self.conv2(z)))
        return torch.relu(z + self.downsample(x))


class ResNet(nn.Module):
    """Four stages of basic blocks; ResNet-18 is width 64, 2 blocks, the "imagenet" stem (7x7, stride 4 in all)."""

    def __init__(self, channels: int, width: int, blocks: int, stem: str, adapters: bool) -> None:
        super().__init__()
        self.pixels = Pixels()
        wide = stem == "imagenet"
        self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False) if wide else nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = Norm(width)
        self.pool = nn.MaxPool2d(3, 2, 1) if wide else nn.Identity()
        inputs = width
        for stage in range(4):
            outputs = width * 2**stage
            made = [Block(inputs if i == 0 else outputs, outputs, 2 if stage and i == 0 else 1, adapters) for i in range(blocks)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*made))
            inputs = outputs
        self.width = inputs

    def stages(self, x: Tensor) -> list[Tensor]:
        """The pooled output of every stage."""
        z = self.pool(torch.relu(self.bn1(self.conv1(self.pixels(x)))))
        out = []
        for stage in range(4):
            z = self.get_submodule(f"layer{stage + 1}")(z)
            out.append(z.mean((-2, -1)))
        return out

    def forward(self, x: Tensor) -> Tensor:
        return self.stages(x)[-1]
