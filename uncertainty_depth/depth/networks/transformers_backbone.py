# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Backbones from transformers classes: a folder's, a hub id's, or a config's.

Importing them takes three seconds: `backbone.py` imports this file only when needed.
"""

from __future__ import annotations

import importlib.util
import logging
import math
from pathlib import Path
from typing import Any

from uncertainty_depth.core.errors import ModelError, missing

if importlib.util.find_spec("transformers") is None:
    raise ModelError(missing("transformers"))

# isort: split
from transformers import (
    MODEL_FOR_BACKBONE_MAPPING,
    MODEL_FOR_DEPTH_ESTIMATION_MAPPING,
    AutoBackbone,
    AutoConfig,
    AutoModelForDepthEstimation,
    PretrainedConfig,
)

from uncertainty_depth.depth.networks.encoder import TransformersModel
from uncertainty_depth.depth.networks.families import (
    FAMILIES,
    SETTINGS,
    is_depth_model,
    normalisation,
    read_preprocessing,
)

logger = logging.getLogger(__name__)

FEATURE_MAPS = 4
HUB_TIMEOUT_S = 10.0
MAX_REASON = 200  # characters: transformers lists every model that it knows
PICKLED = (".bin", ".pt", ".pth")


def pretrained_config(name: str) -> PretrainedConfig:
    """Return a folder's or hub id's config, from the local cache if it is there."""
    if not Path(name).is_dir():
        try:
            return AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
        except Exception:  # not in the local cache
            _check_reachable(name)
    try:
        return AutoConfig.from_pretrained(name, trust_remote_code=False)
    except Exception as error:
        raise ModelError(
            f"backbone {name} has no readable config: {_first_line(error)}"
        ) from error


def pretrained_backbone(name: str) -> TransformersModel:
    """Return a folder's or hub id's backbone or depth model, as `make_backbone` does.

    It is loaded with the config's own class: AutoBackbone asks the hub even for a local folder.
    """
    config = pretrained_config(name)
    is_depth = is_depth_model(config)
    if Path(name).is_dir() and _has_no_weights(Path(name)) and not is_depth:
        return _from_config(config)
    _check_is_backbone(config)
    if is_depth:
        model_class: TransformersModel = MODEL_FOR_DEPTH_ESTIMATION_MAPPING[type(config)]
    else:
        model_class = MODEL_FOR_BACKBONE_MAPPING[type(config)]
        config = _with_feature_maps(config)
    try:
        backbone, report = model_class.from_pretrained(
            name, config=config, use_safetensors=True, output_loading_info=True
        )
    except Exception as error:
        raise ModelError(
            f"the weights of backbone {name} cannot be read: {_first_line(error)}"
        ) from error
    lacking, total = len(report["missing_keys"]), len(backbone.state_dict())
    if lacking > total / 2:
        raise ModelError(
            f"the weights of backbone {name} hold {total - lacking} of the {total} tensors that "
            f"a {config.model_type} encoder needs"
        )
    if lacking:
        logger.warning(
            "backbone %s: %d of %d tensors are not in its weights and start as random values",
            name,
            lacking,
            total,
        )
    if is_depth:
        settings = read_preprocessing(name)
        if not settings:
            logger.warning(
                "%s has no readable %s: its images are normalised with ImageNet's mean and "
                "standard deviation",
                name,
                SETTINGS,
            )
        backbone.config.image_mean, backbone.config.image_std = normalisation(settings)
    return backbone.float()


def described_backbone(values: dict[str, Any]) -> TransformersModel:
    """Return a config's backbone, with random weights; raise `ModelError` if it has none."""
    try:
        return _from_config(AutoConfig.for_model(**values))
    except ModelError:
        raise
    except Exception as error:  # transformers raises whatever the config class's validation raises
        raise ModelError(
            f"transformers cannot use the backbone config: {_first_line(error)}"
        ) from error


def _from_config(config: PretrainedConfig) -> TransformersModel:
    _check_is_backbone(config)
    if is_depth_model(config):
        return AutoModelForDepthEstimation.from_config(config)
    return AutoBackbone.from_config(_with_feature_maps(config))


def _check_is_backbone(config: PretrainedConfig) -> None:
    if type(config) not in MODEL_FOR_BACKBONE_MAPPING and not is_depth_model(config):
        hybrid = " hybrid" if getattr(config, "is_hybrid", False) else ""
        raise ModelError(
            f"a {config.model_type!r}{hybrid} model cannot be the encoder; expected one that "
            f"transformers' AutoBackbone knows, or a depth model of {', '.join(FAMILIES)}"
        )


def _with_feature_maps(config: PretrainedConfig) -> PretrainedConfig:
    """Make the config return the maps after each quarter of the stages: a ResNet's four scales."""
    stages = config.stage_names[1:]
    quarters = range(1, FEATURE_MAPS + 1)
    numbers = {math.ceil(len(stages) * quarter / FEATURE_MAPS) for quarter in quarters}
    config.out_features = [stages[number - 1] for number in sorted(numbers)]
    return config


def _has_no_weights(folder: Path) -> bool:
    if any(folder.glob("*.safetensors")):
        return False
    pickled = [path.name for path in folder.iterdir() if path.suffix in PICKLED]
    if pickled:
        raise ModelError(
            f"backbone folder {folder} holds pickled weights ({min(pickled)}), which are never "
            "read; expected .safetensors"
        )
    return True


def _check_reachable(name: str) -> None:
    """Raise `ModelError` if the hub is silent; transformers itself retries for half a minute."""
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
    except Exception as error:
        raise ModelError(
            f"backbone {name!r} is neither a folder nor in the local cache, and the hub did not "
            f"give it: {type(error).__name__}, {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:MAX_REASON]
