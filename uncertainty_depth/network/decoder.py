"""The decoder of the hourglass: four up-projections (Laina et al. 2016, fig. 2 and 3) and a final convolution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.network.learned_dropout import divergence

Dropout = Callable[[Tensor], Tensor]
LAST: dict[str, nn.Module] = {"relu": nn.ReLU(), "leaky_relu": nn.LeakyReLU(0.1)}
"""The last activation. With ReLU, pixels at which all units of the few that are left are off get the final bias as their depth, the same in every
member and pass, with no spread and no gradient to leave that state."""


class UpProjection(nn.Module):
    """Twice the size: unpool, 5x5, ReLU, 3x3 on one branch, unpool, 5x5 on the other; their sum, ReLU (Laina et al. 2016, fig. 2c).

    Unpooling with zeros and then convolving is a transposed convolution of stride 2; both branches read the same map, so one does for both.
    This is the paper's fast up-projection: no product with a zero is ever computed.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.unpool = nn.ConvTranspose2d(
            in_channels, 2 * out_channels, 5, stride=2, padding=2, output_padding=1, bias=False
        )
        self.unpool_norm = nn.BatchNorm2d(2 * out_channels)
        self.conv = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, h, w) to (B, out_channels, 2h, 2w), before the last ReLU so that a skip connection can be added."""
        branch, projection = self.unpool_norm(self.unpool(x)).chunk(2, dim=1)
        return self.norm(self.conv(functional.relu(branch))) + projection


class Trunk(NamedTuple):
    """What the decoder computes before its first dropout: the same for every sample of mc_dropout."""

    first: Tensor  # (B, width, h, w), after the first up-projection
    skips: tuple[Tensor | None, ...]  # for the second and third up-projection


def decoder_widths(width: int) -> list[int]:
    """Channels after each up-projection."""
    return [width, width // 2, width // 4, width // 8]


class Decoder(nn.Module):
    """Feature maps to `outputs` maps at 16 times the size of the deepest.

    Laina et al. halve the encoder's channels by a 1x1 convolution first; so does this. A skip connection is a 1x1 convolution of the encoder's
    map, resized where its scale differs (a ViT's maps all have one scale), added inside the up-projection, so that dropout acts on it too.
    """

    def __init__(
        self,
        channels: Sequence[int],
        width: int,
        dropouts: Sequence[nn.Module],
        skip_connections: bool,
        outputs: int,
        last: str = "leaky_relu",
    ) -> None:
        super().__init__()
        widths = decoder_widths(width)
        inputs = [max(channels[-1] // 2, 1), *widths[:-1]]
        self.bridge = nn.Sequential(
            nn.Conv2d(channels[-1], inputs[0], 1, bias=False), nn.BatchNorm2d(inputs[0])
        )
        self.ups = nn.ModuleList(UpProjection(a, b) for a, b in zip(inputs, widths, strict=True))
        self.dropouts = nn.ModuleList(dropouts)
        finer = list(channels[-2::-1]) if skip_connections else []
        self.skips = nn.ModuleList(
            nn.Conv2d(a, b, 1) for a, b in zip(finer, widths[:3], strict=False)
        )
        self.last = LAST[last]
        self.final = nn.Conv2d(widths[3], outputs, 3, padding=1)

    def trunk(self, features: Sequence[Tensor]) -> Trunk:
        """Everything before the first dropout, from feature maps with the finest first."""
        skips = [
            skip(feature) for skip, feature in zip(self.skips, features[-2::-1], strict=False)
        ]
        first, second, third = (skips + [None] * 3)[:3]
        return Trunk(_join(self.ups[0](self.bridge(features[-1])), first), (second, third))

    def branches(self, trunk: Trunk, dropouts: Sequence[Dropout]) -> Tensor:
        """Everything from the first dropout on. Dropouts may return more samples than they are given: the rest broadcasts."""
        x = dropouts[0](trunk.first)
        for up, skip, dropout in zip(self.ups[1:3], trunk.skips, dropouts[1:], strict=True):
            x = dropout(_join(up(x), skip))
        return self.final(self.last(self.ups[3](x)))

    def divergence(self) -> Tensor | float:
        """KL divergence of the dropouts, with the weights that their units enter, to their priors; 0 where no rate is learned."""
        return sum(
            divergence(layer, up.unpool)
            for layer, up in zip(self.dropouts, self.ups[1:], strict=True)
        )

    def forward(self, features: Sequence[Tensor]) -> Tensor:
        """(B, outputs, 16h, 16w) raw values."""
        return self.branches(self.trunk(features), list(self.dropouts))


def _join(x: Tensor, skip: Tensor | None) -> Tensor:
    if skip is None:
        return functional.relu(x)
    if skip.shape[-2:] != x.shape[-2:]:
        skip = functional.interpolate(
            skip, size=x.shape[-2:], mode="bilinear", align_corners=False
        )
    return functional.relu(x + skip)


def geometric(z: Tensor, low: float, high: float) -> Tensor:
    """From low to high in equal ratios: low * (high / low) ** sigmoid(z). Smooth, never clipped, the geometric mean at z = 0."""
    return low * torch.exp(torch.sigmoid(z) * math.log(high / low))


def raw_value(value: float, low: float, high: float) -> float:
    """The raw output for a value, the inverse of `geometric`; at most 0.95 of the way to either end of the range."""
    share = math.log(max(value, low) / low) / math.log(high / low)
    share = min(max(share, 0.05), 0.95)
    return math.log(share / (1 - share))
