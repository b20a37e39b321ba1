# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Learned error (Moukari et al. 2019): a second network predicts the first's absolute error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.estimators.estimator import Estimate, Estimator, Place
from uncertainty_depth.depth.model_folder.folder import ModelFolder, read_model
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.training.frames import TrainingFrames
from uncertainty_depth.depth.training.objective import Objective
from uncertainty_depth.depth.training.plan import Member, constant_guess, make_member, member_seed

NAME = "learned_error"
DEPTH = "depth"
ERROR = "error"
"""The two members."""


def plan(network: NetworkConfig, training: TrainingConfig) -> list[Member]:
    """Return the depth network, and one without a head that predicts its error.

    The error's range is from a millimetre to the width of the depth range.
    """
    depth = make_member(DEPTH, network, training, training.seed)
    low, high = network.depth_range
    errors = replace(network, head="none", depth_range=(MIN_ERROR_M, high - low))
    error = make_member(ERROR, errors, training, member_seed(training.seed, 1))
    return [
        depth,
        replace(
            error,
            objective=Objective(l1),
            guess=constant_error_guess,
            targets=partial(error_of, DEPTH),
            helps=True,
        ),
    ]


def l1(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the mean of |d - g| over the pixels with ground truth, metres."""
    valid = torch.isfinite(ground_truth_m)
    error = torch.where(valid, depth_m - ground_truth_m, 0.0).float().abs()
    return error.sum() / valid.sum().clamp(min=1)


def constant_error_guess(frames: TrainingFrames) -> tuple[float, float]:
    """Return the median depth's median error, metres, and 1.

    A network that predicts errors starts from these; it has no error of its own.
    """
    depth_m, relative_error = constant_guess(frames)
    return depth_m * relative_error, 1.0


MIN_ERROR_M = 1e-3


class ErrorOf:
    """A network's absolute error in pixels with ground truth, at least a millimetre."""

    def __init__(self, network: DepthNetwork) -> None:
        self.network = network.eval()

    @torch.no_grad()
    def __call__(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """Return (B, 1, h, w), metres, NaN without ground truth."""
        return (self.network(images).depth_m - depth_m).abs().clamp_min(MIN_ERROR_M)


def error_of(member: str, folder: Path, device: torch.device) -> ErrorOf:
    """Return the targets of a member of the model folder."""
    return ErrorOf(read_model(folder).load(member).to(device))


class LearnedError(Estimator):
    """One network's depth; sigma is another network's predicted absolute error, uncalibrated."""

    def __init__(self, error: DepthNetwork, depth: DepthNetwork) -> None:
        self.networks = [error, depth]

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> LearnedError:
        """Load both of the model's members.

        Raises:
            ModelError: the model has no such members.
        """
        if not {ERROR, DEPTH} <= set(model.members):
            raise ModelError(
                f"learned_error needs members {ERROR!r} and {DEPTH!r}, but {model.path} has "
                f"{', '.join(model.members)}; expected another method"
            )
        error, depth = model.load_all([ERROR, DEPTH])
        return cls(place(error), place(depth))

    def compute(
        self, image: Tensor, stamp_ns: int, config: PredictorConfig, numbers: Sequence[int]
    ) -> Estimate:
        """See `Estimator`; depends on the images alone."""
        error, depth = self.networks
        size = image.shape[-2:]
        features = depth.encode(image)
        has_shared_encoder = error.encoder is depth.encoder
        error_features = features if has_shared_encoder else error.encode(image)
        depth_m = depth.decode(features, size).depth_m[0, 0].clone()  # an engine's is overwritten
        error_m = error.decode(error_features, size).depth_m[0, 0]
        return Estimate(depth_m, torch.zeros_like(depth_m), error_m.square(), features)
