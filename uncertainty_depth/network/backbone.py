"""What is pretrained, an encoder or a whole depth model of transformers: from a preset, a folder, a hub id, or the config a model folder keeps."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

from torch import nn
from transformers import (
    MODEL_FOR_BACKBONE_MAPPING,
    MODEL_FOR_DEPTH_ESTIMATION_MAPPING,
    AutoBackbone,
    AutoConfig,
    AutoModelForDepthEstimation,
    PretrainedConfig,
    ResNetConfig,
)

from uncertainty_depth.errors import ModelError
from uncertainty_depth.pretrained.families import FAMILIES, is_depth_model
from uncertainty_depth.pretrained.preprocessing import normalisation, read_preprocessing

logger = logging.getLogger(__name__)

LEVELS = 4
HUB_TIMEOUT_S = 10.0
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


def make_backbone(name: str) -> nn.Module:
    """The backbone called `name`, with feature maps at up to four levels; or the depth model called so, with its normalisation in its config.

    Args:
        name: a preset (random weights, nothing is looked up), a folder with a saved config and maybe `.safetensors` weights, or a hub id.

    Returns:
        A transformers backbone: `(B, 3, h, w)` to `.feature_maps`, finest first; their channels are `.channels`. Or a model of `families`.

    Raises:
        ModelError: no such preset or folder, pickled weights, a model that is neither, or a hub that cannot be reached.
    """
    config = config_of(name)
    if name in PRESETS or (
        Path(name).is_dir() and _has_no_weights(Path(name)) and not is_depth_model(config)
    ):
        return _from_config(config)
    return _pretrained(name, config)


def config_of(name: str) -> PretrainedConfig:
    """The config of the backbone or depth model called `name`, without its weights.

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
        f"no backbone {name!r}; expected one of {', '.join(PRESETS)}, a folder with a saved backbone, or a hub id like owner/name"
    )


def backbone_from_mapping(values: dict[str, Any]) -> nn.Module:
    """The backbone, with random weights, that `backbone_mapping` described.

    Raises:
        ModelError: when transformers knows no such model or refuses a value.
    """
    try:
        return _from_config(AutoConfig.for_model(**values))
    except ModelError:
        raise
    except Exception as error:  # transformers raises whatever the config class's validation raises
        raise ModelError(
            f"the backbone config is of no use to transformers: {_first_line(error)}"
        ) from error


def backbone_mapping(backbone: nn.Module) -> dict[str, Any]:
    """The backbone's config as plain values, all that is needed to build it again."""
    return _architecture_in(backbone.config.to_dict())


def _architecture_in(values: dict[str, Any]) -> dict[str, Any]:
    """Without what says where the weights came from; a depth model's config holds its encoder's."""
    kept = {key: value for key, value in values.items() if key not in NOT_ARCHITECTURE}
    return {
        key: _architecture_in(value) if isinstance(value, dict) else value
        for key, value in kept.items()
    }


def _from_config(config: PretrainedConfig) -> nn.Module:
    _check_is_backbone(config)
    return (
        AutoModelForDepthEstimation.from_config(config)
        if is_depth_model(config)
        else AutoBackbone.from_config(_with_levels(config))
    )


def _check_is_backbone(config: PretrainedConfig) -> None:
    if type(config) not in MODEL_FOR_BACKBONE_MAPPING and not is_depth_model(config):
        kind = f"{config.model_type!r}{' hybrid' if getattr(config, 'is_hybrid', False) else ''}"
        raise ModelError(
            f"a {kind} model cannot be the encoder; expected one that transformers' AutoBackbone knows, or a depth model of {', '.join(FAMILIES)}"
        )


def _with_levels(config: PretrainedConfig) -> PretrainedConfig:
    """Ask for feature maps after each quarter of the stages: the four scales of a ResNet, blocks 3, 6, 9 and 12 of a ViT of 12."""
    stages = config.stage_names[1:]
    chosen = sorted(
        {math.ceil(len(stages) * quarter / LEVELS) for quarter in range(1, LEVELS + 1)}
    )
    config.out_features = [stages[number - 1] for number in chosen]
    return config


def _has_no_weights(folder: Path) -> bool:
    if any(folder.glob("*.safetensors")):
        return False
    pickled = next(
        (path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in folder.glob(pattern)),
        None,
    )
    if pickled is not None:
        raise ModelError(
            f"backbone folder {folder} holds pickled weights ({pickled}), which are never read; expected .safetensors"
        )
    return True


def _config_from_hub(name: str) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    except Exception:  # not in the local cache
        _check_reachable(name)
        return _read_config(name)


def _check_reachable(name: str) -> None:
    """One request with a time limit: transformers by itself retries for half a minute before it gives up."""
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
    except Exception as error:
        raise ModelError(
            f"backbone {name!r} is neither a folder nor in the local cache, and the hub did not give it: {type(error).__name__}, {_first_line(error)}"
        ) from error


def _read_config(name: str) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(name, trust_remote_code=False)
    except Exception as error:
        raise ModelError(
            f"backbone {name} has no config that can be read: {_first_line(error)}"
        ) from error


def _pretrained(name: str, config: PretrainedConfig) -> nn.Module:
    """Load weights with the config's own class: AutoBackbone.from_pretrained asks the hub even for a local folder."""
    _check_is_backbone(config)
    kind = (
        MODEL_FOR_DEPTH_ESTIMATION_MAPPING
        if is_depth_model(config)
        else MODEL_FOR_BACKBONE_MAPPING
    )[type(config)]
    prepared = config if is_depth_model(config) else _with_levels(config)
    try:
        backbone, report = kind.from_pretrained(
            name, config=prepared, use_safetensors=True, output_loading_info=True
        )
    except Exception as error:
        raise ModelError(
            f"the weights of backbone {name} cannot be read: {_first_line(error)}"
        ) from error
    missing = len(report["missing_keys"])
    total = len(backbone.state_dict())
    if missing > total / 2:
        raise ModelError(
            f"the weights of backbone {name} hold {total - missing} of the {total} tensors a {config.model_type} encoder needs"
        )
    if missing:
        logger.warning(
            "backbone %s: %d of %d tensors are not in its weights and start at random",
            name,
            missing,
            total,
        )
    if is_depth_model(config):
        backbone.config.image_mean, backbone.config.image_std = normalisation(
            read_preprocessing(name)
        )
    return backbone.float()


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
