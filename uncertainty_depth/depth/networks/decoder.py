# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The hourglass's decoder: four up-projections (Laina et al. 2016, fig. 2 and 3)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.depth.networks.encoder import resize_maps

Dropout = Callable[[Tensor], Tensor]
LAST_ACTIVATIONS: dict[str, nn.Module] = {"relu": nn.ReLU(), "leaky_relu": nn.LeakyReLU(0.1)}
"""With ReLU, pixels at which all of the few last units are off get the final bias as their depth,
the same in every member and pass, with no variance and no gradient to leave that state."""
RAW_FRACTIONS = (0.05, 0.95)
"""Limits of `raw_value` between a range's two ends, so that the sigmoid has a gradient."""


class DropoutDecoder(nn.Module, ABC):
    """Features to raw maps, split at the first dropout so that MC dropout computes the trunk once.

    Its dropout layers are in the order in which they act.
    """

    dropouts: nn.ModuleList

    @abstractmethod
    def trunk(self, features: Any) -> Any:
        """Return what is computed before the first dropout and is the same for every sample."""

    @abstractmethod
    def branches(self, trunk: Any, dropouts: Sequence[Dropout]) -> Tensor:
        """Return (B, outputs, h, w) raw maps, by `dropouts`, which may give more samples."""

    def forward(self, features: Any) -> Tensor:
        """Return the (B, outputs, h, w) raw maps from an encoder's features."""
        return self.branches(self.trunk(features), list(self.dropouts))


class UpProjection(nn.Module):
    """Fast up-projection to twice the size (Laina et al. 2016, fig. 2c).

    One branch unpools and convolves by 5x5, ReLU and 3x3, the other unpools and convolves by 5x5;
    their sum goes through an activation. Unpooling with zeros and convolving is a transposed
    convolution with stride 2. Both branches read the same map, so one convolution serves both.
    """

    def __init__(
        self, in_channels: int, out_channels: int, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.unpool = nn.ConvTranspose2d(
            in_channels, 2 * out_channels, 5, stride=2, padding=2, output_padding=1, bias=False
        )
        self.unpool_norm = nn.BatchNorm2d(2 * out_channels)
        self.conv = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)
        self.activation = nn.ReLU() if activation is None else activation

    def forward(self, x: Tensor, skip: Tensor | None = None) -> Tensor:
        """Return (B, out_channels, 2h, 2w) from (B, C, h, w), with the skip connection added."""
        branch, projection = self.unpool_norm(self.unpool(x)).chunk(2, dim=1)
        total = self.norm(self.conv(functional.relu(branch))) + projection
        if skip is not None:
            total = total + resize_maps(skip, total.shape[-2:])
        return self.activation(total)


class Trunk(NamedTuple):
    """What the decoder computes before its first dropout."""

    first: Tensor  # (B, width, h, w), after the first up-projection
    skips: tuple[Tensor | None, ...]  # for the second and third up-projection


def decoder_widths(width: int) -> list[int]:
    """Return the channels after each up-projection."""
    return [width, width // 2, width // 4, width // 8]


class Decoder(DropoutDecoder):
    """Feature maps, finest first, to `outputs` maps at 16 times the size of the deepest.

    As in Laina et al., a 1x1 convolution halves the encoder's channels first. A skip connection is
    a 1x1 convolution of the encoder's map, resized if its scale differs (a ViT's maps all have one
    scale). It is added inside the up-projection, so that dropout acts on it too.
    """

    def __init__(
        self,
        channels: Sequence[int],
        width: int,
        dropouts: Sequence[nn.Module],
        outputs: int,
        last_activation: str = "leaky_relu",
    ) -> None:
        super().__init__()
        widths = decoder_widths(width)
        inputs = [max(channels[-1] // 2, 1), *widths[:-1]]
        activations = [nn.ReLU(), nn.ReLU(), nn.ReLU(), LAST_ACTIVATIONS[last_activation]]
        self.bridge = nn.Sequential(
            nn.Conv2d(channels[-1], inputs[0], 1, bias=False), nn.BatchNorm2d(inputs[0])
        )
        self.ups = nn.ModuleList(map(UpProjection, inputs, widths, activations))
        self.dropouts = nn.ModuleList(dropouts)
        self.skips = nn.ModuleList(
            nn.Conv2d(in_channels, out_channels, 1)
            for in_channels, out_channels in zip(channels[-2::-1], widths[:3], strict=False)
        )
        self.final = nn.Conv2d(widths[3], outputs, 3, padding=1)

    def trunk(self, features: Sequence[Tensor]) -> Trunk:
        """Return the first up-projection and the skip connections of the next two."""
        skips: list[Tensor | None] = [None, None, None]
        for index, (skip, feature) in enumerate(zip(self.skips, features[-2::-1], strict=False)):
            skips[index] = skip(feature)
        first = self.ups[0](self.bridge(features[-1]), skips[0])
        return Trunk(first, tuple(skips[1:]))

    def branches(self, trunk: Trunk, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        x = dropouts[0](trunk.first)
        for up, skip, dropout in zip(self.ups[1:3], trunk.skips, dropouts[1:], strict=True):
            x = dropout(up(x, skip))
        return self.final(self.ups[3](x))


def geometric(raw: Tensor, low: float, high: float) -> Tensor:
    """Return low * (high / low) ** sigmoid(raw): smooth, never clipped, geometric mean at 0."""
    return low * torch.exp(torch.sigmoid(raw) * math.log(high / low))


def raw_value(value: float, low: float, high: float) -> float:
    """Return a value's raw output, clipped to `RAW_FRACTIONS`: the inverse of `geometric`."""
    fraction = math.log(max(value, low) / low) / math.log(high / low)
    fraction = min(max(fraction, RAW_FRACTIONS[0]), RAW_FRACTIONS[1])
    return math.log(fraction / (1 - fraction))
