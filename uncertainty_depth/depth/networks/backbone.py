# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Backbones: an encoder or a whole depth model.

They are made from a preset, a folder, a hub id, or a model folder's config. ResNet and MobileNetV2
are implemented here. All others are transformers classes; transformers is imported only for them.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.networks.encoder import TransformersModel
from uncertainty_depth.depth.networks.families import (
    image_size,
    input_size,
    is_depth_model,
    metric_range,
    options_of_architecture,
    patch_size,
    read_preprocessing,
)
from uncertainty_depth.depth.networks.mobilenet import MobileNet, MobileNetConfig
from uncertainty_depth.depth.networks.resnet import ResNet, ResNetConfig, read_config

NOT_ARCHITECTURE = {
    *("_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype")
}
NARROW = (64, 128, 256, 512)
SLIM: dict[str, Any] = {
    "layer_type": "basic",
    "embedding_size": 16,
    "hidden_sizes": (16, 32, 64, 128),
}
PRESETS: dict[str, ResNetConfig | MobileNetConfig] = {
    "tiny": ResNetConfig(**SLIM, depths=(1, 1, 1, 1)),
    "tiny18": ResNetConfig(**SLIM, depths=(2, 2, 2, 2)),
    "tiny34": ResNetConfig(**SLIM, depths=(3, 4, 6, 3)),
    "resnet10": ResNetConfig("basic", depths=(1, 1, 1, 1), hidden_sizes=NARROW),
    "resnet18": ResNetConfig("basic", depths=(2, 2, 2, 2), hidden_sizes=NARROW),
    "resnet34": ResNetConfig("basic", depths=(3, 4, 6, 3), hidden_sizes=NARROW),
    "resnet50": ResNetConfig("bottleneck", depths=(3, 4, 6, 3)),
    "resnet101": ResNetConfig("bottleneck", depths=(3, 4, 23, 3)),
    "resnet152": ResNetConfig("bottleneck", depths=(3, 8, 36, 3)),
    "resnet200": ResNetConfig("bottleneck", depths=(3, 24, 36, 3)),
    "mobilenet_v2": MobileNetConfig(),
}


def make_backbone(name: str) -> TransformersModel:
    """Return the backbone or depth model called `name`.

    Args:
        name: a preset (random weights, nothing is looked up), a folder with a saved config and
            perhaps `.safetensors` weights, or a hub id.

    Returns:
        A backbone: `(B, 3, h, w)` to up to four `.feature_maps`, finest first, with `.channels`.
        Or a depth model from `families`, with its normalisation in its config.

    Raises:
        ModelError: no such preset or folder, pickled weights, a model that is neither, or a hub
            that cannot be reached.
    """
    if name in PRESETS:
        return backbone_from_mapping(PRESETS[name].to_dict())
    return _of_transformers(name).pretrained_backbone(name)


def config_of(name: str) -> Any:
    """Return the config of the backbone or depth model with this name, without its weights.

    Raises `ModelError` as `make_backbone`.
    """
    return PRESETS[name] if name in PRESETS else _of_transformers(name).pretrained_config(name)


def own_options(backbone: str) -> dict[str, Any]:
    """Return the option defaults that follow from a depth model; empty for another backbone.

    The encoder is frozen; input size and depth range are those of the model's training.

    Raises `ModelError`: the backbone is unknown.
    """
    config = config_of(backbone)
    if not is_depth_model(config):
        return {}
    options = options_of_architecture(config.to_dict())
    preprocessing = read_preprocessing(backbone)
    options["input_size"] = input_size(preprocessing, image_size(config), patch_size(config))
    depth_range = metric_range(config)
    if depth_range is not None:
        options["depth_range"] = depth_range
    return options


def backbone_from_mapping(values: dict[str, Any]) -> TransformersModel:
    """Return the backbone that `backbone_mapping` described, with random weights.

    Raises `ModelError`: it is a ResNet too large for torch, or transformers knows no such model or
    refuses a value.
    """
    if values.get("model_type") == MobileNetConfig().model_type:
        return MobileNet()
    resnet = read_config(values)
    if resnet is None:
        from uncertainty_depth.depth.networks import transformers_backbone

        return transformers_backbone.described_backbone(values)
    try:
        return ResNet(resnet)
    except (RuntimeError, TypeError, OverflowError) as error:
        raise ModelError(f"torch cannot make the backbone {resnet}") from error


def backbone_mapping(backbone: TransformersModel) -> dict[str, Any]:
    """Return the backbone's config as plain values, sufficient to build it again."""
    return _architecture_in(backbone.config.to_dict())


def _architecture_in(values: dict[str, Any]) -> dict[str, Any]:
    """Return a config without the weights' origin, also in a nested encoder config."""
    return {
        key: _architecture_in(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if key not in NOT_ARCHITECTURE
    }


def _of_transformers(name: str) -> ModuleType:
    """Return what reads a folder or a hub id; raise `ModelError` if the name can be neither."""
    is_hub_id = name.count("/") == 1 and not name.startswith((".", "/", "~"))
    if not Path(name).is_dir() and not is_hub_id:
        raise ModelError(
            f"no backbone {name!r}; expected one of {', '.join(PRESETS)}, a folder with a saved "
            "backbone, or a hub id like owner/name"
        )
    from uncertainty_depth.depth.networks import transformers_backbone

    return transformers_backbone
