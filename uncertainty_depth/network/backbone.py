# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Backbones of transformers: an encoder or a whole depth model.

Made from a preset, a folder, a hub id, or the config in a model folder.
"""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

from transformers import (
    MODEL_FOR_BACKBONE_MAPPING,
    MODEL_FOR_DEPTH_ESTIMATION_MAPPING,
    AutoBackbone,
    AutoConfig,
    AutoModelForDepthEstimation,
    PretrainedConfig,
    ResNetConfig,
)

from uncertainty_depth.config.choices import NORMALISED
from uncertainty_depth.errors import ModelError
from uncertainty_depth.network.encoder import TransformersModel
from uncertainty_depth.pretrained.families import FAMILIES, is_depth_model
from uncertainty_depth.pretrained.preprocessing import normalisation, read_preprocessing

logger = logging.getLogger(__name__)

FEATURE_MAPS = 4
HUB_TIMEOUT_S = 10.0
PICKLED = (".bin", ".pt", ".pth")
NOT_ARCHITECTURE = {
    "_name_or_path",
    "transformers_version",
    "architectures",
    "dtype",
    "torch_dtype",
}
WIDE = (256, 512, 1024, 2048)
NARROW = (64, 128, 256, 512)
SLIM: dict[str, Any] = {
    "layer_type": "basic",
    "embedding_size": 16,
    "hidden_sizes": (16, 32, 64, 128),
}
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {**SLIM, "depths": (1, 1, 1, 1)},
    "tiny18": {**SLIM, "depths": (2, 2, 2, 2)},
    "tiny34": {**SLIM, "depths": (3, 4, 6, 3)},
    "resnet10": {"layer_type": "basic", "depths": (1, 1, 1, 1), "hidden_sizes": NARROW},
    "resnet18": {"layer_type": "basic", "depths": (2, 2, 2, 2), "hidden_sizes": NARROW},
    "resnet34": {"layer_type": "basic", "depths": (3, 4, 6, 3), "hidden_sizes": NARROW},
    "resnet50": {"layer_type": "bottleneck", "depths": (3, 4, 6, 3), "hidden_sizes": WIDE},
    "resnet101": {"layer_type": "bottleneck", "depths": (3, 4, 23, 3), "hidden_sizes": WIDE},
    "resnet152": {"layer_type": "bottleneck", "depths": (3, 8, 36, 3), "hidden_sizes": WIDE},
    "resnet200": {"layer_type": "bottleneck", "depths": (3, 24, 36, 3), "hidden_sizes": WIDE},
}


def make_backbone(name: str) -> TransformersModel:
    """Return the backbone or depth model called `name`.

    Args:
        name: a preset (random weights, nothing is looked up), a folder with a saved config and
            perhaps `.safetensors` weights, or a hub id.

    Returns:
        A transformers backbone: `(B, 3, h, w)` to up to four `.feature_maps`, finest first, with
        `.channels`. Or a model of `families`, with its normalisation in its config.

    Raises:
        ModelError: no such preset or folder, pickled weights, a model that is neither, or a hub
            that cannot be reached.
    """
    config = config_of(name)
    if name in PRESETS:
        return _from_config(config)
    if Path(name).is_dir() and _has_no_weights(Path(name)) and not is_depth_model(config):
        return _from_config(config)
    return _pretrained(name, config)


def config_of(name: str) -> PretrainedConfig:
    """Return the config of the backbone or depth model called `name`, without its weights.

    Raises:
        ModelError: as `make_backbone`.
    """
    if name in PRESETS:
        return ResNetConfig(**PRESETS[name])
    if Path(name).is_dir():
        return _read_config(name)
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return _config_from_hub(name)
    raise ModelError(
        f"no backbone {name!r}; expected one of {', '.join(PRESETS)}, a folder with a saved "
        f"backbone, {NORMALISED} with sparse input, or a hub id like owner/name"
    )


def backbone_from_mapping(values: dict[str, Any]) -> TransformersModel:
    """Return the backbone that `backbone_mapping` described, with random weights.

    Raises:
        ModelError: transformers knows no such model or refuses a value.
    """
    try:
        return _from_config(AutoConfig.for_model(**values))
    except ModelError:
        raise
    except Exception as error:  # transformers raises whatever the config class's validation raises
        raise ModelError(
            f"transformers cannot use the backbone config: {_first_line(error)}"
        ) from error


def backbone_mapping(backbone: TransformersModel) -> dict[str, Any]:
    """Return the backbone's config as plain values, sufficient to build it again."""
    return _architecture_in(backbone.config.to_dict())


def _architecture_in(values: dict[str, Any]) -> dict[str, Any]:
    """Return a config without the origin of the weights, also of a nested encoder config."""
    return {
        key: _architecture_in(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if key not in NOT_ARCHITECTURE
    }


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
    """Set the config's feature maps to those after each quarter of the stages.

    The four scales of a ResNet, or blocks 3, 6, 9 and 12 of a ViT of 12.
    """
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


def _config_from_hub(name: str) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    except Exception:  # not in the local cache
        _check_reachable(name)
        return _read_config(name)


def _check_reachable(name: str) -> None:
    """Raise `ModelError` if the hub does not answer one request in time.

    transformers itself retries for half a minute.
    """
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
    except Exception as error:
        raise ModelError(
            f"backbone {name!r} is neither a folder nor in the local cache, and the hub did not "
            f"give it: {type(error).__name__}, {_first_line(error)}"
        ) from error


def _read_config(name: str) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(name, trust_remote_code=False)
    except Exception as error:
        raise ModelError(
            f"backbone {name} has no readable config: {_first_line(error)}"
        ) from error


def _pretrained(name: str, config: PretrainedConfig) -> TransformersModel:
    """Load config and weights with the config's own class.

    AutoBackbone.from_pretrained asks the hub even for a local folder.
    """
    _check_is_backbone(config)
    if is_depth_model(config):
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
    _check_missing(name, config, len(report["missing_keys"]), len(backbone.state_dict()))
    if is_depth_model(config):
        mean, std = normalisation(read_preprocessing(name))
        backbone.config.image_mean = mean
        backbone.config.image_std = std
    return backbone.float()


def _check_missing(name: str, config: PretrainedConfig, missing: int, total: int) -> None:
    """Warn of tensors that the weights lack; raise `ModelError` where it is most of them."""
    if missing > total / 2:
        raise ModelError(
            f"the weights of backbone {name} hold {total - missing} of the {total} tensors that "
            f"a {config.model_type} encoder needs"
        )
    if missing:
        logger.warning(
            "backbone %s: %d of %d tensors are not in its weights and start as random values",
            name,
            missing,
            total,
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
