# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Where training starts from: the best constant depth and error, instead of the middle of the network's range.

A likelihood is steep where the predicted scale is far too small, and Adam remembers those first,
huge gradients for thousands of steps, in which it hardly moves.
"""

from __future__ import annotations

import math

import numpy as np

from uncertainty_depth.training.frames import TrainingFrames

FRAMES = 256


def constant_guess(frames: TrainingFrames) -> tuple[float, float]:
    """Median depth of the frames, metres, and the median of its error as a share of it; of some frames where there are many."""
    depths = frames.depths_m[:: math.ceil(len(frames) / FRAMES)]
    known = np.concatenate([depth[~np.isnan(depth)] for depth in depths]).astype(np.float32)
    median = float(np.median(known))
    return median, float(np.median(np.abs(known - median))) / median


def constant_error_guess(frames: TrainingFrames) -> tuple[float, float]:
    """Median error of that median depth, metres: where a network that predicts errors starts; it has no error of its own."""
    depth_m, relative_error = constant_guess(frames)
    return depth_m * relative_error, 1.0
