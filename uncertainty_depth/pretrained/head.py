"""The head of a pretrained depth model, taken apart at the dropouts that are put between its stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.decoder import Dropout
from uncertainty_depth.network.learned_dropout import divergence, make_dropout
from uncertainty_depth.pretrained.output_scaling import Units

SCALE_WIDTH = 32


class Features(NamedTuple):
    """What the encoder gives."""

    states: tuple[
        Tensor, ...
    ]  # shallowest first: (B, C, h, w) maps, or (B, 1 + h w, C) tokens, the class token first; DepthPro has one more
    grid: tuple[int, int]  # rows and columns of patches


class HeadTrunk(NamedTuple):
    """What the head computes before its first dropout."""

    first: Tensor  # (B, C, h, w), after the first stage
    skips: tuple[Tensor, ...]  # what each further stage takes from the encoder
    deepest: Tensor  # what the first stage was made from
    grid: tuple[int, int]
    factor: Tensor | None = None  # (B, 1, 1), of each image's output, where the encoder gives one


class PretrainedHead(nn.Module, ABC):
    """Everything of a depth model that is not its encoder, and where a likelihood is asked for a second output that reads the last stage.

    Between any two stages of the fusion there is a dropout, as between the up-projections of the hourglass.
    """

    def __init__(self, channels: int, stages: int, units: Units, config: NetworkConfig) -> None:
        super().__init__()
        self.units = units
        self.dropouts = nn.ModuleList(
            make_dropout(config.dropout_type, channels, config.dropout) for _ in range(stages - 1)
        )
        self.scale = None if config.head == "none" else _scale_head(channels)

    @abstractmethod
    def trunk(self, features: Features) -> HeadTrunk:
        """Everything before the first dropout."""

    @abstractmethod
    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """A stage after the first, to a map of this height and width."""

    @abstractmethod
    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """(B, h, w): what the model makes of the results of all stages."""

    @abstractmethod
    def entered(self) -> Sequence[nn.Module]:
        """The convolution that the units of each dropout enter."""

    def branches(self, trunk: HeadTrunk, dropouts: Sequence[Dropout]) -> Tensor:
        """(B, outputs, h, w) raw values. Dropouts may return more samples than they are given: the rest broadcasts."""
        states = []
        x = trunk.first
        sizes = [
            *(skip.shape[-2:] for skip in trunk.skips[1:]),
            doubled(trunk.skips[-1].shape[-2:]),
        ]
        for number, (skip, dropout, size) in enumerate(
            zip(trunk.skips, dropouts, sizes, strict=True), 1
        ):
            states.append(dropout(x))
            x = self.stage(number, states[-1], skip, size)
        depth = self.depth([*states, x], trunk)[:, None]
        if self.scale is None:
            return depth
        return torch.cat([depth, resized(self.scale(x), depth.shape[-2:])], dim=1)

    def divergence(self) -> Tensor | float:
        """KL divergence of the dropouts, with the weights that their units enter, to their priors; 0 where no rate is learned."""
        return sum(
            divergence(layer, after)
            for layer, after in zip(self.dropouts, self.entered(), strict=True)
        )

    def forward(self, features: Features) -> Tensor:
        """(B, outputs, h, w) raw values."""
        return self.branches(self.trunk(features), list(self.dropouts))


def doubled(size: Sequence[int]) -> tuple[int, int]:
    """Twice the height and width."""
    return 2 * size[0], 2 * size[1]


def resized(maps: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """(B, C, h, w) at another height and width; bilinear."""
    if maps.shape[-2:] == tuple(size):
        return maps
    return functional.interpolate(
        maps, size=tuple(size), mode="bilinear", align_corners=align_corners
    )


def _scale_head(channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, SCALE_WIDTH, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(SCALE_WIDTH, 1, 3, padding=1),
    )
