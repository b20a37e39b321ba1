# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Train for one epoch, and compute the errors on the validation frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.training.frames import (
    VALIDATION_SEED,
    TrainingFrames,
    augment,
    with_sparse_input,
)
from uncertainty_depth.depth.training.objective import Objective
from uncertainty_depth.sigma.sparse_depth import parse


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

    Raises:
        ConfigError: the loss is no longer finite.
    """
    seed = int(np.random.SeedSequence([training.seed, epoch]).generate_state(1)[0])
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # dropout
    order = [
        indices[position]
        for position in torch.randperm(len(indices), generator=generator).tolist()
    ]
    device = _device(network)
    sparse_input = parse(network.config.sparse_input)
    total = torch.zeros((), device=device)
    for batch in _batches(order, training.batch_size):
        images, depth_m = frames.batch(batch, device)
        if training.augment:
            other_cameras = network.config.canonical_focal_length > 0
            images, depth_m = augment(images, depth_m, generator, other_cameras)
        if sparse_input is not None:
            images, depth_m = with_sparse_input(images, depth_m, sparse_input, generator)
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


def batches_per_epoch(count: int, batch_size: int) -> int:
    """Return the number of batches per epoch for `count` frames."""
    return math.ceil(count / batch_size)


def _batches(order: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yield batches of nearly equal size: one frame alone would break batch normalisation."""
    yield from (
        part.tolist()
        for part in np.array_split(np.asarray(order), batches_per_epoch(len(order), batch_size))
    )


def _device(network: nn.Module) -> torch.device:
    return next(network.parameters()).device


@torch.inference_mode()
def validate(
    network: DepthNetwork,
    objective: Objective,
    frames: TrainingFrames,
    indices: Sequence[int],
    batch_size: int,
) -> dict[str, float]:
    """Return validation_loss, abs_rel, rmse and rmse_log over pixels with a target, float32."""
    device = _device(network)
    network.eval()
    sparse_input = parse(network.config.sparse_input)
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    sums = torch.zeros(4, dtype=torch.float64)
    count = 0
    for batch in _batches(indices, batch_size):
        images, truth = frames.batch(batch, device)
        if sparse_input is not None:  # the same pixels in every epoch
            images, truth = with_sparse_input(images, truth, sparse_input, generator)
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
