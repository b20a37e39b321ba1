# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compute a model's familiarity from its training frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from uncertainty_depth import familiarity
from uncertainty_depth.errors import ModelError, SourceError
from uncertainty_depth.familiarity import Familiarity, pooled
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.deployment import choose_device
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.encoder import download
from uncertainty_depth.training.frames import TrainingFrames

MAX_FRAMES = 4000
MAX_FEATURES = 2048
BATCH = 16


QUANTILE = 0.99
"""Fraction of held-out frames of the training whose score is below 1, if none is an outlier."""
DEVIATIONS = 3.0
"""Robust deviations above the median, of log distances, beyond which no frame counts as familiar.

A few odd frames among those held out would lift the quantile beyond every other camera and place.
"""
SHRINKAGE = 0.1
"""Weight of the unit covariance: with few frames most directions are not known."""
MIN_FRAMES = 20


def fit(training: NDArray[np.floating], held_out: NDArray[np.floating]) -> Familiarity:
    """Return the familiarity with frames like these.

    The held-out frames decide the threshold: frames that the Gaussian was fitted to are nearer.

    Args:
        training: (N, D) features.
        held_out: (M, D) features of frames that the network has not learned from.

    Raises:
        SourceError: there are too few frames, or all have the same features.
    """
    if len(training) < MIN_FRAMES or len(held_out) < 2:
        raise SourceError(
            f"{len(training)} frames to learn from and {len(held_out)} held out; expected at "
            f"least {MIN_FRAMES} and 2 to fit the familiarity"
        )
    values = training.astype(np.float64)
    mean = values.mean(axis=0)
    deviation = values.std(axis=0)
    scale = 1 / np.maximum(deviation, 1e-3 * max(float(deviation.max()), 1e-9))
    covariance = np.cov(((values - mean) * scale).T)
    shrunk = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.eye(len(mean))
    whitening = np.linalg.cholesky(np.linalg.inv(shrunk)).T * scale
    distances = Familiarity(mean, whitening, threshold=1.0).scores(held_out)
    threshold = _threshold(distances)
    if threshold == 0:
        raise SourceError(
            "the features of all frames are equal, as of a network that does not look at the "
            "image; expected an encoder of the image"
        )
    return Familiarity(mean.astype(np.float32), whitening.astype(np.float32), threshold)


def _threshold(distances: NDArray[np.float64]) -> float:
    """Return the smaller of the quantile and the median plus so many robust deviations."""
    quantile = float(np.quantile(distances, QUANTILE))
    if quantile == 0:
        return 0.0
    logs = np.log(np.maximum(distances, 1e-9 * quantile))
    median = np.median(logs)
    deviation = 1.4826 * np.median(np.abs(logs - median))  # sigma of a normal distribution
    return min(quantile, float(np.exp(median + DEVIATIONS * deviation)))


def add_familiarity(
    folder: Path,
    frames: TrainingFrames,
    indices: Sequence[int],
    held_out: Sequence[int],
    device: str = "auto",
) -> Familiarity:
    """Compute the familiarity of a model and write it to its folder.

    Args:
        folder: the model folder.
        frames: training and validation frames.
        indices: the training frames; evenly spaced ones if there are more than `MAX_FRAMES`.
        held_out: the validation frames.
        device: as for training.

    Raises:
        SourceError: there are too few frames.
        ModelError: the network has too many features to tell them apart.
    """
    model = read(folder)
    network = model.load(model.members[-1]).to(choose_device(device))
    selection = indices[:: -(-len(indices) // MAX_FRAMES)]
    fitted = fit(_features(network, frames, selection), _features(network, frames, held_out))
    familiarity.write(model.path, fitted)
    return fitted


@torch.inference_mode()
def _features(
    network: DepthNetwork, frames: TrainingFrames, indices: Sequence[int]
) -> NDArray[np.float32]:
    """Return the features of frames, (N, D)."""
    device = next(network.parameters()).device
    rows = []
    for start in range(0, len(indices), BATCH):
        images, _ = frames.batch(list(indices[start : start + BATCH]), device)
        rows += download([pooled(network.encode(images))])
    features = np.concatenate(rows)
    if features.shape[1] > MAX_FEATURES:
        raise ModelError(
            f"the encoder has {features.shape[1]} features; expected at most {MAX_FEATURES}"
        )
    return features
