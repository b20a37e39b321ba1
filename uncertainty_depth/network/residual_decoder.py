# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A decoder of how depth differs from what is interpolated between the known pixels.

A small network that predicts depth itself is less exact than interpolation between a few hundred
known pixels, because it has to learn to repeat them. Here it begins with the interpolated depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from uncertainty_depth.network.decoder import Decoder, Dropout, DropoutDecoder
from uncertainty_depth.network.encoder import resize_maps

FRACTIONS = (1e-3, 1 - 1e-3)
"""Of the depth range, in which interpolated depth is kept: its raw value is finite."""


class SparseFeatures(NamedTuple):
    """What the encoder of a residual decoder returns.

    Attributes:
        maps: of the backbone, finest first, or whatever the decoder inside takes.
        start: (B, 1, h, w), the raw value of the interpolated depth; 0 where there is none.
    """

    maps: Any
    start: Tensor


def raw_start(dense_m: Tensor, low: float, high: float) -> Tensor:
    """Return the raw value of (B, 1, h, w) metres, the inverse of `geometric`; 0 for unknown."""
    valid = dense_m > 0
    fraction = torch.log(torch.where(valid, dense_m, low) / low) / math.log(high / low)
    return torch.where(valid, torch.logit(fraction.clamp(*FRACTIONS)), 0.0)


class ResidualDecoder(DropoutDecoder):
    """Adds the interpolated depth to the first output of a decoder, at the image's size."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    @property
    def dropouts(self) -> nn.ModuleList:  # type: ignore[override]
        """See `DropoutDecoder`."""
        return self.decoder.dropouts

    @property
    def final(self) -> nn.Conv2d:
        """The last convolution."""
        return self.decoder.final

    def trunk(self, features: SparseFeatures) -> SparseFeatures:
        """See `DropoutDecoder`."""
        return SparseFeatures(self.decoder.trunk(features.maps), features.start)

    def branches(self, trunk: SparseFeatures, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        start = trunk.start
        raw = resize_maps(self.decoder.branches(trunk.maps, dropouts).float(), start.shape[-2:])
        return torch.cat([raw[:, :1] + start, raw[:, 1:]], dim=1)

    def layers_after_dropouts(self) -> Sequence[Any]:
        """See `DropoutDecoder`."""
        return self.decoder.layers_after_dropouts()
