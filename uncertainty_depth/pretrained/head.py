# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The base class of the heads of pretrained depth models, with dropout between their stages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.decoder import Dropout, DropoutDecoder
from uncertainty_depth.network.encoder import resize_maps
from uncertainty_depth.network.learned_dropout import make_dropout
from uncertainty_depth.pretrained.output_scaling import Units

SCALE_WIDTH = 32


class Features(NamedTuple):
    """What the encoder returns.

    Attributes:
        states: shallowest first, (B, C, h, w) maps, or (B, 1 + h w, C) tokens, the class token
            first; DepthPro's last is the factor of its inverse depth, the last two of Prompt Depth
            Anything are its prompt and the prompt's range and min.
        grid: rows and columns of patches.
    """

    states: tuple[Tensor, ...]
    grid: tuple[int, int]


class HeadTrunk(NamedTuple):
    """What the head computes before its first dropout.

    Attributes:
        first: (B, C, h, w), after the first stage.
        skips: the encoder's input to each further stage.
        deepest: the input of the first stage.
        grid: rows and columns of patches.
        factor: (B, 1, 1), of each image's output, where the encoder gives one; (B, 2, 1) factor
            and offset of a prompted model.
    """

    first: Tensor
    skips: tuple[Tensor, ...]
    deepest: Tensor
    grid: tuple[int, int]
    factor: Tensor | None = None


class PretrainedHead(DropoutDecoder):
    """Everything of a depth model that is not its encoder.

    There is a dropout between any two stages of the fusion, as between the up-projections of the
    hourglass. For a likelihood a second output, the scale of the error, reads the last stage.

    Args:
        channels: of each stage's output.
        stages: number of stages of the fusion.
        units: turns the model's output into metres.
        config: of the network.
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
        """See `DropoutDecoder`."""

    @abstractmethod
    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """Return the output of a stage after the first, of this height and width."""

    @abstractmethod
    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """Return the model's output, (B, h, w), of the results of all stages."""

    def branches(self, trunk: HeadTrunk, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        sizes = [skip.shape[-2:] for skip in trunk.skips[1:]]
        last_size = doubled(trunk.skips[-1].shape[-2:])
        states = []
        x = trunk.first
        stages = zip(trunk.skips, dropouts, [*sizes, last_size], strict=True)
        for number, (skip, dropout, size) in enumerate(stages, 1):
            states.append(dropout(x))
            x = self.stage(number, states[-1], skip, size)
        depth = self.depth([*states, x], trunk)[:, None]
        if self.scale is None:
            return depth
        return torch.cat([depth, resize_maps(self.scale(x), depth.shape[-2:])], dim=1)


def doubled(size: Sequence[int]) -> tuple[int, int]:
    """Return twice the height and width."""
    return 2 * size[0], 2 * size[1]


def _scale_head(channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, SCALE_WIDTH, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(SCALE_WIDTH, 1, 3, padding=1),
    )
