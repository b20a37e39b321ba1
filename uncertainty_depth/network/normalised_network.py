# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth completion without the image, by normalised convolutions: pNCNN.

Normalised convolutions: Knutsson and Westin 1993; as layers that pass confidence on, Eldesokey et
al. 2019, "Confidence propagation through CNNs for guided sparse depth regression". Every output is
a mean of the values around it, weighed by their confidence, so a value without confidence has no
influence, and a constant stays what it is. Hence no bias, which the published layers have.

pNCNN: Eldesokey et al. 2020, "Uncertainty-aware CNNs for depth completion: uncertainty from
beginning to end". A U-Net says how far each known pixel is to be trusted, normalised convolutions
spread these depths with their confidence, and a second U-Net makes the scale of the error of the
confidence that arrives. 0.67 million weights in all, of which the spreading has 468.

What differs: confidence is 0 where depth is unknown (there it is learned), convolutions have no
bias, the scale is a fraction of the depth, as of all networks here, and what no known depth
reaches is filled in by `sparse.fill`, or with a learned depth where nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.config.choices import ENCODER_AND_DECODER, NORMALISED
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.decoder import Dropout, DropoutDecoder, raw_value
from uncertainty_depth.network.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.network.encoder import resize_maps
from uncertainty_depth.network.learned_dropout import make_dropout
from uncertainty_depth.network.sparse import fill, log_position, sparse_channel

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


WIDTHS = (32, 32, 64, 64)
"""Channels of each scale, as of the two U-Nets of pNCNN (Eldesokey et al. 2020)."""


class UNet(nn.Module):
    """Four scales; dropout acts at the coarsest, between its two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        downs = [nn.Sequential(*_block(1, WIDTHS[0]), *_block(WIDTHS[0], WIDTHS[0]))]
        for fine, coarse in pairwise(WIDTHS[:-1]):
            downs.append(nn.Sequential(*_block(fine, coarse), *_block(coarse, coarse)))
        self.downs = nn.ModuleList(downs)
        self.deepest = _block(WIDTHS[-2], WIDTHS[-1])
        self.after_dropout = _block(WIDTHS[-1], WIDTHS[-1])
        ups = []
        for fine, coarse in pairwise(WIDTHS):
            ups.append(nn.Sequential(*_block(fine + coarse, fine), *_block(fine, fine)))
        self.ups = nn.ModuleList(reversed(ups))
        self.final = nn.Conv2d(WIDTHS[0], 1, 1)

    def trunk(self, maps: Tensor) -> list[Tensor]:
        """Return the maps of each scale before the dropout, the coarsest first."""
        scales = [self.downs[0](maps)]
        for down in self.downs[1:]:
            scales.append(down(functional.max_pool2d(scales[-1], 2)))
        scales.append(self.deepest(functional.max_pool2d(scales[-1], 2)))
        return scales[::-1]

    def branches(self, scales: list[Tensor], dropout: Dropout) -> Tensor:
        """Return (M, 1, h, w), for as many samples as the dropout returns."""
        maps = self.after_dropout(dropout(scales[0]))
        for up, scale in zip(self.ups, scales[1:], strict=True):
            wide = resize_maps(maps, scale.shape[-2:])
            maps = up(torch.cat([scale.expand(wide.shape[0], -1, -1, -1), wide], dim=1))
        return self.final(maps)


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


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
