# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The hourglass network of Moukari et al. 2019, with dropout in its decoder or in both halves.

A pretrained encoder, and the up-projection decoder of Laina et al. 2016.

Dropout in both halves: Gustafsson et al. 2020, section 4.2, after Kendall et al. 2017: dropout
acts "after the three last encoder blocks and the four first decoder blocks". Samples of MC dropout
differ from the second stage of the encoder on, so that stage and all that follow it belong to the
decoder here, of which every sample has a pass of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.config.choices import ENCODER_AND_DECODER
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.backbone import backbone_mapping, make_backbone
from uncertainty_depth.network.decoder import (
    Decoder,
    Dropout,
    decoder_widths,
    geometric,
    raw_value,
)
from uncertainty_depth.network.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.network.encoder import Encoder, TransformersModel
from uncertainty_depth.network.learned_dropout import make_dropout
from uncertainty_depth.network.resnet import Maps
from uncertainty_depth.network.sparse import ResidualDecoder, SparseEncoder

LATE_STAGES = 3
"""Stages of the encoder with dropout: all but the first."""


class FirstStage(nn.Module):
    """The stem and the first stage of a ResNet, in place of the whole of it."""

    def __init__(self, backbone: TransformersModel) -> None:
        super().__init__()
        self.config = backbone.config
        self.embedder: TransformersModel = backbone.embedder
        self.stage: TransformersModel = backbone.encoder.stages[0]

    def forward(self, pixels: Tensor) -> Maps:
        """Return the map of the first stage, (B, C, h/4, w/4)."""
        return Maps((self.stage(self.embedder(pixels)),))


def take_late_stages(encoder: Encoder) -> list[TransformersModel]:
    """Return the last stages of a ResNet encoder, which keeps its stem and its first stage.

    Raises:
        ConfigError: the encoder is not a ResNet.
    """
    backbone = encoder.backbone
    if backbone.config.model_type != "resnet":
        raise ConfigError(
            "dropout_places is 'encoder_and_decoder', which needs a ResNet as its encoder, and "
            f"the backbone is a {backbone.config.model_type!r} model; expected 'decoder'"
        )
    encoder.backbone = FirstStage(backbone)
    return list(backbone.encoder.stages[1:])


class DeepDropoutDecoder(Decoder):
    """The last stages of an encoder, and the up-projections, with dropout after each of both.

    Args:
        stages: of the encoder, the second to the last.
        options: as of `Decoder`; the dropouts of the stages come first.
    """

    def __init__(self, stages: Sequence[TransformersModel], *options: Any) -> None:
        super().__init__(*options)
        self.stages = nn.ModuleList(stages)

    def trunk(self, features: Sequence[Tensor]) -> Any:
        """Return the map of the encoder's first stage: the first dropout follows the second."""
        return features[0]

    def branches(self, trunk: Any, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        maps = [trunk]
        for stage, dropout in zip(self.stages, dropouts[:LATE_STAGES], strict=True):
            maps.append(dropout(stage(maps[-1])))
        decoded = super().trunk(maps)
        x = dropouts[LATE_STAGES](decoded.first)
        later = dropouts[LATE_STAGES + 1 :]
        for up, skip, dropout in zip(self.ups[1:], (*decoded.skips, None), later, strict=True):
            x = dropout(up(x, skip))
        return self.final(x)

    def layers_after_dropouts(self) -> list[Any]:
        """See `DropoutDecoder`."""
        later: list[TransformersModel] = list(self.stages)[1:]
        stages = [stage.layers[0].layer[0].convolution for stage in later]
        return [*stages, self.bridge[0], *[up.unpool for up in self.ups[1:]], self.final]


START_WEIGHT = 0.1


class Hourglass(DepthNetwork):
    """Any backbone and four up-projections; depth is bounded by the depth range.

    Args:
        config: of the network.
        backbone: replaces the one that `config.backbone` names; a model folder has its own.

    Raises:
        ConfigError: a value of the config is out of range.
        ModelError: the backbone cannot be made.
    """

    architecture = "hourglass"
    encoder: Encoder
    decoder: Decoder | ResidualDecoder

    def __init__(self, config: NetworkConfig, backbone: TransformersModel | None = None) -> None:
        super().__init__(config)
        backbone = make_backbone(config.backbone) if backbone is None else backbone
        if config.sparse_input:
            self.encoder = SparseEncoder(backbone, config.depth_range, config.sparse_residual)
        else:
            self.encoder = Encoder(backbone)
        decoder = _make_decoder(self.encoder, config)
        is_residual = bool(config.sparse_input) and config.sparse_residual
        self.decoder = ResidualDecoder(decoder) if is_residual else decoder
        low, high = config.depth_range
        self.depth_of = partial(geometric, low=low, high=high)

    @property
    def backbone_config(self) -> dict[str, Any]:
        """See `DepthNetwork`."""
        return backbone_mapping(self.encoder.backbone)

    @property
    def foldable(self) -> list[nn.Module]:
        """See `DepthNetwork`."""
        if self.encoder.backbone.config.model_type == "resnet":
            return [self.decoder, self.encoder]
        return [self.decoder]

    @torch.no_grad()
    def start_from_constant(self, depth_m: float, relative_error: float) -> None:
        """See `DepthNetwork`: set by the last layer."""
        raw_depth = raw_value(depth_m, *self.config.depth_range)
        if isinstance(self.decoder, ResidualDecoder):  # it begins with the interpolated depth
            raw_depth = 0.0
        raw_scale = raw_value(relative_error, *RELATIVE_SCALE)
        weight, bias = self.decoder.final.parameters()
        weight.mul_(START_WEIGHT)
        bias.copy_(torch.tensor([raw_depth, raw_scale][: len(bias)]))


def _make_decoder(encoder: Encoder, config: NetworkConfig) -> Decoder:
    """Return the decoder; with dropout in the encoder it takes the stages that follow one."""
    channels = list(encoder.backbone.channels)
    is_deep = config.dropout_places == ENCODER_AND_DECODER
    widths = decoder_widths(config.decoder_width)
    dropped = [*channels[1:], *widths] if is_deep else widths[:3]
    options = (
        channels,
        config.decoder_width,
        [make_dropout(config.dropout_type, features, config.dropout) for features in dropped],
        config.skip_connections,
        1 if config.head == "none" else 2,
        config.last_activation,
    )
    if is_deep:
        return DeepDropoutDecoder(take_late_stages(encoder), *options)
    return Decoder(*options)
