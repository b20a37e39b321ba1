# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth whose scale follows the known depth of the frames before, a few frames late.

On real images a third to a half of the variance of log(true / predicted depth) is common to all
pixels of a frame. No sigma of a pixel can say it and no averaging removes it, but the frames
before had nearly the same. The estimate is of the model's own scale: the factor that was in force
is divided out, so there is no loop that could oscillate.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.records import DepthPrediction, Frame

GAIN = 0.7
"""Weight of the newest frame. The scale of a drive loses half its correlation within some ten
frames, so a longer memory follows worse than it averages."""
MIN_PIXELS = 20
"""Pixels with known depth below which a frame says nothing about its scale."""
DELAY_FRAMES = 2
"""Frames after which an estimate is in use: image to depth, to score, to depth node."""
MAX_FACTOR = 2.0
"""Between published depth and the model's own, either way."""


def frame_log_scale(
    depth_m: NDArray[np.floating], ground_truth_m: NDArray[np.floating]
) -> float | None:
    """Return the median of ln(true / predicted depth); None for fewer than `MIN_PIXELS` pixels.

    Args:
        depth_m: (H, W), metres, NaN where there is no value.
        ground_truth_m: (H, W), metres, NaN where unknown.
    """
    valid = np.isfinite(ground_truth_m) & np.isfinite(depth_m)
    if np.count_nonzero(valid) < MIN_PIXELS:
        return None
    ratio: NDArray[np.floating] = ground_truth_m[valid] / depth_m[valid]
    return math.log(float(np.median(ratio)))


class FollowedScale:
    """A mapping from frames, in the order of time, to depth and sigma at the followed scale.

    A frame without ground truth is scaled too, and says nothing about the scale. No frame is
    scaled by its own ground truth.
    """

    def __init__(self, predict: Callable[[Frame], DepthPrediction]) -> None:
        """Take what returns a frame's own prediction."""
        self._predict = predict
        self._waiting: deque[tuple[Frame, DepthPrediction]] = deque()
        self._log_scale: float | None = None

    def __call__(self, frame: Frame) -> DepthPrediction:
        """Return the prediction of the next frame."""
        own = self._predict(frame)
        if len(self._waiting) >= DELAY_FRAMES:
            self._learn(*self._waiting.popleft())
        self._waiting.append((frame, own))
        if self._log_scale is None:
            return own
        limit = math.log(MAX_FACTOR)
        factor = np.float32(math.exp(min(max(self._log_scale, -limit), limit)))
        return replace(own, depth_m=factor * own.depth_m, sigma_m=factor * own.sigma_m)

    def _learn(self, frame: Frame, own: DepthPrediction) -> None:
        if frame.ground_truth_m is None:
            return
        log_scale = frame_log_scale(own.depth_m, frame.ground_truth_m)
        if log_scale is None:
            return
        before = log_scale if self._log_scale is None else self._log_scale
        self._log_scale = before + GAIN * (log_scale - before)
