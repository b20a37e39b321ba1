# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Normalised convolutions: averages of values, weighted by their confidence.

Knutsson and Westin 1993; as layers that pass confidence on, Eldesokey et al. 2019, "Confidence
propagation through CNNs for guided sparse depth regression". Every output is a mean of the values
around it, weighed by their confidence, so a value without confidence has no influence, and a
constant stays what it is. Hence no bias, which the published layers have.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

SHARPNESS = 10.0
"""Of the softplus that keeps weights positive."""
CELL = 4
"""Pixels of which a coarser scale keeps one; its confidence is divided by that."""


class Confident(NamedTuple):
    """(B, C, h, w) values and their confidence, 0 where unknown."""

    values: Tensor
    confidence: Tensor


class NormalisedConv2d(nn.Module):
    """A convolution of positive weights a over values x of confidence c: sum(a c x) / sum(a c).

    The confidence of the result is sum(a c) / sum(a).

    Args:
        in_channels: of the input.
        out_channels: of the output.
        size: odd height and width of the kernel; the border has no confidence.
    """

    def __init__(self, in_channels: int, out_channels: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, size, size))
        nn.init.kaiming_uniform_(self.weight)

    def forward(self, maps: Confident) -> Confident:
        """Return values, 0 where there is no confidence, and confidence."""
        weight = functional.softplus(self.weight, beta=SHARPNESS)
        border = weight.shape[-1] // 2
        mass = functional.conv2d(maps.confidence, weight, padding=border)
        total = functional.conv2d(maps.confidence * maps.values, weight, padding=border)
        is_known = mass > 0
        values = torch.where(is_known, total / torch.where(is_known, mass, 1.0), 0.0)
        return Confident(values, mass / weight.sum(dim=(1, 2, 3))[:, None, None])


def halved(maps: Confident) -> Confident:
    """Return the most confident value of each 2x2 cell, with its confidence divided by 4."""
    confidence, places = functional.max_pool2d(maps.confidence, 2, return_indices=True)
    values = maps.values.flatten(2).gather(2, places.flatten(2)).view_as(confidence)
    return Confident(values, confidence / CELL)


def beside(fine: Confident, coarse: Confident) -> Confident:
    """Return the channels of both, the coarse ones repeated to the size of the fine ones."""
    size = fine.values.shape[-2:]
    pairs = zip(fine, coarse, strict=True)
    return Confident(
        *[
            torch.cat([first, functional.interpolate(second, size)], dim=1)
            for first, second in pairs
        ]
    )


class NormalisedPyramid(nn.Module):
    """Four scales of normalised convolutions, which share their weights (Eldesokey et al. 2019).

    Down from the finest, each scale starts with the most confident values of the one before; up
    again, each is joined with what the coarser ones say.

    Args:
        channels: of every scale.
    """

    def __init__(self, channels: int = 2) -> None:
        super().__init__()
        self.first = NormalisedConv2d(1, channels, 5)
        self.second = NormalisedConv2d(channels, channels, 5)
        self.third = NormalisedConv2d(channels, channels, 5)
        self.joins = nn.ModuleList(NormalisedConv2d(2 * channels, channels, 3) for _ in range(3))
        self.last = NormalisedConv2d(channels, 1, 1)

    def forward(self, maps: Confident) -> Confident:
        """Return dense values and their confidence, (B, 1, h, w) of (B, 1, h, w)."""
        finest = self.third(self.second(self.first(maps)))
        middle = self.third(self.second(halved(finest)))
        coarse = self.second(halved(middle))
        dense = self.second(halved(coarse))
        for join, scale in zip(self.joins, (coarse, middle, finest), strict=True):
            dense = join(beside(scale, dense))
        return self.last(dense)
