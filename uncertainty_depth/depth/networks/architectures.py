# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The network classes, and which backbone needs which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.networks.backbone import backbone_from_mapping, make_backbone
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.encoder import TransformersModel
from uncertainty_depth.depth.networks.families import is_depth_model
from uncertainty_depth.depth.networks.hourglass import Hourglass

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
        if config.sparse_input:
            raise ConfigError(
                f"sparse_input is {config.sparse_input!r}, but a {backbone.config.model_type!r} "
                "depth model takes the image alone; expected a ResNet as the backbone, or "
                "--measurements, which serve any model"
            )
        from uncertainty_depth.depth.networks.pretrained import (
            PretrainedDepth,
        )

        return PretrainedDepth(config, backbone)
    return Hourglass(config, backbone)


def network_from_mapping(config: NetworkConfig, backbone: Mapping[str, Any]) -> DepthNetwork:
    """Return a network with random weights, from its config and its backbone's config.

    Raises `ConfigError` or `ModelError` as `make_network`.
    """
    if config.backbone in NETWORKS:
        return make_network(config)
    return make_network(config, backbone_from_mapping(dict(backbone)))
