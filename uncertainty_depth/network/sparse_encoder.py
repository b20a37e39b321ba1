# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""An encoder of image and sparse depth, after Ma et al. 2019.

"Self-supervised sparse-to-dense", section III: image and sparse depth go through convolutions of
their own, whose channels are joined before the first stage of the ResNet. There the two have half
the channels each; here each has as many as the ResNet's first convolution, so that a pretrained
one keeps its weights, and a 1x1 convolution joins them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.encoder import Encoder, TransformersModel
from uncertainty_depth.network.residual_decoder import SparseFeatures, raw_start
from uncertainty_depth.network.sparse_fill import fill, log_position, sparse_channel

SLOPE = 0.2  # of the leaky ReLU, as in Ma et al.'s code
SPARSE_CHANNELS = 2


class JoinedStem(nn.Module):
    """The first convolutions of image and sparse depth, and the 1x1 convolution that joins them.

    Args:
        image: the first convolution of the backbone, with its BatchNorm and activation.
        channels: that it returns.
    """

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
        """Return (B, channels, h/2, w/2) of (B, 3 + 2, h, w): image, depth, mask."""
        features = (self.image(pixels[:, :3]), self.sparse(pixels[:, 3:]))
        return self.join(torch.cat(features, dim=1))


class SparseEncoder(Encoder):
    """A ResNet behind a `JoinedStem`; it takes (B, 4, h, w): RGB in [0, 1], and metres.

    The fourth channel is 0 where depth is unknown. It may be missing, which is the same as 0
    everywhere: the image alone.

    Args:
        backbone: a ResNet.
        depth_range: min and max depth, metres; sparse depth is scaled to [0, 1] in its logarithm.
        fills: give the network interpolated depth instead of sparse depth, and return
            `SparseFeatures`, for a `ResidualDecoder`.

    Raises:
        ConfigError: the backbone is not a ResNet.
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
        embedder.num_channels = 3 + SPARSE_CHANNELS  # what transformers checks its input for

    def forward(self, image: Tensor) -> Any:
        """Return the feature maps of (B, 3 or 4, h, w) float32 images."""
        sparse_m = sparse_channel(image)
        normalised = (image[:, :3] - self.mean) / self.std
        depth_m = fill(sparse_m) if self.fills else sparse_m
        valid = (sparse_m > 0).to(depth_m.dtype)
        position = log_position(depth_m, *self.depth_range)
        pixels = torch.cat([normalised, position, valid], dim=1)
        maps = self.features(pixels.to(next(self.backbone.parameters()).dtype))
        return SparseFeatures(maps, raw_start(depth_m, *self.depth_range)) if self.fills else maps
