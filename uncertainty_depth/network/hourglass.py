# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The hourglass network of Moukari et al. 2019.

A pretrained encoder, and the up-projection decoder of Laina et al. 2016.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.config.choices import ENCODER_AND_DECODER
from uncertainty_depth.network.backbone import backbone_mapping, make_backbone
from uncertainty_depth.network.decoder import Decoder, decoder_widths, geometric, raw_value
from uncertainty_depth.network.deep_dropout import DeepDropoutDecoder, take_late_stages
from uncertainty_depth.network.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.network.encoder import Encoder, TransformersModel
from uncertainty_depth.network.learned_dropout import make_dropout
from uncertainty_depth.network.residual_decoder import ResidualDecoder
from uncertainty_depth.network.sparse_encoder import SparseEncoder

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
