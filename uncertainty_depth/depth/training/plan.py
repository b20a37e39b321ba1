# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plan a model's networks: their architectures, first weights, and how they differ."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.depth.model_folder.folder import ModelFolder, read_model
from uncertainty_depth.depth.networks.families import options_of_architecture
from uncertainty_depth.depth.networks.hourglass import PRETRAINED
from uncertainty_depth.depth.training import schedule
from uncertainty_depth.depth.training.frames import TrainingFrames
from uncertainty_depth.depth.training.objective import (
    LOSSES,
    Objective,
    Targets,
    distillation,
    prediction_of,
)

logger = logging.getLogger(__name__)

FRAMES = 256


def constant_guess(frames: TrainingFrames) -> tuple[float, float]:
    """Return the median depth, metres, and its median relative error: training starts from both.

    A likelihood is steep if the predicted scale is far too small. Adam remembers those first, huge
    gradients for thousands of steps, in which it hardly moves. If there are many frames, a sample
    is used.
    """
    depths = frames.depths_m[:: math.ceil(len(frames) / FRAMES)]
    values = np.concatenate([depth[~np.isnan(depth)] for depth in depths]).astype(np.float32)
    median = float(np.median(values))
    return median, float(np.median(np.abs(values - median))) / median


MakeTargets = Callable[[Path, torch.device], Targets]
"""Function of model folder and device that returns targets, once their teacher is trained."""


@dataclass(frozen=True)
class Member:
    """One network to train.

    Attributes:
        name: what its weights are called in the model folder, and its curves if there are several
            members.
        training: how it is trained; `seed` is its own: initial weights, order, augmentation,
            dropout, bootstrap sample.
        encoder_seed: initial weights of the encoder; members that share a frozen encoder have the
            same seed.
        bootstrap: whether it is trained on a bootstrap sample of the frames instead of all.
        guess: returns the constant prediction that training starts from.
        targets: returns its targets; None for the ground truth.
        start: model folder and member whose weights a fine-tuning starts from.
    """

    name: str
    network: NetworkConfig
    training: TrainingConfig
    encoder_seed: int
    objective: Objective
    bootstrap: bool = False
    guess: Callable[[TrainingFrames], tuple[float, float]] = constant_guess
    targets: MakeTargets | None = None
    helps: bool = False
    start: tuple[Path, str] | None = None

    def frames(self, indices: Sequence[int]) -> list[int]:
        """Return the member's training frames, sorted.

        These are all, or for bagging a bootstrap sample of the same size (Breiman 1996).
        """
        if not self.bootstrap:
            return list(indices)
        random = np.random.default_rng(self.training.seed)
        return sorted(random.choice(indices, len(indices)).tolist())


INHERITED = (
    "learning_rate",
    "encoder_learning_rate",
    "weight_decay",
    "augment",
    "freeze_encoder",
)
"""Training options that a fine-tuning takes from the folder's own training by default."""
ENSEMBLES = ("multi_inits", "bagging")


def defaults_of(model: ModelFolder, user_options: Container[str] = ()) -> dict[str, Any]:
    """Return the option defaults that fine-tune `model`, but for those that the user sets."""
    recorded = model.training.get("options", {})
    defaults: dict[str, Any] = {}
    if model.architecture == PRETRAINED:
        defaults |= options_of_architecture(model.backbone)
    defaults |= {name: recorded[name] for name in INHERITED if name in recorded}
    defaults |= to_mapping(model.network)
    if "method" not in user_options:
        defaults["method"] = model.method
        if model.method == "distilled":
            defaults["distill"] = recorded.get("distill", "")
    defaults["members"] = len(model.members)
    return defaults


def with_starting_weights(plan: Sequence[Member], from_model: str) -> list[Member]:
    """Return the plan with the folder and member that each network starts from.

    Raises:
        ConfigError: the options contradict the folder, or it holds too few members.
        ModelError: the folder cannot be read.
    """
    model = read_model(from_model)
    starts = _starting_members(plan, model)
    for member in plan:
        architecture = model.architectures.get(starts[member.name])
        own = architecture.network if architecture else model.network
        for field in fields(NetworkConfig):
            value, expected = (getattr(each, field.name) for each in (member.network, own))
            if value != expected:
                raise ConfigError(
                    f"{field.name} is {value!r}, but the model in {model.path} has {expected!r}; "
                    "expected the same to fine-tune it"
                )
    if plan[0].training.freeze_encoder and len(plan) > 1 and not model.shared_encoder:
        raise ConfigError(
            f"freeze_encoder is True, but each member of {model.path} has an encoder of its own; "
            "expected False"
        )
    return [replace(member, start=(model.path, starts[member.name])) for member in plan]


def provenance(plan: Sequence[Member]) -> dict[str, Any]:
    """Return the record of the training's start model; empty if none."""
    starts = {member.name: member.start for member in plan if member.start}
    if not starts:
        return {}
    folder, _ = next(iter(starts.values()))
    earlier = read_model(folder).training
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


HEADS_NEEDED = {
    "log_likelihood": "laplace",
    "distilled": "gaussian",  # and no other: a standard deviation is what it learns
}
ONLY_FOR = {
    "members": ("multi_inits", "bagging"),
    "snapshots": ("multi_epochs",),
}
"""Training options that only these methods use."""


def settle(
    network: NetworkConfig, training: TrainingConfig
) -> tuple[NetworkConfig, TrainingConfig]:
    """Return the options with the head that the method requires, or raise `ConfigError`."""
    if training.distill and training.method == TrainingConfig().method:
        training = replace(training, method="distilled")
    if (training.method == "distilled") != bool(training.distill):
        raise ConfigError(
            f"method is {training.method!r} but distill is {training.distill!r}; expected "
            "'distilled' with --distill MODEL, the folder to learn from"
        )
    head = HEADS_NEEDED.get(training.method, "none")
    if network.head == "none" != head or (training.method == "distilled" and network.head != head):
        logger.info("%s needs a %s head and gets it", training.method, head)
        network = replace(network, head=head)
    return network, training


def without_effect(training: TrainingConfig, user_options: Container[str]) -> str:
    """Return a warning that names the user's options without effect; empty if there are none."""
    method = "distilled" if training.distill else training.method
    ignored = [
        name
        for name, methods in ONLY_FOR.items()
        if name in user_options and method not in methods
    ]
    flags = " and ".join(f"--{name.replace('_', '-')}" for name in ignored)
    return f"{method} ignores {flags}" if ignored else ""


def make_plan(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return the members of a model in training order.

    Raises:
        ConfigError: the options contradict each other.
        ModelError: the model to distill cannot be used.
    """
    if training.encoder_weights and training.from_model:
        raise ConfigError(
            f"encoder_weights is {training.encoder_weights!r}, but --from "
            f"{training.from_model} brings the encoder's weights; expected one of the two"
        )
    if training.method in PLANS:
        plan = PLANS[training.method](network, training)
    else:
        plan = [make_member("best", network, training, training.seed)]
    return with_starting_weights(plan, training.from_model) if training.from_model else plan


def _ensemble(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return `members` networks, each with its own seed."""
    return numbered([network] * training.members, training)


def numbered(networks: Sequence[NetworkConfig], training: TrainingConfig) -> list[Member]:
    """Return an ensemble's members, one for each of these architectures."""
    return [
        make_member(f"member_{number:02d}", network, training, member_seed(training.seed, number))
        for number, network in enumerate(networks, 1)
    ]


def _distilled(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    teacher = read_model(training.distill)
    if network.input_size != teacher.network.input_size:
        raise ConfigError(
            f"input_size is {network.input_size}, but {training.distill} has "
            f"{teacher.network.input_size}; expected the same to distill it"
        )
    student = make_member("best", network, training, training.seed)
    return [
        replace(
            student,
            objective=Objective(distillation),
            targets=partial(prediction_of, training.distill),
        )
    ]


PLANS = {
    **dict.fromkeys(ENSEMBLES, _ensemble),
    "distilled": _distilled,
}


def member_seed(seed: int, number: int) -> int:
    """Return a member's seed; it also differs between ensembles with neighbouring seeds."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def make_member(name: str, network: NetworkConfig, training: TrainingConfig, seed: int) -> Member:
    """Return a network that learns the ground truth, with its own seed."""
    objective = Objective(LOSSES[network.head])
    encoder_seed = training.seed if training.freeze_encoder else seed
    return Member(
        name,
        network,
        replace(training, seed=seed),
        encoder_seed,
        objective,
        training.method == "bagging",
    )


def served(plan: Sequence[Member], histories: Sequence[Sequence[dict[str, float]]]) -> list[str]:
    """Return the names of the model's weights after these epochs, the best and single one last."""
    weights: dict[str, tuple[bool, float]] = {}
    for member, history in zip(plan, histories, strict=False):
        errors = schedule.validation_errors(history)
        for epoch in schedule.saved_epochs(errors, member.training):
            weights[schedule.member_name(epoch, member.training, member.name)] = (
                not member.helps,
                -errors[epoch],
            )
    return sorted(weights, key=weights.__getitem__)
