"""The networks that make a model: what each is, and what sets it apart from the others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.training import losses, schedule
from uncertainty_depth.training.objective import Objective

logger = logging.getLogger(__name__)

NEEDS_HEAD = ("log_likelihood",)
ENSEMBLES = ("multi_inits", "bagging", "adversarial_ensemble", "multi_networks")


@dataclass(frozen=True)
class Member:
    """One network to train.

    Attributes:
        name: what its weights are called in the model folder, and its curves where there are several members.
        network: its architecture.
        training: how it is trained; `seed` is its own: initial weights, order, augmentation, dropout, bootstrap sample.
        encoder_seed: initial weights of the encoder; members that share a frozen one have the same.
        objective: what it is trained for.
        bootstrap: whether it sees as many of the training frames as there are, drawn with replacement, instead of each once.
    """

    name: str
    network: NetworkConfig
    training: TrainingConfig
    encoder_seed: int
    objective: Objective
    bootstrap: bool = False

    def frames(self, indices: Sequence[int]) -> list[int]:
        """Those of the training frames that this member sees, sorted; all, or a bootstrap sample of the same size (Breiman 1996)."""
        if not self.bootstrap:
            return list(indices)
        return sorted(np.random.default_rng(self.training.seed).choice(indices, len(indices)).tolist())


def settle(network: NetworkConfig, training: TrainingConfig) -> NetworkConfig:
    """The architecture with what the method cannot do without."""
    if training.method in NEEDS_HEAD and network.head == "none":
        logger.info("%s needs a head: it gets a Laplace head", training.method)
        return replace(network, head="laplace")
    return network


def make_plan(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """The members of a model in the order they are trained in.

    Raises:
        ConfigError: the options contradict each other.
    """
    if training.method == "multi_networks" and training.freeze_encoder:
        raise ConfigError("freeze_encoder is True, but members of multi_networks have different encoders and cannot share one; expected False")
    if training.method not in ENSEMBLES:
        return [_member("best", network, training, training.seed)]
    backbones = training.backbones if training.method == "multi_networks" else (network.backbone,) * training.members
    if not backbones:
        raise ConfigError("backbones is empty; expected the encoder of each member of multi_networks")
    return [
        _member(f"member_{number:02d}", replace(network, backbone=backbone), training, member_seed(training.seed, number))
        for number, backbone in enumerate(backbones, 1)
    ]


def member_seed(seed: int, number: int) -> int:
    """Members of one ensemble, and of ensembles of neighbouring seeds, all get different seeds."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _member(name: str, network: NetworkConfig, training: TrainingConfig, seed: int) -> Member:
    step = training.adversarial_step if training.method == "adversarial_ensemble" else 0.0
    objective = Objective(losses.choose(network, training), adversarial_step=step)
    encoder_seed = training.seed if training.freeze_encoder else seed
    return Member(name, network, replace(training, seed=seed), encoder_seed, objective, training.method == "bagging")


def served(plan: Sequence[Member], histories: Sequence[Sequence[dict[str, float]]]) -> list[str]:
    """Names of the weights that make the model after these epochs of each member, the best last: the one taken where a single network is needed."""
    weights = {}
    for member, history in zip(plan, histories, strict=False):
        errors = schedule.validation_errors(history)
        for epoch in schedule.kept_epochs(errors, member.training):
            weights[schedule.member_name(epoch, member.training, member.name)] = errors[epoch]
    return sorted(weights, key=lambda name: -weights[name])
