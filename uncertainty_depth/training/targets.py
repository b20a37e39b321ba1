# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a trained model teaches another network, made from images and ground truth as the other sees them. No gradient goes into the teacher."""

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

LEAST_ERROR_M = 1e-3


class ErrorOf:
    """The first network's absolute error where there is ground truth; one below a millimetre counts as a millimetre."""

    def __init__(self, network: DepthNetwork) -> None:
        self.network = network.eval()

    @torch.no_grad()
    def __call__(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """(B, 1, h, w) metres, NaN where the ground truth is."""
        return (self.network(images).depth_m - depth_m).abs().clamp_min(LEAST_ERROR_M)


class DepthOf:
    """The teacher's depth, at every pixel."""

    def __init__(self, network: DepthNetwork) -> None:
        self.network = network.eval()

    @torch.no_grad()
    def __call__(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """(B, 1, h, w) metres."""
        return self.network(images).depth_m


class PredictionOf:
    """Mean and total standard deviation of any method, at every pixel. mc_dropout drops the same units in every image."""

    def __init__(self, estimator: Estimator, config: PredictorConfig) -> None:
        self.estimator = estimator
        self.config = config

    def __call__(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """(B, 2, h, w) metres."""
        estimates = [self.estimator.estimate(image, 0, self.config) for image in images.split(1)]
        return torch.stack(
            [torch.stack([estimate.depth_m, estimate.variance.sqrt()]) for estimate in estimates]
        )


def error_of(member: str, folder: Path, device: torch.device) -> ErrorOf:
    """Of a member of the model folder."""
    return ErrorOf(read(folder).load(member).to(device))


def depth_of(member: str, folder: Path, device: torch.device) -> DepthOf:
    """Of a member of the model folder."""
    return DepthOf(read(folder).load(member).to(device))


def prediction_of(teacher: Path | str, folder: Path, device: torch.device) -> PredictionOf:
    """Of another model folder, by its own method, with all of its members and without its calibration."""
    model = read(teacher)
    estimator = ESTIMATORS[model.method].load(
        model, partial(prepare, device=device, precision="fp32")
    )
    return PredictionOf(
        estimator, PredictorConfig(samples=max(len(model.members), PredictorConfig().samples))
    )
