# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write a pretrained depth model of Hugging Face to a model folder."""

from __future__ import annotations

from pathlib import Path

from uncertainty_depth.core.config.predictor import UNTRAINED_METHODS
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.depth.model_folder import writing
from uncertainty_depth.depth.model_folder.pretrained import MEMBER, default_method, training_record
from uncertainty_depth.depth.networks.architectures import make_network
from uncertainty_depth.depth.networks.backbone import make_backbone
from uncertainty_depth.depth.networks.families import metric_range


def wrap(output: Path, config: NetworkConfig, method: str = "") -> Path:
    """Write the depth model that `config.backbone` names to the new model folder `output`.

    An empty method means mc_dropout, or deterministic without dropout.

    Raises:
        ConfigError: an option needs training, or the method needs dropout.
        ModelError: the model is unknown or does not give metres, or `output` holds a model.
    """
    method = method or default_method(config)
    if config.head != "none":
        raise ConfigError(f"head is {config.head!r}, which needs training; expected 'none'")
    if method not in UNTRAINED_METHODS:
        raise ConfigError(
            f"method is {method!r}, which needs training; "
            f"expected one of {', '.join(UNTRAINED_METHODS)}"
        )
    if method == "mc_dropout" and not config.dropout:
        raise ConfigError(
            f"method is {method!r}, but dropout is 0; expected a rate above 0, or another method"
        )
    model = make_backbone(config.backbone)
    if metric_range(model.config) is None:
        raise ModelError(
            f"backbone {config.backbone!r} does not give depth in metres; "
            "expected a metric depth model, or `uncertainty-depth train SOURCE --backbone "
            f"{config.backbone} --output MODEL`, which learns metres"
        )
    network = make_network(config, model)
    writing.create(output, network, training_record())
    writing.write_member(output, MEMBER, network)
    writing.set_members(output, [MEMBER], method)
    return output
