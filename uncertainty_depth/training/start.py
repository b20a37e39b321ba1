# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Initial constant prediction: the median depth and error of the frames.

A likelihood is steep where the predicted scale is far too small, and Adam remembers those first,
huge gradients for thousands of steps, in which it hardly moves.
"""

from __future__ import annotations

import math

import numpy as np

from uncertainty_depth.training.frames import TrainingFrames

FRAMES = 256


def constant_guess(frames: TrainingFrames) -> tuple[float, float]:
    """Return the median depth, metres, and its median relative error.

    Of many frames a sample is used.
    """
    depths = frames.depths_m[:: math.ceil(len(frames) / FRAMES)]
    values = np.concatenate([depth[~np.isnan(depth)] for depth in depths]).astype(np.float32)
    median = float(np.median(values))
    return median, float(np.median(np.abs(values - median))) / median


def constant_error_guess(frames: TrainingFrames) -> tuple[float, float]:
    """Return the median error of the median depth, metres, and 1.

    The start of a network that predicts errors, which has no error of its own.
    """
    depth_m, relative_error = constant_guess(frames)
    return depth_m * relative_error, 1.0
