# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sparse depth beside the image: an encoder's input, and a decoder's start.

`ResidualDecoder`: a small network that predicts depth itself is less accurate than interpolation
between a few hundred known pixels, because it must learn to repeat them. Here it starts from the
interpolated depth.

`SparseEncoder`, after Ma et al. 2019, "Self-supervised sparse-to-dense", section III: image and
sparse depth go through their own convolutions, whose channels are joined before the ResNet's first
stage. In the paper each has half the channels. Here each has as many as the ResNet's first
convolution, so that a pretrained one keeps its weights, and a 1x1 convolution joins them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.networks.decoder import Decoder, Dropout, DropoutDecoder
from uncertainty_depth.depth.networks.encoder import Encoder, TransformersModel, resize_maps


def log_position(depth_m: Tensor, low: float, high: float) -> Tensor:
    """Return the depth's position in the range's logarithm, in [0, 1]; 0 for unknown."""
    is_known = depth_m > 0
    metres = torch.where(is_known, depth_m, low).clamp(low, high)
    return torch.log(metres / low) / math.log(high / low) * is_known


def fill(sparse_m: Tensor) -> Tensor:
    """Return dense (B, 1, h, w) metres from sparse ones, 0 for unknown; known pixels stay.

    Each pyramid level halves the size and averages known values ("pull"). From the coarsest level
    down, a level's unknown values are interpolated from the next coarser one ("push", Gortler et
    al. 1996, "The lumigraph"). An image without known depth stays 0.
    """
    valid = (sparse_m > 0).to(sparse_m.dtype)
    levels = [(sparse_m, valid)]
    while max(levels[-1][0].shape[-2:]) > 1:
        levels.append(_halved(*levels[-1]))
    dense, _ = levels.pop()
    for values, weight in reversed(levels):
        dense = torch.where(weight > 0, values, resize_maps(dense, values.shape[-2:]))
    return dense


def _halved(values: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Return each 2x2 cell's mean over known values, 0 for none, and which cells have any."""
    products = torch.cat([values * valid, valid], dim=1)
    height, width = values.shape[-2:]
    even = functional.pad(products, (0, width % 2, 0, height % 2))  # OpenVINO crashes on ceil_mode
    sums = functional.avg_pool2d(even, 2)
    total, weight = sums.split(1, dim=1)
    mean = torch.where(weight > 0, total / weight.clamp_min(1e-6), 0.0)
    return mean, (weight > 0).to(values.dtype)


FRACTIONS = (1e-3, 1 - 1e-3)
"""Part of the depth range in which interpolated depth is kept: its raw value is finite."""


class SparseFeatures(NamedTuple):
    """Maps, finest first, and the interpolated depth's raw value, (B, 1, h, w), 0 for none."""

    maps: Any
    start: Tensor


def raw_start(dense_m: Tensor, low: float, high: float) -> Tensor:
    """Return the raw value for (B, 1, h, w) metres: the inverse of `geometric`; 0 for unknown."""
    valid = dense_m > 0
    fraction = torch.log(torch.where(valid, dense_m, low) / low) / math.log(high / low)
    return torch.where(valid, torch.logit(fraction.clamp(*FRACTIONS)), 0.0)


class ResidualDecoder(DropoutDecoder):
    """Adds the interpolated depth to a decoder's first output, at the image's size."""

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


SLOPE = 0.2  # of the leaky ReLU, as in Ma et al.'s code
SPARSE_CHANNELS = 2


class JoinedStem(nn.Module):
    """The first convolutions, for image and for sparse depth, joined by a 1x1 convolution."""

    def __init__(self, image: nn.Module, channels: int) -> None:
        super().__init__()
        self.image = image
        self.sparse = nn.Sequential(
            nn.Conv2d(SPARSE_CHANNELS, channels, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(channels),
            nn.LeakyReLU(SLOPE),
        )
        self.join = nn.Sequential(
            nn.Conv2d(2 * channels, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )

    def forward(self, pixels: Tensor) -> Tensor:
        """Return (B, channels, h/2, w/2) from (B, 3 + 2, h, w): image, depth, mask."""
        features = (self.image(pixels[:, :3]), self.sparse(pixels[:, 3:]))
        return self.join(torch.cat(features, dim=1))


class SparseEncoder(Encoder):
    """A ResNet behind a `JoinedStem`; it takes (B, 4, h, w): RGB in [0, 1], and metres.

    The fourth channel is 0 for unknown depth. It may be missing, which equals 0 everywhere.

    Sparse depth is scaled to [0, 1] in its logarithm, from `depth_range`, metres. With `fills` the
    network gets interpolated depth, and returns `SparseFeatures` for a `ResidualDecoder`. Raises
    `ConfigError` for another backbone.
    """

    def __init__(
        self, backbone: TransformersModel, depth_range: tuple[float, ...], fills: bool = False
    ) -> None:
        if backbone.config.model_type != "resnet":
            raise ConfigError(
                f"sparse_input needs a ResNet as its encoder, and the backbone is a "
                f"{backbone.config.model_type!r} model; expected one of resnet10 to resnet200, "
                "tiny to tiny34, or a pretrained ResNet"
            )
        super().__init__(backbone)
        self.depth_range = depth_range
        self.fills = fills
        embedder: Any = backbone.embedder
        embedder.embedder = JoinedStem(embedder.embedder, backbone.config.embedding_size)
        embedder.num_channels = 3 + SPARSE_CHANNELS  # transformers checks its input for this

    def forward(self, image: Tensor) -> Any:
        """Return the feature maps of (B, 3 or 4, h, w) float32 images."""
        padded = functional.pad(image, (0, 0, 0, 0, 0, 4 - image.shape[1]))
        sparse_m = padded[:, 3:]
        normalised = (image[:, :3] - self.mean) / self.std
        depth_m = fill(sparse_m) if self.fills else sparse_m
        valid = (sparse_m > 0).to(depth_m.dtype)
        position = log_position(depth_m, *self.depth_range)
        pixels = torch.cat([normalised, position, valid], dim=1)
        maps = self.features(pixels.to(next(self.backbone.parameters()).dtype))
        return SparseFeatures(maps, raw_start(depth_m, *self.depth_range)) if self.fills else maps
