# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write a model folder: create it, add members, update `model.json`, copy it, wrap another's."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.predictor import UNTRAINED_METHODS
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.depth.model_folder.files import (
    read_json,
    read_tensors,
    write_json,
    write_tensors,
)
from uncertainty_depth.depth.model_folder.folder import (
    ENCODER,
    ERROR_PRIOR,
    FAMILIARITY,
    MEMBER,
    UNTRAINED,
    default_method,
    is_member_name,
    read_model,
    with_prefix,
)
from uncertainty_depth.depth.networks.backbone import make_backbone
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.families import metric_range
from uncertainty_depth.depth.networks.hourglass import make_network
from uncertainty_depth.sigma.error_prior import ErrorPrior

if TYPE_CHECKING:
    from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap


def create(folder: Path | str, network: DepthNetwork, training: Mapping[str, Any]) -> None:
    """Start a folder for networks like this one; raise `ModelError` if it holds a model."""
    folder = Path(folder)
    if (folder / "model.json").exists():
        raise ModelError(f"{folder} already holds a model; expected a new or empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "architecture": network.architecture,
        "network": to_mapping(network.config),
        "backbone": network.backbone_config,
        "method": "deterministic",
        "members": [],
        "shared_encoder": network.encoder_is_frozen,
        "training": dict(training),
    }
    write_json(folder, content)


def write_member(folder: Path | str, name: str, network: DepthNetwork) -> Path:
    """Write one member's weights, whole or not at all; returns its file's path.

    Of a network with a frozen encoder the decoder is written, and the encoder if it is not there
    yet. An architecture other than the one the folder was created for is added to `model.json`.

    Raises:
        ModelError: the file name is not valid, or the frozen encoder differs from the folder's.
    """
    folder = Path(folder)
    if not is_member_name(name):
        raise ModelError(
            f"member name {name!r} cannot be used; "
            f"expected letters, digits, '.', '_', '-', and not {ENCODER!r}"
        )
    content = read_json(folder)
    architecture = {"network": to_mapping(network.config), "backbone": network.backbone_config}
    own = strict.plain(architecture)
    architectures = content.get("architectures", {})
    recorded = architectures.get(name, {key: content[key] for key in own})
    if own != recorded:
        content["architectures"] = {**architectures, name: own}
        write_json(folder, content)
    state = network.state_dict()
    if network.encoder_is_frozen:
        _share_encoder(folder / f"{ENCODER}.safetensors", with_prefix(state, "encoder."))
        state = with_prefix(state, "decoder.")
    return write_tensors(folder / f"{name}.safetensors", state)


def _share_encoder(path: Path, state: dict[str, Tensor]) -> None:
    """Write a frozen encoder, or check that the file holds the same."""
    if not path.exists():
        write_tensors(path, state)
        return
    stored = read_tensors(path)
    is_same = stored.keys() == state.keys() and all(
        torch.equal(stored[key], value.cpu()) for key, value in state.items()
    )
    if not is_same:
        raise ModelError(
            f"{path} holds another encoder than the network's; expected snapshots that share it"
        )


def set_members(
    folder: Path | str,
    names: Sequence[str],
    method: str,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Set the model's members, the last for a single network, and its method in `model.json`.

    Other members' calibration and error prior, or the same ones' before they were trained further,
    are dropped. `training` replaces the training record.

    Raises `ModelError`: the folder holds no valid `model.json`.
    """
    content = read_json(Path(folder))
    is_trained_further = training is not None and content["training"] != dict(training)
    if content["members"] != list(names) or is_trained_further:
        content.pop("calibration", None)
        content.pop(ERROR_PRIOR, None)
    content |= {"members": list(names), "method": method}
    if training is not None:
        content["training"] = dict(training)
    write_json(Path(folder), content)


def set_calibration(
    folder: Path | str, method: str, sigma_map: SigmaMap, record: Mapping[str, Any]
) -> None:
    """Set the calibration for a method's sigma in `model.json`, with its record in JSON values."""
    content = read_json(Path(folder))
    content["calibration"] = {
        **content.get("calibration", {}),
        method: {**sigma_map.to_mapping(), **record},
    }
    write_json(Path(folder), content)


def set_error_prior(folder: Path | str, prior: ErrorPrior) -> None:
    """Set how the model errs, for `posterior`; raise `ModelError` without a valid `model.json`."""
    content = read_json(Path(folder))
    content[ERROR_PRIOR] = to_mapping(prior)
    write_json(Path(folder), content)


def export_half(folder: Path | str, output: Path | str) -> Path:
    """Copy a model with its weights stored in float16; return the copy's path.

    Half the size; `load` converts the weights back to float32. Biases and BatchNorm stay float32.

    Raises `ModelError`: the folder cannot be used, or `output` holds a model.
    """
    model = read_model(folder)
    output = Path(output)
    if (output / "model.json").exists():
        raise ModelError(f"{output} already holds a model; expected a new or empty folder")
    output.mkdir(parents=True, exist_ok=True)
    for name in (*model.members, *([ENCODER] if model.shared_encoder else [])):
        tensors = read_tensors(model.path / f"{name}.safetensors")
        for key, tensor in tensors.items():
            tensors[key] = tensor.half() if tensor.ndim > 1 else tensor
        write_tensors(output / f"{name}.safetensors", tensors)
    if (model.path / FAMILIARITY).exists():
        shutil.copyfile(model.path / FAMILIARITY, output / FAMILIARITY)
    write_json(output, read_json(model.path))
    return output


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
    create(output, network, UNTRAINED)
    write_member(output, MEMBER, network)
    set_members(output, [MEMBER], method)
    return output
