# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Encoders of inverted residuals, with their batch norms folded into the convolutions.

MobileNetV2 (Sandler et al. 2018), and EfficientNet-Lite0 and Lite2: EfficientNet (Tan and Le 2019)
without squeeze-and-excitation and with ReLU6. Padding and input match TensorFlow, so that weights
published for TensorFlow give the same maps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.depth.networks.resnet import Maps

STEM_CHANNELS = 32
STRIDES = (1, 2, 2, 2, 1, 2, 1)
"""Strides of the first block in each of the seven stages."""
MAPS_AFTER_STAGES = (1, 2, 4, 6)
"""Stages that end at 1/4, 1/8, 1/16 and 1/32 of the image's size: the last before each stride."""


@dataclass(frozen=True)
class Layout:
    """One encoder's sizes by stage, and the normalisation of pixels in [0, 1], for all colours."""

    repeats: tuple[int, ...]
    widths: tuple[int, ...]
    kernels: tuple[int, ...]
    pixel_mean: float
    pixel_std: float


_SMALL_KERNELS = (3,) * 7
_LITE_KERNELS = (3, 3, 5, 3, 5, 5, 3)
_LITE_PIXELS = (127 / 255, 128 / 255)
LAYOUTS = {
    "mobilenet_v2_folded": Layout(
        (1, 2, 3, 4, 3, 3, 1), (16, 24, 32, 64, 96, 160, 320), _SMALL_KERNELS, 0.5, 0.5
    ),  # table 2 of the paper
    "efficientnet_lite0_folded": Layout(
        (1, 2, 2, 3, 3, 4, 1), (16, 24, 40, 80, 112, 192, 320), _LITE_KERNELS, *_LITE_PIXELS
    ),  # table 1 of the paper
    "efficientnet_lite2_folded": Layout(
        (1, 3, 3, 4, 4, 5, 1), (16, 24, 48, 88, 120, 208, 352), _LITE_KERNELS, *_LITE_PIXELS
    ),  # 1.1 times as wide and 1.2 times as deep, but for the stem and the ends
}
"""Layouts by the config's `model_type`."""
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
        if kernel > 3 and self.groups > 1 and torch.is_autocast_enabled("cpu") and x.is_cpu:
            # A training step's bfloat16 is for the matrix products: a 5x5 depthwise convolution
            # takes a CPU three times as long in it.
            with torch.autocast(x.device.type, enabled=False):
                return self._convolved(x.float(), pads)
        return self._convolved(x, pads)

    def _convolved(self, x: Tensor, pads: list[int]) -> Tensor:
        if pads[0] == pads[1] == pads[2] == pads[3]:  # by the convolution itself: no copy
            maps = functional.conv2d(
                x, self.weight, self.bias, self.stride, pads[0], groups=self.groups
            )
        else:
            maps = super().forward(functional.pad(x, pads))
        return maps if self.is_linear else functional.relu6(maps)


class InvertedResidual(nn.Module):
    """1x1 expansion, depthwise, linear 1x1 projection; a residual if the shape stays."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int
    ) -> None:
        super().__init__()
        inside = inputs * expansion
        self.expand = SameConv2d(inputs, inside, 1) if expansion > 1 else nn.Identity()
        self.depthwise = SameConv2d(inside, inside, kernel, stride, groups=inside)
        self.project = SameConv2d(inside, outputs, 1, is_linear=True)
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return the (B, outputs, h / stride, w / stride) maps."""
        maps = self.project(self.depthwise(self.expand(x)))
        return x + maps if self.is_residual else maps


@dataclass(frozen=True)
class InvertedResidualsConfig:
    """An encoder by its name in `LAYOUTS`; published weights fit it."""

    model_type: str

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON has them."""
        return asdict(self)


class InvertedResiduals(nn.Module):
    """(B, 3, h, w) normalised pixels to maps at 1/4, 1/8, 1/16 and 1/32 of the size."""

    def __init__(self, config: InvertedResidualsConfig) -> None:
        super().__init__()
        self.config = config
        layout = LAYOUTS[config.model_type]
        self.pixel_mean = (layout.pixel_mean,) * 3
        self.pixel_std = (layout.pixel_std,) * 3
        self.stem = SameConv2d(3, STEM_CHANNELS, 3, stride=2)
        blocks: list[nn.Module] = []
        ends: list[int] = []
        inputs = STEM_CHANNELS
        stages = zip(layout.repeats, layout.widths, layout.kernels, STRIDES, strict=True)
        for repeats, width, kernel, first_stride in stages:
            for repeat in range(repeats):
                stride = first_stride if repeat == 0 else 1
                expansion = EXPANSION if blocks else 1
                blocks.append(InvertedResidual(inputs, width, kernel, stride, expansion))
                inputs = width
            ends.append(len(blocks) - 1)
        self.blocks = nn.ModuleList(blocks)
        self.channels = [layout.widths[stage] for stage in MAPS_AFTER_STAGES]
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
