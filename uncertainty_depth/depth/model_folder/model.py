# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model as its folder describes it, and how its networks are built and loaded."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.depth.model_folder.files import (
    check_backbone,
    check_tensors,
    not_larger_than,
    read_tensors,
)
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.hourglass import ARCHITECTURES, network_from_mapping
from uncertainty_depth.sigma.error_prior import FOREIGN, ErrorPrior

ENCODER = "encoder"
ERROR_PRIOR = "error_prior"
FAMILIARITY = "familiarity.safetensors"
RESERVED = (ENCODER, "familiarity")


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
        architecture = self.architectures.get(member, own)
        names = (member, ENCODER) if self.shared_encoder else (member,)
        try:
            check_backbone(architecture.backbone)
            with not_larger_than(*(self.path / f"{name}.safetensors" for name in names)):
                if architecture.backbone.get("model_type") != "resnet":
                    # Some draw random positions before they register them: first without memory.
                    with torch.device("meta"):
                        network_from_mapping(architecture.network, architecture.backbone)
            with not_larger_than(*(self.path / f"{name}.safetensors" for name in names)):
                return network_from_mapping(architecture.network, architecture.backbone)
        except ConfigError as error:
            raise ModelError(
                f"{self.path / 'model.json'} describes no network: {error}"
            ) from error

    def load(self, member: str) -> DepthNetwork:
        """Return the network with one member's weights, float32, in evaluation mode.

        Raises `ModelError`: the member is missing, damaged or of another architecture.
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
