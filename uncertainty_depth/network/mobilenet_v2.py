# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""MobileNetV2 (Sandler et al. 2018) as an encoder, its batch norms folded into the convolutions.

Padding and input match TensorFlow, so that weights published for TensorFlow give the same maps.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.network.backbone import MobileNetV2Config
from uncertainty_depth.network.resnet import Maps

STEM_CHANNELS = 32
BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Table 2 of the paper: expansion, output channels, repeats, stride of the first repeat."""
MAPS_AFTER = (2, 5, 12, 16)
"""Blocks that end at 1/4, 1/8, 1/16 and 1/32 of the image's size: the last before each stride."""


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding, and ReLU6 behind it unless it is linear.

    At stride 2, an even size is padded with one row and column of zeros at the bottom and right.
    torch's symmetric padding would shift every map by a pixel relative to the trained weights.
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
    """1x1 expansion, 3x3 depthwise, linear 1x1 projection; a residual if the shape stays."""

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


class MobileNetV2(nn.Module):
    """(B, 3, h, w) pixels in [-1, 1] to maps at 1/4, 1/8, 1/16 and 1/32 of the size.

    Attributes:
        config: the config it was made from.
        channels: channels of the four maps.
        pixel_mean, pixel_std: normalisation of pixels in [0, 1].
    """

    pixel_mean = (0.5, 0.5, 0.5)
    pixel_std = (0.5, 0.5, 0.5)

    def __init__(self, config: MobileNetV2Config | None = None) -> None:
        super().__init__()
        self.config = config or MobileNetV2Config()
        self.stem = SameConv2d(3, STEM_CHANNELS, 3, stride=2)
        blocks: list[nn.Module] = []
        inputs = STEM_CHANNELS
        widths = []
        for expansion, outputs, repeats, stride in BLOCKS:
            for repeat in range(repeats):
                blocks.append(
                    InvertedResidual(inputs, outputs, stride if repeat == 0 else 1, expansion)
                )
                inputs = outputs
                widths.append(outputs)
        self.blocks = nn.ModuleList(blocks)
        self.channels = [widths[number] for number in MAPS_AFTER]

    def forward(self, pixels: Tensor) -> Maps:
        """Return the feature maps of normalised pixels, finest first."""
        x = self.stem(pixels)
        maps: list[Tensor] = []
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number in MAPS_AFTER:
                maps.append(x)
        return Maps(tuple(maps))
