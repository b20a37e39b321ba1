# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A pretrained depth model of Hugging Face in a model folder's place."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from pathlib import Path

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.options import MAX_DEPTH_M, from_mapping
from uncertainty_depth.depth.model_folder.model import ModelFolder
from uncertainty_depth.depth.networks.backbone import config_of, make_backbone, own_options
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.families import (
    FAMILIES,
    MIN_DEPTH_M,
    is_depth_model,
    metric_range,
)
from uncertainty_depth.depth.networks.hourglass import make_network
from uncertainty_depth.depth.networks.pretrained import PretrainedDepth
from uncertainty_depth.depth.networks.pretrained_heads import Unaligned

logger = logging.getLogger(__name__)

MEMBER = "pretrained"
"""The one member of a depth model that was wrapped."""
RELATIVE_RANGE = (MIN_DEPTH_M, MAX_DEPTH_M)
"""Range for inverse depth without a unit: only 0 is cut off."""


@dataclass(frozen=True)
class PretrainedModel(ModelFolder):
    """What `wrap` would write of a depth model, in memory; its weights are read by `load`."""

    @property
    def name(self) -> str:
        """The hub id, or the folder's name."""
        return self.path.resolve().name if self.path.is_dir() else str(self.path)

    def load(self, member: str) -> DepthNetwork:
        """See `ModelFolder`; there is one member."""
        network = make_network(self.network, make_backbone(str(self.path)))
        size = "{} x {}".format(*self.network.input_size)
        if self.is_relative:
            assert isinstance(network, PretrainedDepth)
            network.decoder.units = Unaligned()
            logger.info(
                "%s is wrapped in memory: inverse depth without a unit at %s", self.name, size
            )
        else:
            logger.info(
                "%s is wrapped in memory: depth from %g to %g m at %s, sigma uncalibrated; "
                "`uncertainty-depth wrap %s --output MODEL` makes a folder to calibrate",
                self.name,
                *self.network.depth_range,
                size,
                self.path,
            )
        return network.eval()


def pretrained_model(path: Path, relative: bool) -> PretrainedModel:
    """Return a Hugging Face depth model as `wrap` would write it with its defaults.

    A hub id is looked up in the local cache first. `relative` takes a model that gives inverse
    depth up to scale and shift too.

    Raises:
        ModelError: the model is unknown, not a depth model, or gives no metres.
    """
    name = str(path)
    config = config_of(name)
    if not is_depth_model(config):
        raise ModelError(
            f"{name} is a {config.model_type!r} model; expected a depth model of "
            f"{', '.join(FAMILIES)}, or train --backbone {name}"
        )
    is_relative = metric_range(config) is None
    if is_relative and not relative:
        raise ModelError(
            f"{name} does not give depth in metres; expected a metric depth model, "
            "--measurements, which give it metres, evaluate, which aligns it to the ground truth, "
            f"or train --backbone {name}"
        )
    names = {field.name for field in fields(NetworkConfig)}
    own = {option: value for option, value in own_options(name).items() if option in names}
    if is_relative:
        own["depth_range"] = RELATIVE_RANGE
    network = from_mapping(NetworkConfig, {**own, "backbone": name, "head": "none"})
    return PretrainedModel(
        path=path,
        network=network,
        backbone={},
        method=default_method(network),
        members=(MEMBER,),
        shared_encoder=False,
        training=training_record(),
        architecture=PretrainedDepth.architecture,
        is_relative=is_relative,
    )


def default_method(config: NetworkConfig) -> str:
    """Return the method that predicts by default without training."""
    return "mc_dropout" if config.dropout else "deterministic"


def training_record() -> dict[str, str]:
    """Return what a report says that the model was trained on."""
    return {"source": "none: wrapped as it is"}
