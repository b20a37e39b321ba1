# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model on disk: a folder with `model.json` and `.safetensors` members, never a pickle.

`model.json` holds the format's number, the network's and the backbone's config, the method, the
names of the members, the training record, and a map of sigma for each calibrated method. Members
of another architecture than the first have theirs under `architectures`.

Member `NAME` is `NAME.safetensors`. Members that share a frozen encoder hold the decoder alone;
`encoder.safetensors` holds the encoder, once.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from uncertainty_depth.calibration.fitted_data import FittedData
from uncertainty_depth.calibration.half_widths import HalfWidths, from_record
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.config import METHODS, NetworkConfig
from uncertainty_depth.errors import ConfigError, ModelError
from uncertainty_depth.model_folder.model_json import read_json, write_json
from uncertainty_depth.model_folder.tensors import check_tensors, read_tensors, write_tensors
from uncertainty_depth.network.architectures import ARCHITECTURES, make_network
from uncertainty_depth.network.backbone import backbone_from_mapping
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.options import from_mapping, to_mapping
from uncertainty_depth.shipped_model import model_path

ENCODER = "encoder"
FAMILIARITY = "familiarity.safetensors"
RESERVED = (ENCODER, "familiarity")
BEFORE = {"last_activation": "relu"}
"""Options of networks written before the option existed."""


@dataclass(frozen=True)
class Architecture:
    """All that makes a network except its weights: its own config and its backbone's."""

    network: NetworkConfig
    backbone: dict[str, Any]


@dataclass(frozen=True)
class ModelFolder:
    """The checked content of `model.json`; `load` and `load_all` read the weights."""

    path: Path
    network: NetworkConfig
    backbone: dict[str, Any]
    method: str
    members: tuple[str, ...]
    shared_encoder: bool
    training: dict[str, Any]
    calibration: dict[str, SigmaMap] = field(default_factory=dict)
    architectures: dict[str, Architecture] = field(default_factory=dict)
    architecture: str = ARCHITECTURES[0]
    fitted_to: dict[str, FittedData] = field(default_factory=dict)
    half_widths: dict[str, HalfWidths] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model's name in reports: that of its folder."""
        return self.path.resolve().name

    def build(self, member: str) -> DepthNetwork:
        """Return a member's network with random weights, from the folder alone.

        Raises:
            ModelError: transformers cannot use the backbone's config.
        """
        own = Architecture(self.network, self.backbone)
        architecture = self.architectures.get(member, own)
        backbone = backbone_from_mapping(architecture.backbone)
        try:
            return make_network(architecture.network, backbone)
        except ConfigError as error:
            raise ModelError(
                f"{self.path / 'model.json'} describes no network: {error}"
            ) from error

    def load(self, member: str) -> DepthNetwork:
        """Return the network with the weights of one member, float32, in evaluation mode.

        Raises:
            ModelError: the member is missing, damaged or of another architecture.
        """
        network = self.build(member)
        prefixes = (
            {member: "decoder.", ENCODER: "encoder."} if self.shared_encoder else {member: ""}
        )
        for file_name, prefix in prefixes.items():
            self._load_part(network, file_name, prefix)
        if self.shared_encoder:
            network.freeze_encoder()
        return network.eval()

    def load_all(self, members: Sequence[str]) -> list[DepthNetwork]:
        """Return one network per member; a shared encoder is read once and is one object."""
        if not self.shared_encoder:
            return [self.load(member) for member in members]
        first = self.load(members[0])
        networks = [first]
        for member in members[1:]:
            if self.architectures.get(member) != self.architectures.get(members[0]):
                network = self.load(member)
                network.encoder = first.encoder
            else:
                network = copy.deepcopy(first, {id(first.encoder): first.encoder})
                self._load_part(network, member, "decoder.")
            networks.append(network)
        return networks

    def _load_part(self, network: DepthNetwork, file_name: str, prefix: str) -> None:
        path = self.path / f"{file_name}.safetensors"
        tensors = read_tensors(path)
        check_tensors(path, tensors, expected=_with_prefix(network.state_dict(), prefix))
        network.load_state_dict(tensors, strict=False)

    def describe(self) -> dict[str, Any]:
        """Return a summary of the folder as plain values."""
        return {
            "architecture": self.architecture,
            "backbone": self.network.backbone,
            "encoder": "frozen, shared by all members"
            if self.shared_encoder
            else "one per member",
            "method": self.method,
            "members": ", ".join(self.members),
            "head": self.network.head,
            "input": f"image and sparse depth ({self.network.sparse_input})"
            if self.network.sparse_input
            else "image",
            "dropout": f"{self.network.dropout:g} ({self.network.dropout_type})",
            "input_size": "{} x {}".format(*self.network.input_size),
            "depth_range": "{:g} to {:g} m".format(*self.network.depth_range),
            "calibrated": ", ".join(self.calibration) or "no",
            "trained on": self.training.get("source", "unknown"),
        }


def create(folder: Path | str, network: DepthNetwork, training: Mapping[str, Any]) -> None:
    """Start a model folder for networks like `network`: `model.json`, without members yet.

    Args:
        folder: new or empty.
        network: any member's.
        training: the training record, JSON values.

    Raises:
        ModelError: the folder already holds a model.
    """
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
    """Write the weights of one member, whole or not at all; returns the path of its file.

    Of a network with a frozen encoder the decoder is written, and the encoder if it is not there
    yet. An architecture other than the one the folder was created for is added to `model.json`.

    Raises:
        ModelError: the name is no file name, or the frozen encoder is not the folder's.
    """
    folder = Path(folder)
    if not is_member_name(name):
        raise ModelError(
            f"member name {name!r} cannot be used; "
            f"expected letters, digits, '.', '_', '-', and not {ENCODER!r}"
        )
    _add_architecture(folder, name, network)
    state = network.state_dict()
    if network.encoder_is_frozen:
        _write_shared_encoder(folder, _with_prefix(state, "encoder."))
        state = _with_prefix(state, "decoder.")
    return write_tensors(folder / f"{name}.safetensors", state)


def is_member_name(name: str) -> bool:
    """Return whether this is a file name in the model folder, not a path out of it."""
    return re.fullmatch(r"[\w-][\w.-]*", name) is not None and name not in RESERVED


def _add_architecture(folder: Path, name: str, network: DepthNetwork) -> None:
    content = read_json(folder)
    architecture = {"network": to_mapping(network.config), "backbone": network.backbone_config}
    own = json.loads(json.dumps(architecture))
    architectures = content.get("architectures", {})
    recorded = architectures.get(name, {key: content[key] for key in own})
    if own != recorded:
        content["architectures"] = {**architectures, name: own}
        write_json(folder, content)


def set_members(
    folder: Path | str,
    names: Sequence[str],
    method: str,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Set the model's members and method in `model.json`.

    A calibration of other members, or of the same before they were trained further, is dropped.

    Args:
        folder: the model folder.
        names: the members; the last one is used where a single network is asked for.
        method: the method that the members were trained for.
        training: replaces the training record.

    Raises:
        ModelError: the folder holds no valid `model.json`.
    """
    content = read_json(Path(folder))
    is_trained_further = training is not None and content["training"] != dict(training)
    if content["members"] != list(names) or is_trained_further:
        content.pop("calibration", None)
    content |= {"members": list(names), "method": method}
    if training is not None:
        content["training"] = dict(training)
    write_json(Path(folder), content)


def extend_training_record(folder: Path | str, entries: Mapping[str, Any]) -> None:
    """Add entries to the training record in `model.json`; the calibration stays.

    Raises:
        ModelError: the folder holds no valid `model.json`.
    """
    content = read_json(Path(folder))
    content["training"] = {**content["training"], **entries}
    write_json(Path(folder), content)


def set_calibration(
    folder: Path | str, method: str, sigma_map: SigmaMap, record: Mapping[str, Any]
) -> None:
    """Set the calibration of a method's sigma in `model.json`.

    Args:
        folder: the model folder.
        method: the calibration key, see `Predictor.calibration_key`.
        sigma_map: from raw to calibrated sigma.
        record: how it was fitted, JSON values.

    Raises:
        ModelError: the folder holds no valid `model.json`.
    """
    content = read_json(Path(folder))
    content["calibration"] = {
        **content.get("calibration", {}),
        method: {**sigma_map.to_mapping(), **record},
    }
    write_json(Path(folder), content)


def read(folder: Path | str) -> ModelFolder:
    """Read the model in `folder` (see `model_path`), without its weights.

    Raises:
        ModelError: the folder or a file is missing, `model.json` is broken, of a newer format or
            of an unknown architecture, or there are no members.
    """
    path = model_path(folder)
    content = read_json(path)
    network = _read_network(path, content["network"])
    if content["method"] not in METHODS:
        raise ModelError(
            f"{path / 'model.json'} has method {content['method']!r}; "
            f"expected one of {', '.join(METHODS)}"
        )
    members = tuple(map(str, content["members"]))
    if not members:
        raise ModelError(
            f"{path} holds no trained member yet; expected at least one: "
            "train --resume continues an interrupted training"
        )
    for name in members:
        if not is_member_name(name):
            raise ModelError(
                f"{path / 'model.json'} names member {name!r}; expected a file name in the folder"
            )
    for name in (*members, *([ENCODER] if content["shared_encoder"] else [])):
        if not (path / f"{name}.safetensors").is_file():
            raise ModelError(f"{path / f'{name}.safetensors'} is missing; model.json names it")
    return ModelFolder(
        path,
        network,
        content["backbone"],
        content["method"],
        members,
        content["shared_encoder"],
        content["training"],
        _read_maps(path, content.get("calibration", {})),
        _read_architectures(path, content.get("architectures", {})),
        content["architecture"],
        _read_fitted_data(path, content.get("calibration", {})),
        _read_half_widths(path, content.get("calibration", {})),
    )


def export_half(folder: Path | str, output: Path | str) -> Path:
    """Copy a model with its weights stored in float16; returns the path of the copy.

    Half the size; `load` converts the weights back to float32. Biases and BatchNorm stay float32.

    Raises:
        ModelError: the folder cannot be used, or `output` holds a model.
    """
    model = read(folder)
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


def _read_network(folder: Path, values: Any) -> NetworkConfig:
    try:
        return from_mapping(NetworkConfig, BEFORE | values)
    except ConfigError as error:
        raise ModelError(f"{folder / 'model.json'} describes no network: {error}") from error


def _read_architectures(folder: Path, values: Any) -> dict[str, Architecture]:
    try:
        return {
            name: Architecture(_read_network(folder, entry["network"]), dict(entry["backbone"]))
            for name, entry in values.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{folder / 'model.json'} has architectures that cannot be used; "
            "expected network and backbone of each member in it"
        ) from error


def _read_maps(folder: Path, calibration: Any) -> dict[str, SigmaMap]:
    try:
        return {method: SigmaMap.from_mapping(values) for method, values in calibration.items()}
    except (ModelError, AttributeError) as error:
        raise ModelError(f"{folder / 'model.json'} cannot be used: {error}") from error


def _read_fitted_data(folder: Path, calibration: dict[str, Any]) -> dict[str, FittedData]:
    """Return the data that each map was fitted to; earlier versions did not record it."""
    try:
        return {
            method: FittedData.from_mapping(values["fitted_to"])
            for method, values in calibration.items()
            if "fitted_to" in values
        }
    except ModelError as error:
        raise ModelError(f"{folder / 'model.json'} cannot be used: {error}") from error


def _read_half_widths(folder: Path, calibration: dict[str, Any]) -> dict[str, HalfWidths]:
    """Return the measured half widths of intervals; earlier versions did not record them."""
    try:
        found = {method: from_record(values) for method, values in calibration.items()}
    except ModelError as error:
        raise ModelError(f"{folder / 'model.json'} cannot be used: {error}") from error
    return {method: widths for method, widths in found.items() if widths is not None}


def _write_shared_encoder(folder: Path, state: dict[str, Tensor]) -> None:
    path = folder / f"{ENCODER}.safetensors"
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


def _with_prefix(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key: value for key, value in state.items() if key.startswith(prefix)}
