# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read a model from disk: a folder with `model.json` and `.safetensors` members, never a pickle.

`model.json` holds the format's number, the network's and the backbone's config, the method, the
names of the members, the training record, a map of sigma for each calibrated method, and what
`posterior` has to know of the model's errors. Members of another architecture than the first have
theirs under `architectures`.

Member `NAME` is `NAME.safetensors`. Members that share a frozen encoder hold the decoder alone;
`encoder.safetensors` holds the encoder, once.

A depth model of Hugging Face can stand in a folder's place, without writing one.
"""

from __future__ import annotations

import copy
import logging
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from uncertainty_depth.core.config.predictor import METHODS
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.core.model_location import from_hub, is_hugging_face, model_path
from uncertainty_depth.core.options import MAX_DEPTH_M, from_mapping
from uncertainty_depth.depth.model_folder.files import (
    MAX_MEMBERS,
    check_backbone,
    check_tensors,
    not_larger_than,
    read_json,
    read_tensors,
)
from uncertainty_depth.depth.networks.backbone import config_of, make_backbone, own_options
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.families import (
    FAMILIES,
    MIN_DEPTH_M,
    is_depth_model,
    metric_range,
)
from uncertainty_depth.depth.networks.hourglass import (
    ARCHITECTURES,
    make_network,
    network_from_mapping,
)
from uncertainty_depth.depth.networks.pretrained import PretrainedDepth, Unaligned
from uncertainty_depth.sigma.error_prior import FOREIGN, ErrorPrior, error_prior

logger = logging.getLogger(__name__)
ENCODER = "encoder"
ERROR_PRIOR = "error_prior"
FAMILIARITY = "familiarity.safetensors"
RESERVED = (ENCODER, "familiarity")
MEMBER = "pretrained"
"""The one member of a depth model that was wrapped."""
UNTRAINED = {"source": "none: wrapped as it is"}
"""Its record of a training."""
RELATIVE_RANGE = (MIN_DEPTH_M, MAX_DEPTH_M)
"""Range for inverse depth without a unit: only 0 is cut off."""


@dataclass(frozen=True)
class Architecture:
    """All that makes a network except its weights: its own config and its backbone's."""

    network: NetworkConfig
    backbone: dict[str, Any]


@dataclass(frozen=True)
class ModelFolder:
    """The checked content of `model.json`; `load` and `load_all` read the weights.

    Depth `is_relative` if it is inverse depth up to scale and shift: no folder is written of such.
    `calibration` holds each calibrated sigma's record, see `predictor_settings`, and
    `error_prior` what `posterior` has to know of its errors.
    """

    path: Path
    network: NetworkConfig
    backbone: dict[str, Any]
    method: str
    members: tuple[str, ...]
    shared_encoder: bool
    training: dict[str, Any]
    calibration: dict[str, Any] = field(default_factory=dict)
    architectures: dict[str, Architecture] = field(default_factory=dict)
    architecture: str = ARCHITECTURES[0]
    is_relative: bool = False
    error_prior: ErrorPrior = FOREIGN

    @property
    def name(self) -> str:
        """The model's name in reports: its folder's name, or ORG/NAME if it is from the Hub."""
        path = self.path.resolve()
        repository = path.parents[1].name if len(path.parents) > 1 else ""
        if path.parent.name == "snapshots" and repository.startswith("models--"):
            return repository.removeprefix("models--").replace("--", "/")
        return path.name

    def build(self, member: str) -> DepthNetwork:
        """Return a member's network with random weights, from the folder alone.

        Raises `ModelError`: transformers cannot use the backbone's config, or the network would be
        much larger than the member's weights.
        """
        own = Architecture(self.network, self.backbone)
        made_of = self.architectures.get(member, own)
        names = (member, ENCODER) if self.shared_encoder else (member,)
        files = [self.path / f"{name}.safetensors" for name in names]
        try:
            check_backbone(made_of.backbone)
            if made_of.backbone.get("model_type") != "resnet":
                # Some draw random positions before they register them: first without memory.
                with not_larger_than(*files), torch.device("meta"):
                    network_from_mapping(made_of.network, made_of.backbone)
            with not_larger_than(*files):
                return network_from_mapping(made_of.network, made_of.backbone)
        except ConfigError as error:
            raise ModelError(
                f"{self.path / 'model.json'} describes no network: {error}"
            ) from error

    def load(self, member: str) -> DepthNetwork:
        """Return the network with one member's weights, float32, in evaluation mode.

        Raises `ModelError`: the member is missing, damaged or of another architecture.
        """
        network = self.build(member)
        if self.shared_encoder:
            self._load_part(network, member, "decoder.")
            self._load_part(network, ENCODER, "encoder.")
            network.freeze_encoder()
        else:
            self._load_part(network, member, "")
        return network.eval()

    def load_all(self, members: Sequence[str]) -> list[DepthNetwork]:
        """Return one network per member; a shared encoder is read once and is one object."""
        networks: list[DepthNetwork] = []
        for member in tqdm(members, "loading", unit="network", leave=False, disable=None):
            first = networks[0] if networks and self.shared_encoder else None
            if first is None:
                network = self.load(member)
            elif self.architectures.get(member) != self.architectures.get(members[0]):
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
        check_tensors(path, tensors, expected=with_prefix(network.state_dict(), prefix))
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
            "dropout": f"{self.network.dropout:g}",
            "input_size": "{} x {}".format(*self.network.input_size),
            "depth_range": "{:g} to {:g} m".format(*self.network.depth_range),
            "calibrated": ", ".join(self.calibration) or "no",
            "trained on": self.training.get("source", "unknown"),
        }


def is_member_name(name: str) -> bool:
    """Return whether this is a file name in the model folder, not a path out of it."""
    return re.fullmatch(r"[\w-][\w.-]*", name) is not None and name not in RESERVED


def with_prefix(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the entries whose names begin with `prefix`."""
    return {key: value for key, value in state.items() if key.startswith(prefix)}


def read_model(folder: Path | str, relative: bool = False) -> ModelFolder:
    """Read the model in `folder` (see `model_path`), without its weights.

    A hub id is a published model folder, see `hub.push`, or a transformers network; that, and a
    folder from `save_pretrained`, is read as if it had been wrapped. `relative` takes one that
    gives inverse depth without a unit too.

    Raises `ModelError`: the folder or a file is missing, `model.json` is broken, of a newer format
    or of an unknown architecture, or there are no members.
    """
    path = from_hub(model_path(folder))
    if is_hugging_face(path):
        return pretrained_model(path, relative)
    content = read_json(path)
    network = _read_network(path, content["network"])
    if content["method"] not in METHODS:
        raise ModelError(
            f"{path / 'model.json'} has method {reprlib.repr(content['method'])}; "
            f"expected one of {', '.join(METHODS)}"
        )
    members = tuple(map(str, content["members"]))
    _check_members(path, members, content["shared_encoder"])
    try:
        prior = error_prior(content[ERROR_PRIOR]) if ERROR_PRIOR in content else FOREIGN
    except ConfigError as error:
        raise ModelError(f"{path / 'model.json'} cannot be used: {error}") from error
    return ModelFolder(
        path,
        network,
        content["backbone"],
        content["method"],
        members,
        content["shared_encoder"],
        content["training"],
        content.get("calibration", {}),
        _read_architectures(path, content.get("architectures", {})),
        content["architecture"],
        error_prior=prior,
    )


def _check_members(folder: Path, members: Sequence[str], shared_encoder: bool) -> None:
    """Raise `ModelError` unless there are members, and every file of theirs is in the folder."""
    if not members:
        raise ModelError(
            f"{folder} holds no trained member yet; expected at least one: "
            "train --resume continues an interrupted training"
        )
    if len(members) > MAX_MEMBERS:
        raise ModelError(
            f"{folder / 'model.json'} names {len(members)} members; expected at most {MAX_MEMBERS}"
        )
    for number, name in enumerate(members):
        if not is_member_name(name):
            raise ModelError(
                f"{folder / 'model.json'} names member {reprlib.repr(name)}; expected a file name "
                "in the folder"
            )
        if name in members[:number]:
            raise ModelError(
                f"{folder / 'model.json'} names member {name!r} twice; expected each once"
            )
    for name in (*members, *([ENCODER] if shared_encoder else [])):
        if not (folder / f"{name}.safetensors").is_file():
            raise ModelError(f"{folder / f'{name}.safetensors'} is missing; model.json names it")


def _read_network(folder: Path, values: Any) -> NetworkConfig:
    try:
        network = from_mapping(NetworkConfig, values)
    except ConfigError as error:
        raise ModelError(f"{folder / 'model.json'} describes no network: {error}") from error
    missing = [each.name for each in fields(NetworkConfig) if each.name not in values]
    if missing:  # a default might be another network than the one that was trained
        raise ModelError(
            f"{folder / 'model.json'} describes no network: it has no {', '.join(missing)}; "
            "expected all options of this version"
        )
    return network


def _read_architectures(folder: Path, values: Any) -> dict[str, Architecture]:
    try:
        return {
            name: Architecture(
                backbone=dict(entry["backbone"]), network=_read_network(folder, entry["network"])
            )
            for name, entry in values.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{folder / 'model.json'} has architectures that cannot be used; "
            "expected network and backbone of each member in it"
        ) from error


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

    Raises `ModelError`: the model is unknown, not a depth model, or gives no metres.
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
    names = {each.name for each in fields(NetworkConfig)}
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
        training=UNTRAINED,
        architecture=PretrainedDepth.architecture,
        is_relative=is_relative,
    )


def default_method(config: NetworkConfig) -> str:
    """Return the method that predicts by default without training."""
    return "mc_dropout" if config.dropout else "deterministic"
