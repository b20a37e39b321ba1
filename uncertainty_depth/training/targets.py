# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Targets of a student, computed by a trained model without gradients."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.inference.deployment import prepare
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty import ESTIMATORS
from uncertainty_depth.uncertainty.estimator import Estimator

MIN_ERROR_M = 1e-3


class ErrorOf:
    """Absolute error of a network where there is ground truth, at least a millimetre."""

    def __init__(self, network: DepthNetwork) -> None:
        self.network = network.eval()

    @torch.no_grad()
    def __call__(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """Return (B, 1, h, w), metres, NaN without ground truth."""
        return (self.network(images).depth_m - depth_m).abs().clamp_min(MIN_ERROR_M)


class DepthOf:
    """Depth of the teacher, at every pixel."""

    def __init__(self, network: DepthNetwork) -> None:
        self.network = network.eval()

    @torch.no_grad()
    def __call__(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """Return (B, 1, h, w), metres."""
        return self.network(images).depth_m


class PredictionOf:
    """Mean and total standard deviation of any method, at every pixel.

    mc_dropout drops the same units in every image.
    """

    def __init__(self, estimator: Estimator, config: PredictorConfig) -> None:
        self.estimator = estimator
        self.config = config

    def __call__(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """Return mean and sigma, (B, 2, h, w), metres."""
        estimates = [self.estimator.estimate(image, 0, self.config) for image in images.split(1)]
        return torch.stack([estimate.stacked() for estimate in estimates])


def error_of(member: str, folder: Path, device: torch.device) -> ErrorOf:
    """Return the targets of a member of the model folder."""
    return ErrorOf(read(folder).load(member).to(device))


def depth_of(member: str, folder: Path, device: torch.device) -> DepthOf:
    """Return the targets of a member of the model folder."""
    return DepthOf(read(folder).load(member).to(device))


def prediction_of(teacher: Path | str, folder: Path, device: torch.device) -> PredictionOf:
    """Return the targets of another model: its own method and all members, uncalibrated."""
    model = read(teacher)
    estimator = ESTIMATORS[model.method].load(
        model, partial(prepare, device=device, precision="fp32")
    )
    return PredictionOf(
        estimator, PredictorConfig(samples=max(len(model.members), PredictorConfig().samples))
    )
