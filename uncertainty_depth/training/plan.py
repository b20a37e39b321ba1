# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plan the networks of a model: their architectures, and how they differ."""

from __future__ import annotations

import logging
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.training import losses, schedule, targets
from uncertainty_depth.training.fine_tuning import ENSEMBLES, with_starting_weights
from uncertainty_depth.training.member import Member
from uncertainty_depth.training.objective import Objective
from uncertainty_depth.training.start import constant_error_guess
from uncertainty_depth.uncertainty.learned_error import DEPTH, ERROR

logger = logging.getLogger(__name__)

HEADS_NEEDED = {
    "log_likelihood": "laplace",
    "self_teaching": "laplace",
    "distilled": "gaussian",  # and no other: a standard deviation is what it learns
    # A divergence is weighed against a likelihood, not against any other loss.
    "concrete_dropout": "laplace",
    "variational_dropout": "laplace",
}
DROPOUTS_NEEDED = {"concrete_dropout": "concrete", "variational_dropout": "gaussian"}
ONLY_FOR = {
    "members": ("multi_inits", "bagging"),
    "backbones": ("multi_networks",),
    "snapshots": ("multi_epochs",),
}
"""Training options that only these methods use."""


def settle(
    network: NetworkConfig, training: TrainingConfig
) -> tuple[NetworkConfig, TrainingConfig]:
    """Return the options with the head and dropout that the method requires.

    Raises:
        ConfigError: distilling and the method contradict each other.
    """
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
    return replace(
        network, dropout_type=DROPOUTS_NEEDED.get(training.method, network.dropout_type)
    ), training


def without_effect(training: TrainingConfig, user_options: Container[str]) -> str:
    """Return a warning that names the user's options without effect; empty if there are none."""
    method = "distilled" if training.distill else training.method
    ignored = [
        "--" + name.replace("_", "-")
        for name, methods in ONLY_FOR.items()
        if name in user_options and method not in methods
    ]
    return f"{method} has no use for {', '.join(ignored)}: without effect" if ignored else ""


def make_plan(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return the members of a model in training order.

    Raises:
        ConfigError: the options contradict each other.
        ModelError: the model to distill cannot be used.
    """
    if network.sparse_input and training.freeze_encoder and not training.from_model:
        raise ConfigError(
            f"freeze_encoder is True, but with sparse_input {network.sparse_input!r} the encoder "
            "holds the first convolution of the sparse depth, which would stay random; expected "
            "False"
        )
    if training.encoder_weights and training.from_model:
        raise ConfigError(
            f"encoder_weights is {training.encoder_weights!r}, but --from "
            f"{training.from_model} brings the encoder's weights; expected one of the two"
        )
    plan = PLANS.get(training.method, _one)(network, training)
    return with_starting_weights(plan, training.from_model) if training.from_model else plan


def _one(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    return [_member("best", network, training, training.seed)]


def _ensemble(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return `members` networks, each with its own seed."""
    return _numbered([network] * training.members, training)


def _multi_networks(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    if training.freeze_encoder:
        raise ConfigError(
            "freeze_encoder is True, but members of multi_networks have different encoders and "
            "cannot share one; expected False"
        )
    if not training.backbones:
        raise ConfigError(
            "backbones is empty; expected the encoder of each member of multi_networks"
        )
    return _numbered(
        [replace(network, backbone=backbone) for backbone in training.backbones], training
    )


def _numbered(networks: Sequence[NetworkConfig], training: TrainingConfig) -> list[Member]:
    return [
        _member(f"member_{number:02d}", network, training, member_seed(training.seed, number))
        for number, network in enumerate(networks, 1)
    ]


def _learned_error(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return the depth network, and one without a head that predicts its error.

    The error's range is from a millimetre to the width of the depth range.
    """
    depth = _member(DEPTH, network, training, training.seed)
    low, high = network.depth_range
    errors = replace(network, head="none", depth_range=(targets.MIN_ERROR_M, high - low))
    error = _member(ERROR, errors, replace(training, loss="l1"), member_seed(training.seed, 1))
    return [
        depth,
        replace(
            error, guess=constant_error_guess, targets=partial(targets.error_of, DEPTH), helps=True
        ),
    ]


def _self_teaching(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return a teacher, and a student that learns its depth by a likelihood.

    Poggi et al. 2020: the student's head gets the scale.
    """
    loss = "" if training.loss == "nll" else training.loss
    teacher = _member(
        "teacher", replace(network, head="none"), replace(training, loss=loss), training.seed
    )
    student = _member(
        "student", network, replace(training, loss="nll"), member_seed(training.seed, 1)
    )
    return [
        replace(teacher, helps=True),
        replace(student, targets=partial(targets.depth_of, "teacher")),
    ]


def _distilled(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    teacher = read(training.distill)
    if training.loss:
        raise ConfigError(
            f"loss is {training.loss!r}; expected none given, as a mean and a standard deviation "
            "are distilled by a loss of their own"
        )
    if network.input_size != teacher.network.input_size:
        raise ConfigError(
            f"input_size is {network.input_size}, but {training.distill} has "
            f"{teacher.network.input_size}; expected the same to distill it"
        )
    if network.sparse_input != teacher.network.sparse_input:
        raise ConfigError(
            f"sparse_input is {network.sparse_input!r}, but {training.distill} has "
            f"{teacher.network.sparse_input!r}; expected the same to distill it"
        )
    student = _member("best", network, training, training.seed)
    return [
        replace(
            student,
            objective=Objective(losses.distillation),
            targets=partial(targets.prediction_of, training.distill),
        )
    ]


PLANS = {
    **dict.fromkeys(ENSEMBLES, _ensemble),
    "multi_networks": _multi_networks,
    "learned_error": _learned_error,
    "self_teaching": _self_teaching,
    "distilled": _distilled,
}


def member_seed(seed: int, number: int) -> int:
    """Return a member's seed; members of ensembles of neighbouring seeds differ too."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _member(name: str, network: NetworkConfig, training: TrainingConfig, seed: int) -> Member:
    objective = Objective(losses.choose(network, training))
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
    """Return the names of the model's weights after these epochs, the best last.

    The last is used where a single network is needed.
    """
    weights: dict[str, tuple[bool, float]] = {}
    for member, history in zip(plan, histories, strict=False):
        errors = schedule.validation_errors(history)
        for epoch in schedule.saved_epochs(errors, member.training):
            weights[schedule.member_name(epoch, member.training, member.name)] = (
                not member.helps,
                -errors[epoch],
            )
    return sorted(weights, key=weights.__getitem__)
