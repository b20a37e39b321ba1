# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compute a model's familiarity from its training frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from uncertainty_depth.core.errors import ModelError, SourceError
from uncertainty_depth.depth import familiarity
from uncertainty_depth.depth.familiarity import Familiarity, pooled
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.deployment import choose_device
from uncertainty_depth.depth.networks.encoder import download
from uncertainty_depth.depth.training.frames import TrainingFrames

MAX_FRAMES = 4000
MAX_FEATURES = 2048
BATCH = 16
BLOCKS = 16
"""Blocks of consecutive frames, each held out in turn: neighbours show one world or room."""
PLACE = 4
"""Neighbouring frames whose mean stands for that of a place."""
ONE_IN_TEN = 1.282
ONE_IN_HUNDRED = 2.326
"""Quantiles of a normal distribution."""
SHRINKAGE = 0.1
"""Weight of the unit covariance: with few frames most directions are not known."""
MIN_FRAMES = 20


def fit(features: NDArray[np.floating]) -> Familiarity:
    """Return the familiarity with frames like these, by (N, D) features in the recording's order.

    Its limits are quantiles of held-out blocks' distances to the Gaussian of the others, as if
    their logarithm were normal, by its median and median deviation: a few frames in each training
    set are odd, and a quantile of the values would lie beyond other cameras and places. As these
    few count, a little more than 1 % of new frames are above the threshold.

    Raises `SourceError`: there are too few frames, or all have the same features.
    """
    if len(features) < MIN_FRAMES:
        raise SourceError(
            f"{len(features)} frames; expected at least {MIN_FRAMES} to fit the familiarity"
        )
    values = features.astype(np.float64)
    blocks = np.arange(len(values)) * BLOCKS // len(values)
    distances = np.empty(len(values))
    for block in range(BLOCKS):
        is_held_out = blocks == block
        gaussian = Familiarity(*_gaussian(values[~is_held_out]), 1.0)
        distances[is_held_out] = gaussian.scores(values[is_held_out])
    if not distances.any():
        raise SourceError(
            "the features of all frames are equal, as of a network that does not look at the "
            "image; expected an encoder of the image"
        )
    threshold = _quantile(distances, ONE_IN_HUNDRED)
    places = distances[: len(distances) // PLACE * PLACE].reshape(-1, PLACE).mean(axis=1)
    mean, whitening = _gaussian(values)
    return Familiarity(
        mean.astype(np.float32),
        whitening.astype(np.float32),
        threshold,
        (
            _quantile(places, ONE_IN_TEN) / threshold,
            _quantile(places, ONE_IN_HUNDRED) / threshold,
        ),
    )


def _quantile(distances: NDArray[np.float64], deviations: float) -> float:
    """Return a quantile of log-normal distances, so many deviations above their median."""
    logs = np.log(np.maximum(distances, 1e-9 * distances.max()))
    median = np.median(logs)
    deviation = 1.4826 * np.median(np.abs(logs - median))  # sigma of a normal distribution
    return float(np.exp(median + deviations * deviation))


def _gaussian(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean (D,) and whitening (D, D) of (N, D) features."""
    mean = values.mean(axis=0)
    deviation = values.std(axis=0)
    scale = 1 / np.maximum(deviation, 1e-3 * max(float(deviation.max()), 1e-9))
    covariance = np.cov(((values - mean) * scale).T)
    shrunk = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.eye(len(mean))
    return mean, np.linalg.cholesky(np.linalg.inv(shrunk)).T * scale


def add_familiarity(folder: Path, frames: TrainingFrames, device: str = "auto") -> Familiarity:
    """Compute a model's familiarity and write it to its folder.

    At most `MAX_FRAMES` of the training's frames are used, evenly spaced.

    Raises:
        SourceError: there are too few frames.
        ModelError: the network has too many features to tell them apart.
    """
    model = read_model(folder)
    place = choose_device(device)
    network = model.load(model.members[-1]).to(place)
    selection = range(0, len(frames), -(-len(frames) // MAX_FRAMES))
    rows = []
    with torch.inference_mode():
        for start in range(0, len(selection), BATCH):
            images, _ = frames.batch(selection[start : start + BATCH], place)
            rows += download([pooled(network.encode(images))])
    features = np.concatenate(rows)
    if features.shape[1] > MAX_FEATURES:
        raise ModelError(
            f"the encoder has {features.shape[1]} features; expected at most {MAX_FEATURES}"
        )
    fitted = fit(features)
    familiarity.write(model.path, fitted)
    return fitted
