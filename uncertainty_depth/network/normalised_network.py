# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth completion without the image, by normalised convolutions: pNCNN.

Eldesokey et al. 2020, "Uncertainty-aware CNNs for depth completion: uncertainty from beginning to
end". A U-Net says how far each known pixel is to be trusted, normalised convolutions spread these
depths with their confidence, and a second U-Net makes the scale of the error of the confidence
that arrives. 0.67 million weights in all, of which the spreading has 468.

What differs: confidence is 0 where depth is unknown (there it is learned), convolutions have no
bias, the scale is a fraction of the depth, as of all networks here, and what no known depth
reaches is filled in by `sparse_fill`, or with a learned depth where nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.config.choices import ENCODER_AND_DECODER, NORMALISED
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.decoder import Dropout, DropoutDecoder, raw_value
from uncertainty_depth.network.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.network.learned_dropout import make_dropout
from uncertainty_depth.network.normalised_convolution import Confident, NormalisedPyramid
from uncertainty_depth.network.sparse_fill import fill, log_position, sparse_channel
from uncertainty_depth.network.unet import WIDTHS, UNet

START_WEIGHT = 0.1


class SparseDepth(nn.Module):
    """In place of an encoder: takes the sparse depth, and leaves the image."""

    def forward(self, image: Tensor) -> tuple[Tensor]:
        """Return (B, 1, h, w) metres of (B, 3 or 4, h, w), 0 where unknown."""
        return (sparse_channel(image),)


class Trunk(NamedTuple):
    """Sparse depth, (B, 1, h, w) metres, and the first U-Net's maps before its dropout."""

    sparse_m: Tensor
    scales: list[Tensor]


class NormalisedDecoder(DropoutDecoder):
    """Sparse depth to dense metres, and the raw scale where there is a head.

    Args:
        depth_range: min and max depth, metres.
        dropouts: at the coarsest scale of each U-Net.
        has_head: whether there is the second U-Net.
    """

    def __init__(
        self, depth_range: Sequence[float], dropouts: Sequence[nn.Module], has_head: bool
    ) -> None:
        super().__init__()
        self.low, self.high = depth_range
        self.dropouts = nn.ModuleList(dropouts)
        self.trust = UNet()
        self.spread = NormalisedPyramid()
        self.noise = UNet() if has_head else None
        self.log_unknown = nn.Parameter(torch.zeros(()))

    def trunk(self, features: tuple[Tensor]) -> Trunk:
        """See `DropoutDecoder`."""
        sparse_m = features[0]
        position = log_position(sparse_m.float(), self.low, self.high)
        return Trunk(sparse_m, self.trust.trunk(position.to(self.trust.final.weight.dtype)))

    def branches(self, trunk: Trunk, dropouts: Sequence[Dropout]) -> Tensor:
        """Return (B, 1 or 2, h, w): depth in metres, and the raw scale of its error."""
        sparse_m = trunk.sparse_m.float()
        trust = functional.softplus(self.trust.branches(trunk.scales, dropouts[0]).float())
        dense = self.spread(Confident(sparse_m, trust * (sparse_m > 0)))
        depth_m = torch.where(dense.confidence > 0, dense.values, self._unreached(sparse_m))
        if self.noise is None:
            return depth_m
        scales = self.noise.trunk(dense.confidence.to(trunk.scales[0].dtype))
        return torch.cat([depth_m, self.noise.branches(scales, dropouts[1]).float()], dim=1)

    def _unreached(self, sparse_m: Tensor) -> Tensor:
        """Return depth for where no confidence arrives."""
        filled = fill(sparse_m)
        return torch.where(filled > 0, filled, self.log_unknown.float().exp())

    def layers_after_dropouts(self) -> list[Any]:
        """See `DropoutDecoder`."""
        nets = [self.trust] if self.noise is None else [self.trust, self.noise]
        return [net.after_dropout[0] for net in nets]


class NormalisedNetwork(DepthNetwork):
    """Sparse depth to dense depth and scale; the image is not looked at.

    Raises:
        ConfigError: a value of the config is out of range, or there is no sparse depth.
    """

    architecture = "normalised_convolutions"
    decoder: NormalisedDecoder

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        if not config.sparse_input:
            raise ConfigError(
                f"backbone {NORMALISED!r} completes sparse depth and looks at no image, but "
                "sparse_input is empty; expected 'lidar', or 'random:N'"
            )
        if config.dropout_places == ENCODER_AND_DECODER:
            raise ConfigError(
                f"dropout_places is {config.dropout_places!r}, but {NORMALISED!r} has no encoder; "
                "expected 'decoder'"
            )
        has_head = config.head != "none"
        dropouts = [
            make_dropout(config.dropout_type, WIDTHS[-1], config.dropout)
            for _ in range(2 if has_head else 1)
        ]
        self.encoder = SparseDepth()
        self.decoder = NormalisedDecoder(config.depth_range, dropouts, has_head)

    @property
    def backbone_config(self) -> dict[str, Any]:
        """See `DepthNetwork`: there is no backbone."""
        return {}

    @property
    def foldable(self) -> list[nn.Module]:
        """See `DepthNetwork`."""
        return [self.decoder]

    def depth_of(self, raw: Tensor) -> Tensor:
        """Return the decoder's metres, inside the depth range."""
        return raw.clamp(*self.config.depth_range)

    @torch.no_grad()
    def start_from_constant(self, depth_m: float, relative_error: float) -> None:
        """See `DepthNetwork`; depth is constant where nothing is known."""
        self.decoder.log_unknown.fill_(depth_m).log_()
        if self.decoder.noise is not None:
            weight, bias = self.decoder.noise.final.parameters()
            weight.mul_(START_WEIGHT)
            bias.fill_(raw_value(relative_error, *RELATIVE_SCALE))
