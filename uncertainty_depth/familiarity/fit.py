# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fit the familiarity of a model to features of the frames that it was trained on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import SourceError
from uncertainty_depth.familiarity.gauge import Familiarity

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
