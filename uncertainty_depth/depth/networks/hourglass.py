# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The hourglass network of Moukari et al. 2019.

A pretrained encoder, and the up-projection decoder of Laina et al. 2016, with dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.networks.backbone import (
    backbone_from_mapping,
    backbone_mapping,
    make_backbone,
)
from uncertainty_depth.depth.networks.decoder import Decoder, geometric, raw_value
from uncertainty_depth.depth.networks.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.depth.networks.encoder import Encoder, TransformersModel
from uncertainty_depth.depth.networks.families import is_depth_model

START_WEIGHT = 0.1
DROPOUTS = 3
"""After all up-projections but the last."""


class Hourglass(DepthNetwork):
    """Any backbone and four up-projections, in the depth range; raises as `make_network`."""

    architecture = "hourglass"
    encoder: Encoder
    decoder: Decoder

    def __init__(self, config: NetworkConfig, backbone: TransformersModel | None = None) -> None:
        super().__init__(config)
        backbone = make_backbone(config.backbone) if backbone is None else backbone
        self.encoder = self.make_encoder(backbone)
        self.decoder = self.make_decoder()
        low, high = config.depth_range
        self.depth_of = partial(geometric, low=low, high=high)

    def make_encoder(self, backbone: TransformersModel) -> Encoder:
        """Return the encoder of a backbone."""
        return Encoder(backbone)

    def make_decoder(self) -> Decoder:
        """Return the decoder for the encoder, with dropout after three up-projections."""
        config = self.config
        return Decoder(
            list(self.encoder.backbone.channels),
            config.decoder_width,
            [nn.Dropout(config.dropout) for _ in range(DROPOUTS)],
            1 if config.head == "none" else 2,
            config.last_activation,
        )

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
        """See `DepthNetwork`: this sets the last layer."""
        raw_depth = raw_value(depth_m, *self.config.depth_range)
        raw_scale = raw_value(relative_error, *RELATIVE_SCALE)
        weight, bias = self.decoder.final.parameters()
        weight.mul_(START_WEIGHT)
        bias.copy_(torch.tensor([raw_depth, raw_scale][: len(bias)]))


PRETRAINED = "pretrained"
ARCHITECTURES = (Hourglass.architecture, PRETRAINED)
"""What `model.json` may name."""
NETWORKS: dict[str, Callable[[NetworkConfig], DepthNetwork]] = {}
"""Networks that bring their own encoder, by the name that stands in place of a backbone's.

The package has none; a project that has one adds it here, as the papers' experiments do.
"""


def make_network(config: NetworkConfig, backbone: TransformersModel | None = None) -> DepthNetwork:
    """Return a network: a pretrained depth model itself, or any other backbone in an hourglass.

    `backbone` replaces the one that `config` names.

    Raises:
        ConfigError: a value in the config is out of range.
        ModelError: the backbone cannot be made.
    """
    if config.backbone in NETWORKS:
        return NETWORKS[config.backbone](config)
    backbone = make_backbone(config.backbone) if backbone is None else backbone
    if is_depth_model(backbone.config):
        from uncertainty_depth.depth.networks.pretrained import PretrainedDepth

        return PretrainedDepth(config, backbone)
    return Hourglass(config, backbone)


def network_from_mapping(config: NetworkConfig, backbone: Mapping[str, Any]) -> DepthNetwork:
    """Return a network with random weights, from both configs; raise as `make_network`."""
    if config.backbone in NETWORKS:
        return make_network(config)
    return make_network(config, backbone_from_mapping(dict(backbone)))
