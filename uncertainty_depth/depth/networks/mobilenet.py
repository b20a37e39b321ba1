# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""MobileNetV2 (Sandler et al. 2018) as an encoder, its batch norms folded into the convolutions.

Padding and input match TensorFlow, so that weights published for TensorFlow give the same maps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.depth.networks.resnet import Maps

STEM_CHANNELS = 32
STAGES = (
    (1, 16, 1), (2, 24, 2), (3, 32, 2), (4, 64, 2), (3, 96, 1), (3, 160, 2), (1, 320, 1)
)  # fmt: skip
"""Blocks, channels, and stride of the first block of each stage: table 2 of the paper."""
MAPS_AFTER_STAGES = (1, 2, 4, 6)
"""They end at 1/4, 1/8, 1/16 and 1/32 of the image's size: the last before each stride."""
EXPANSION = 6
"""Expansion in all blocks but the first, which has none."""


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding, and ReLU6 behind it unless it is linear.

    At stride 2, an even size is padded with one more row and column of zeros at the bottom and
    right. torch's symmetric padding would shift every map by a pixel relative to the trained
    weights.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1,
        is_linear: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(inputs, outputs, kernel, stride, groups=groups)
        self.is_linear = is_linear
        # The published weights are folded; random ones need He et al.'s size to reach the end.
        nn.init.kaiming_normal_(self.weight, mode="fan_in", nonlinearity="relu")
        nn.init.zeros_(self.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, outputs, ceil(h / stride), ceil(w / stride))."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads: list[int] = []
        for size in (x.shape[-1], x.shape[-2]):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [total // 2, total - total // 2]
        if pads[0] == pads[1] == pads[2] == pads[3]:  # by the convolution itself: no copy
            maps = functional.conv2d(
                x, self.weight, self.bias, self.stride, pads[0], groups=self.groups
            )
        else:
            maps = super().forward(functional.pad(x, pads))
        return maps if self.is_linear else functional.relu6(maps)


class InvertedResidual(nn.Module):
    """1x1 expansion, depthwise, linear 1x1 projection; a residual if the shape stays."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        inside = inputs * expansion
        self.expand = SameConv2d(inputs, inside, 1) if expansion > 1 else nn.Identity()
        self.depthwise = SameConv2d(inside, inside, 3, stride, groups=inside)
        self.project = SameConv2d(inside, outputs, 1, is_linear=True)
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return the (B, outputs, h / stride, w / stride) maps."""
        maps = self.project(self.depthwise(self.expand(x)))
        return x + maps if self.is_residual else maps


@dataclass(frozen=True)
class MobileNetConfig:
    """There is one layout; published weights fit it."""

    model_type: str = "mobilenet_v2_folded"

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON has them."""
        return asdict(self)


class MobileNet(nn.Module):
    """(B, 3, h, w) normalised pixels to maps at 1/4, 1/8, 1/16 and 1/32 of the size."""

    pixel_mean = (0.5, 0.5, 0.5)
    pixel_std = (0.5, 0.5, 0.5)

    def __init__(self) -> None:
        super().__init__()
        self.config = MobileNetConfig()
        self.stem = SameConv2d(3, STEM_CHANNELS, 3, stride=2)
        blocks: list[nn.Module] = []
        ends: list[int] = []
        inputs = STEM_CHANNELS
        for repeats, width, first_stride in STAGES:
            for repeat in range(repeats):
                stride = first_stride if repeat == 0 else 1
                expansion = EXPANSION if blocks else 1
                blocks.append(InvertedResidual(inputs, width, stride, expansion))
                inputs = width
            ends.append(len(blocks) - 1)
        self.blocks = nn.ModuleList(blocks)
        self.channels = [STAGES[stage][1] for stage in MAPS_AFTER_STAGES]
        self._maps_after = {ends[stage] for stage in MAPS_AFTER_STAGES}

    def forward(self, pixels: Tensor) -> Maps:
        """Return the feature maps of normalised pixels, finest first."""
        x = self.stem(pixels)
        maps: list[Tensor] = []
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number in self._maps_after:
                maps.append(x)
        return Maps(tuple(maps))
