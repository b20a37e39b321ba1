# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Methods and networks of the papers that no robot needs, added to the package's own.

Import this module, and `train` and `Predictor` know them.

- `multi_networks` (Moukari et al. 2019): the members have different encoders, given as `--backbone
  tiny,tiny18`.
- `learned_error`: see the module of this name.
- `self_teaching` (Poggi et al. 2020, "On the uncertainty of self-supervised monocular depth
  estimation"): a student learns the depth of its teacher by a likelihood.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from experiments import deep_dropout, learned_error
from experiments.augmented_views import AugmentedViews
from experiments.perturbed_features import (
    FeatureNoise,
    IndependentFeatureNoise,
    IndependentInferenceDropout,
    IndependentMcDropout,
    InferenceDropout,
)
from uncertainty_depth.core.config.predictor import METHODS, TRAINED_METHODS, UNTRAINED_METHODS
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.estimators import ESTIMATORS
from uncertainty_depth.depth.estimators.members import Deterministic, Ensemble
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.hourglass import NETWORKS
from uncertainty_depth.depth.training.plan import (
    HEADS_NEEDED,
    PLANS,
    Member,
    make_member,
    member_seed,
    numbered,
)

SELF_TEACHING = "self_teaching"
MULTI_NETWORKS = "multi_networks"


def self_teaching(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return a teacher, and a student that learns its depth by a likelihood.

    Poggi et al. 2020: the student's head gets the scale.
    """
    teacher = make_member("teacher", replace(network, head="none"), training, training.seed)
    student = make_member("student", network, training, member_seed(training.seed, 1))
    return [
        replace(teacher, helps=True),
        replace(student, targets=partial(depth_of, "teacher")),
    ]


class DepthOf:
    """Depth of the teacher, at every pixel."""

    def __init__(self, network: DepthNetwork) -> None:
        self.network = network.eval()

    @torch.no_grad()
    def __call__(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """Return (B, 1, h, w), metres."""
        return self.network(images).depth_m


def depth_of(member: str, folder: Path, device: torch.device) -> DepthOf:
    """Return the targets of a member of the model folder."""
    return DepthOf(read_model(folder).load(member).to(device))


def multi_networks(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return a network for each encoder that the backbone names, separated by commas.

    Raises:
        ConfigError: they are to share one frozen encoder.
    """
    if training.freeze_encoder:
        raise ConfigError(
            "freeze_encoder is True, but members of multi_networks have different encoders and "
            "cannot share one; expected False"
        )
    backbones = network.backbone.split(",")
    return numbered([replace(network, backbone=backbone) for backbone in backbones], training)


NETWORKS[deep_dropout.NAME] = deep_dropout.DeepHourglass
HEADS_NEEDED[SELF_TEACHING] = "laplace"
PLANS |= {
    SELF_TEACHING: self_teaching,
    MULTI_NETWORKS: multi_networks,
    learned_error.NAME: learned_error.plan,
}
ESTIMATORS |= {
    SELF_TEACHING: Deterministic,
    MULTI_NETWORKS: Ensemble,
    learned_error.NAME: learned_error.LearnedError,
}
for names in (METHODS, TRAINED_METHODS):
    names.extend([SELF_TEACHING, MULTI_NETWORKS, learned_error.NAME])
TRAINING_FREE = {
    "tta": AugmentedViews,
    "inference_dropout": InferenceDropout,
    "feature_noise": FeatureNoise,
    "independent_mc_dropout": IndependentMcDropout,
    "independent_inference_dropout": IndependentInferenceDropout,
    "independent_feature_noise": IndependentFeatureNoise,
}
"""Methods that run on the last network of any model, whatever it was trained for."""
for names in (METHODS, UNTRAINED_METHODS):
    names.extend(TRAINING_FREE)
ESTIMATORS.update(TRAINING_FREE)
