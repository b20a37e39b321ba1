"""Encoders through transformers' AutoBackbone: from a preset, a local folder, a hub id, or the config a model folder keeps."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

from torch import nn
from transformers import MODEL_FOR_BACKBONE_MAPPING, AutoBackbone, AutoConfig, PretrainedConfig, ResNetConfig

from uncertainty_depth.errors import ModelError

logger = logging.getLogger(__name__)

LEVELS = 4
HUB_TIMEOUT_S = 10.0
NOT_ARCHITECTURE = {"_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype", "id2label", "label2id"}
WIDE, NARROW = (256, 512, 1024, 2048), (64, 128, 256, 512)
SLIM: dict[str, Any] = {"layer_type": "basic", "embedding_size": 16, "hidden_sizes": (16, 32, 64, 128)}
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
    """The backbone called `name`, with feature maps at up to four levels.

    Args:
        name: a preset (random weights, nothing is looked up), a folder with a saved config and maybe `.safetensors` weights, or a hub id.

    Returns:
        A transformers backbone: `(B, 3, h, w)` to `.feature_maps`, finest first; their channels are `.channels`.

    Raises:
        ModelError: no such preset or folder, pickled weights, a model that is no backbone, or a hub that cannot be reached.
    """
    if name in PRESETS:
        return _from_config(ResNetConfig(**PRESETS[name]))
    if Path(name).is_dir():
        return _from_folder(Path(name))
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return _from_hub(name)
    raise ModelError(f"no backbone {name!r}; expected one of {', '.join(PRESETS)}, a folder with a saved backbone, or a hub id like owner/name")


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
        raise ModelError(f"the backbone config is of no use to transformers: {_first_line(error)}") from error


def backbone_mapping(backbone: nn.Module) -> dict[str, Any]:
    """The backbone's config as plain values, all that is needed to build it again."""
    values = backbone.config.to_dict()
    return {
        key: value for key, value in values.items() if key not in ("_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype")
    }


def _from_config(config: PretrainedConfig) -> nn.Module:
    _check_is_backbone(config)
    return AutoBackbone.from_config(_with_levels(config))


def _check_is_backbone(config: PretrainedConfig) -> None:
    if type(config) not in MODEL_FOR_BACKBONE_MAPPING:
        raise ModelError(f"a {config.model_type!r} model cannot be the encoder; expected one that transformers' AutoBackbone knows")


def _with_levels(config: PretrainedConfig) -> PretrainedConfig:
    """Ask for feature maps after each quarter of the stages: the four scales of a ResNet, blocks 3, 6, 9 and 12 of a ViT of 12."""
    stages = config.stage_names[1:]
    chosen = sorted({math.ceil(len(stages) * quarter / LEVELS) for quarter in range(1, LEVELS + 1)})
    config.out_features = [stages[number - 1] for number in chosen]
    return config


def _from_folder(folder: Path) -> nn.Module:
    config = _read_config(str(folder))
    if any(folder.glob("*.safetensors")):
        return _pretrained(str(folder), config)
    pickled = next((path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in folder.glob(pattern)), None)
    if pickled is not None:
        raise ModelError(f"backbone folder {folder} holds pickled weights ({pickled}), which are never read; expected .safetensors")
    return _from_config(config)


def _from_hub(name: str) -> nn.Module:
    try:
        config = AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    except Exception:  # not in the local cache
        _check_reachable(name)
        config = _read_config(name)
    return _pretrained(name, config)


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
        raise ModelError(f"backbone {name} has no config that can be read: {_first_line(error)}") from error


def _pretrained(name: str, config: PretrainedConfig) -> nn.Module:
    """Load weights with the config's own class: AutoBackbone.from_pretrained asks the hub even for a local folder."""
    _check_is_backbone(config)
    kind = MODEL_FOR_BACKBONE_MAPPING[type(config)]
    try:
        backbone, report = kind.from_pretrained(name, config=_with_levels(config), use_safetensors=True, output_loading_info=True)
    except Exception as error:
        raise ModelError(f"the weights of backbone {name} cannot be read: {_first_line(error)}") from error
    missing, total = len(report["missing_keys"]), len(backbone.state_dict())
    if missing > total / 2:
        raise ModelError(f"the weights of backbone {name} hold {total - missing} of the {total} tensors a {config.model_type} encoder needs")
    if missing:
        logger.warning("backbone %s: %d of %d tensors are not in its weights and start at random", name, missing, total)
    return backbone


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
