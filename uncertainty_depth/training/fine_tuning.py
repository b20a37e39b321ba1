# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fine-tuning: which member of another model folder each network of a training starts from."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.model_folder.folder import ModelFolder, read
from uncertainty_depth.options import current_names, to_mapping
from uncertainty_depth.pretrained.network import PretrainedDepth
from uncertainty_depth.pretrained.own_options import options_of_architecture

if TYPE_CHECKING:
    from uncertainty_depth.training.member import Member

INHERITED = (
    "loss",
    "learning_rate",
    "encoder_learning_rate",
    "weight_decay",
    "augment",
    "freeze_encoder",
)
"""Training options that a fine-tuning takes from the folder's own training by default."""
ENSEMBLES = ("multi_inits", "bagging", "multi_networks")


def defaults_of(model: ModelFolder, user_options: Container[str] = ()) -> dict[str, Any]:
    """Return the defaults of the options that fine-tune `model`, as plain values.

    Args:
        model: the folder to start from.
        user_options: names of the options that the user sets.
    """
    recorded = current_names(model.training.get("options", {}), TrainingConfig)
    defaults: dict[str, Any] = {}
    if model.architecture == PretrainedDepth.architecture:
        defaults |= options_of_architecture(model.backbone)
    defaults |= {name: recorded[name] for name in INHERITED if name in recorded}
    defaults |= to_mapping(model.network)
    if "method" not in user_options:
        defaults["method"] = model.method
        if model.method == "distilled":
            defaults["distill"] = recorded.get("distill", "")
    if model.method == "multi_networks":
        members = sorted(model.members)
        defaults["backbones"] = [_network_of(model, name).backbone for name in members]
    else:
        defaults["members"] = len(model.members)
    return defaults


def with_starting_weights(plan: Sequence[Member], from_model: str) -> list[Member]:
    """Return the plan with the folder and member that each network starts from.

    Raises:
        ConfigError: the options contradict the folder, or it holds too few members.
        ModelError: the folder cannot be read.
    """
    model = read(from_model)
    starts = _starting_members(plan, model)
    for member in plan:
        _refuse_other_network(member.network, model, starts[member.name])
    if plan[0].training.freeze_encoder and len(plan) > 1 and not model.shared_encoder:
        raise ConfigError(
            f"freeze_encoder is True, but each member of {model.path} has an encoder of its own; "
            "expected False"
        )
    return [replace(member, start=(model.path, starts[member.name])) for member in plan]


def provenance(plan: Sequence[Member]) -> dict[str, Any]:
    """Return the record of the model that a training started from; empty if none."""
    starts = {member.name: member.start for member in plan if member.start}
    if not starts:
        return {}
    folder, _ = next(iter(starts.values()))
    earlier = read(folder).training
    sources = [earlier.get("source", ""), *earlier.get("started_from", {}).get("sources", [])]
    return {
        "started_from": {
            "model": str(folder),
            "sources": [source for source in sources if source],
            "members": {name: member for name, (_, member) in starts.items()},
        }
    }


def _starting_members(plan: Sequence[Member], model: ModelFolder) -> dict[str, str]:
    """Return the folder's member for each planned one: the same name, the best, or in order."""
    names = [member.name for member in plan]
    if set(names) <= set(model.members):
        return {name: name for name in names}
    if len(plan) == 1:
        return {names[0]: model.members[-1]}
    method = plan[0].training.method
    if method in ENSEMBLES and len(plan) <= len(model.members):
        return dict(zip(names, sorted(model.members), strict=False))
    count = len(model.members)
    raise ConfigError(
        f"{method} trains {len(plan)} networks, but {model.path} holds "
        f"{count} {'member' if count == 1 else 'members'} ({', '.join(model.members)}); "
        "expected one to start each network from"
    )


def _network_of(model: ModelFolder, member: str) -> NetworkConfig:
    own = model.architectures.get(member)
    return own.network if own else model.network


def _refuse_other_network(network: NetworkConfig, model: ModelFolder, member: str) -> None:
    own = _network_of(model, member)
    for field in fields(NetworkConfig):
        value = getattr(network, field.name)
        expected = getattr(own, field.name)
        if value != expected:
            raise ConfigError(
                f"{field.name} is {value!r}, but the model in {model.path} has {expected!r}; "
                "expected the same to fine-tune it"
            )
