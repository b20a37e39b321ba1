# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a network learns, losses and the targets of students, and one epoch of it.

Every loss takes (B, 1, h, w) tensors in metres, with NaN for unknown ground truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.deployment import has_bfloat16, prepare
from uncertainty_depth.depth.networks.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.depth.training.frames import TrainingFrames, augment

Loss = Callable[[Tensor, Tensor | None, Tensor], Tensor]
Targets = Callable[[Tensor, Tensor], Tensor]
"""Function of images (B, 3, h, w) and ground truth (B, 1, h, w) that returns the targets.

These are (B, 1 or more, h, w), metres, NaN where unknown.
"""


def log_l1(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the mean of |ln d - ln g|: a relative error costs the same near and far."""
    valid, depth, truth = _supervised(ground_truth_m, depth_m)
    return _mean((depth.log() - truth.log()).abs(), valid)


def laplace_nll(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the mean of ln 2b + |d - g| / b: the Laplace negative log-likelihood."""
    valid, depth, truth, scale = _supervised(ground_truth_m, depth_m, _required(scale_m))
    return _mean((2 * scale).log() + (depth - truth).abs() / scale, valid)


def gaussian_nll(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the mean Gaussian negative log-likelihood of mean d and standard deviation s."""
    valid, depth, truth, scale = _supervised(ground_truth_m, depth_m, _required(scale_m))
    return _mean(
        0.5 * math.log(2 * math.pi) + scale.log() + 0.5 * ((depth - truth) / scale).square(),
        valid,
    )


def distillation(depth_m: Tensor, scale_m: Tensor | None, targets_m: Tensor) -> Tensor:
    """Return the mean of |ln d - ln m| + |ln s - ln t| for a teacher's mean m and sigma t.

    m and t are the targets' two channels.

    The same relative error costs the same everywhere, in depth and in sigma; a sigma below the
    smallest that a head can give counts as that.
    """
    mean = targets_m[:, :1]
    sigma = targets_m[:, 1:]
    depth_error = (depth_m.log() - mean.log()).abs()
    return (
        depth_error
        + (_required(scale_m).log() - sigma.maximum(RELATIVE_SCALE[0] * mean).log()).abs()
    ).mean()


LOSSES: dict[str, Loss] = {"none": log_l1, "laplace": laplace_nll, "gaussian": gaussian_nll}
"""Loss by the network's head: its likelihood, or without a head the logarithm's error."""


def _supervised(ground_truth_m: Tensor, depth_m: Tensor, *maps: Tensor) -> list[Tensor]:
    """Return the mask of truth, and float32 maps, 1 outside: selecting makes a GPU wait."""
    valid = torch.isfinite(ground_truth_m)
    return [
        valid,
        *(torch.where(valid, values, 1.0).float() for values in (depth_m, ground_truth_m, *maps)),
    ]


def _mean(values: Tensor, valid: Tensor) -> Tensor:
    return (values * valid).sum() / valid.sum().clamp(min=1)


def _required(scale_m: Tensor | None) -> Tensor:
    if scale_m is None:
        raise ConfigError(
            "the network outputs no scale for the likelihood loss; expected a network with head "
            "'laplace' or 'gaussian'"
        )
    return scale_m


def ground_truth(images: Tensor, depth_m: Tensor) -> Tensor:
    """Return the ground truth: the targets of a network that learns from measurements."""
    return depth_m


@dataclass(frozen=True)
class Objective:
    """Called with a network, images and ground truth: the mean loss against the targets."""

    loss: Loss
    targets: Targets = ground_truth

    def __call__(self, network: nn.Module, images: Tensor, depth_m: Tensor) -> Tensor:
        """Return the loss, a scalar, for images (B, 3, h, w) in [0, 1] and depth in metres."""
        targets = self.targets(images, depth_m)
        device = images.device
        # bfloat16 is taken if it is faster; it needs no loss scaling.
        with torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device)):
            output = network(images)
        return self.loss(output.depth_m, output.scale_m, targets)


def prediction_of(teacher: Path | str, folder: Path, device: torch.device) -> Targets:
    """Return another model's targets, all members', uncalibrated: (B, 2, h, w) mean and sigma, m.

    mc_dropout drops the same units in every image.
    """
    from uncertainty_depth.depth.estimators import ESTIMATORS  # which only a distillation needs

    model = read_model(teacher)
    place = partial(prepare, device=device, precision="fp32")
    estimator = ESTIMATORS[model.method].load(model, place)
    samples = max(len(model.members), PredictorConfig().samples)
    config = PredictorConfig(samples=samples)

    def targets(images: Tensor, depth_m: Tensor) -> Tensor:
        estimates = [estimator.estimate(image, 0, config) for image in images.split(1)]
        return torch.stack([estimate.stacked() for estimate in estimates])

    return targets


def train_epoch(
    network: DepthNetwork,
    optimizer: torch.optim.Optimizer,
    objective: Objective,
    frames: TrainingFrames,
    indices: Sequence[int],
    training: TrainingConfig,
    epoch: int,
    progress: tqdm,
    average: AveragedModel | None = None,
) -> float:
    """Train on each frame of `indices` once, in random order, and return the mean loss.

    `average` follows the network's weights.

    All randomness comes from `training.seed` and `epoch`, so a resumed training draws the same
    numbers. No step waits for a GPU, so the next batch is read while the GPU computes.

    Raises `ConfigError`: the loss is no longer finite.
    """
    seed = int(np.random.SeedSequence([training.seed, epoch]).generate_state(1)[0])
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # dropout
    order = [
        indices[position]
        for position in torch.randperm(len(indices), generator=generator).tolist()
    ]
    device = next(network.parameters()).device
    total = torch.zeros((), device=device)
    for batch in batches(order, training.batch_size):
        images, depth_m = frames.batch(batch, device)
        if training.augment:
            other_cameras = network.config.canonical_focal_length > 0
            images, depth_m = augment(images, depth_m, generator, other_cameras)
        images, depth_m = network.training_input(images, depth_m, generator)
        loss = objective(network, images, depth_m)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(batch)
        if average is not None:
            average.update_parameters(network)
        progress.update()
    mean_loss = total.item() / len(indices)  # the epoch's only value that is waited for
    if not math.isfinite(mean_loss):
        raise ConfigError(
            f"the training loss became {mean_loss}; expected a learning_rate below "
            f"{training.learning_rate} to keep it finite"
        )
    return mean_loss


def batches(order: Sequence[int], batch_size: int) -> list[list[int]]:
    """Return batches of nearly equal size: one frame alone would break batch normalisation."""
    count = math.ceil(len(order) / batch_size)
    return [part.tolist() for part in np.array_split(np.asarray(order), count)]


@torch.inference_mode()
def validate(
    network: DepthNetwork,
    objective: Objective,
    frames: TrainingFrames,
    indices: Sequence[int],
    batch_size: int,
) -> dict[str, float]:
    """Return validation_loss, abs_rel, rmse and rmse_log over pixels with a target, float32."""
    device = next(network.parameters()).device
    network.eval()
    generator = torch.Generator().manual_seed(0)  # the same inputs in every epoch
    sums = torch.zeros(4, dtype=torch.float64)
    count = 0
    for batch in batches(indices, batch_size):
        images, truth = network.training_input(*frames.batch(batch, device), generator)
        targets = objective.targets(images, truth)
        output = network(images)
        valid = torch.isfinite(targets[:, :1])
        pixels = int(valid.sum())
        depth_m = output.depth_m[valid].double()
        truth_m = targets[:, :1][valid].double()
        error = depth_m - truth_m
        log_error = depth_m.log() - truth_m.log()
        loss = objective.loss(output.depth_m, output.scale_m, targets).double()
        errors = [(error.abs() / truth_m).sum(), error.square().sum(), log_error.square().sum()]
        sums += torch.stack([loss * pixels, *errors]).cpu()
        count += pixels
    mean_loss, abs_rel, mean_square, mean_square_log = (sums / count).tolist()
    return {
        "validation_loss": mean_loss,
        "abs_rel": abs_rel,
        "rmse": math.sqrt(mean_square),
        "rmse_log": math.sqrt(mean_square_log),
    }
