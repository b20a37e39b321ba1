# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The network classes, and which backbone needs which."""

from __future__ import annotations

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.backbone import make_backbone
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.encoder import TransformersModel
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.pretrained.families import is_depth_model
from uncertainty_depth.pretrained.network import PretrainedDepth

ARCHITECTURES = (Hourglass.architecture, PretrainedDepth.architecture)


def make_network(config: NetworkConfig, backbone: TransformersModel | None = None) -> DepthNetwork:
    """Return a network: a pretrained depth model by itself, any other backbone in an hourglass.

    Args:
        config: of the network.
        backbone: replaces the one that `config` names.

    Raises:
        ConfigError: a value of the config is out of range.
        ModelError: the backbone cannot be made.
    """
    backbone = make_backbone(config.backbone) if backbone is None else backbone
    if is_depth_model(backbone.config):
        if config.sparse_input:
            raise ConfigError(
                f"sparse_input is {config.sparse_input!r}, but a {backbone.config.model_type!r} "
                "depth model takes the image alone; expected a ResNet as the backbone"
            )
        return PretrainedDepth(config, backbone)
    return Hourglass(config, backbone)
