"""What a pretrained depth model wants of the options where the user says nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.backbone import config_of
from uncertainty_depth.pretrained.families import (
    image_size,
    is_depth_model,
    metric_range,
    patch_size,
)
from uncertainty_depth.pretrained.preprocessing import input_size, read_preprocessing

LEARNING_RATE = 1e-4
"""A tenth of the hourglass's: the head has been trained already."""


def own_options(backbone: str) -> dict[str, Any]:
    """Defaults of the options that go with a depth model: its encoder stays as it is, and it sees and gives what it was trained for.

    Returns:
        Names of options with their values as plain values; none for a backbone that is no depth model.

    Raises:
        ModelError: there is no such backbone.
    """
    config = config_of(backbone)
    if not is_depth_model(config):
        return {}
    options = options_of_architecture(config.to_dict())
    options["input_size"] = input_size(
        read_preprocessing(backbone), image_size(config), patch_size(config)
    )
    if (metres := metric_range(config)) is not None:
        options["depth_range"] = metres
    return options


def options_of_architecture(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training options that go with a depth model of this config, as plain values."""
    options: dict[str, Any] = {"freeze_encoder": True, "learning_rate": LEARNING_RATE}
    if config.get("use_fov_model", False):
        # A zoomed image counts as nearer, but a narrower field of view leaves the depth as it is.
        options["augment"] = False
    return options


def own_options_of(
    network: NetworkConfig, training: TrainingConfig, given: Container[str]
) -> dict[str, Any]:
    """Defaults of the options that are not `given`: the depth model's own, or what those agree on that are to be members of multi_networks.

    Raises:
        ConfigError: the depth models contradict each other.
        ModelError: there is no such backbone.
    """
    if training.method != "multi_networks":
        return own_options(network.backbone)
    each = {backbone: own_options(backbone) for backbone in training.backbones}
    names = {name for options in each.values() for name in options} - {
        "freeze_encoder"
    }  # they have no encoder to share
    return {name: _agreed(name, each) for name in sorted(names) if name not in given}


def _agreed(name: str, each: Mapping[str, Mapping[str, Any]]) -> Any:
    values = {backbone: options[name] for backbone, options in each.items() if name in options}
    if len(set(values.values())) > 1:
        found = ", ".join(f"{value} of {backbone}" for backbone, value in values.items())
        raise ConfigError(
            f"{name} is not given, and the depth models of backbones have different ones: {found}; expected the one to use"
        )
    return next(iter(values.values()))
