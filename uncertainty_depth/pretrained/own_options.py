# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Option defaults that follow from a pretrained depth model."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.backbone import config_of
from uncertainty_depth.pretrained.families import (
    PROMPTED,
    image_size,
    is_depth_model,
    metric_range,
    patch_size,
)
from uncertainty_depth.pretrained.preprocessing import input_size, read_preprocessing

LEARNING_RATE = 1e-4
"""A tenth of the hourglass's: the head has been trained already."""


def own_options(backbone: str) -> dict[str, Any]:
    """Return the option defaults that follow from a depth model.

    The encoder is frozen; input size and depth range are the model's training values.

    Returns:
        Option names with plain values; empty for a backbone that is not a depth model.

    Raises:
        ModelError: the backbone is unknown.
    """
    config = config_of(backbone)
    if not is_depth_model(config):
        return {}
    options = options_of_architecture(config.to_dict())
    preprocessing = read_preprocessing(backbone)
    options["input_size"] = input_size(preprocessing, image_size(config), patch_size(config))
    if config.model_type == PROMPTED:
        options["sparse_input"] = "lidar"
    depth_range = metric_range(config)
    if depth_range is not None:
        options["depth_range"] = depth_range
    return options


def options_of_architecture(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training options that suit this config's depth model, as plain values."""
    options: dict[str, Any] = {"freeze_encoder": True, "learning_rate": LEARNING_RATE}
    if config.get("use_fov_model", False):
        # A zoomed image counts as nearer, but a narrower field of view does not change the depth.
        options["augment"] = False
    return options


def own_options_of(
    network: NetworkConfig, training: TrainingConfig, user_options: Container[str]
) -> dict[str, Any]:
    """Return defaults for the options not in `user_options`.

    They come from the depth model, or, for multi_networks, are shared by its depth models.

    Raises:
        ConfigError: the depth models contradict each other.
        ModelError: the backbone is unknown.
    """
    if training.method != "multi_networks":
        return own_options(network.backbone)
    options = {backbone: own_options(backbone) for backbone in training.backbones}
    names: set[str] = set()
    names.update(*options.values())
    names.discard("freeze_encoder")  # the members share no encoder
    return {
        name: _common_value(name, options) for name in sorted(names) if name not in user_options
    }


def _common_value(name: str, options: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return an option's value, which all backbones that set it must share."""
    values = {backbone: own[name] for backbone, own in options.items() if name in own}
    if len(set(values.values())) > 1:
        listed = ", ".join(f"{value} of {backbone}" for backbone, value in values.items())
        raise ConfigError(
            f"{name} is not given, and the depth models of backbones have different ones: "
            f"{listed}; expected the one to use"
        )
    return next(iter(values.values()))
