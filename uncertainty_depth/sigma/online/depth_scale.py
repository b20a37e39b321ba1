# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth's scale: one factor per frame, which LiDAR sees and an image does not.

On real images a third to a half of the variance of log(true / predicted depth) is common to all
pixels of a frame. No sigma of a pixel can say it and no averaging removes it, but the frames
before had nearly the same.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAIN = 0.7
"""Weight of the newest frame. The scale of a drive loses half its correlation within some ten
frames, so a longer memory follows worse than it averages."""
MIN_PIXELS = 20
"""Pixels with known depth below which a frame says nothing about its scale."""
RECENT_FRAMES = 30
"""Frames that `scale_sigma` is the root mean square of."""
LIMIT = 64.0
"""Largest factor that is estimated, either way."""


@dataclass(frozen=True)
class DepthScale:
    """What is known about the depth's scale.

    Attributes:
        factor: true depth over the model's own.
        scale_sigma: root mean square of ln(true / published depth) over the last frames: 0.1 is an
            error of 10 % of the depth, common to all pixels of a frame.
    """

    factor: float
    scale_sigma: float


def frame_log_scale(
    depth_m: NDArray[np.floating], ground_truth_m: NDArray[np.floating]
) -> float | None:
    """Return ln of the median of true / predicted depth; None below `MIN_PIXELS` pixels."""
    valid = (ground_truth_m > 0) & (depth_m > 0)
    if np.count_nonzero(valid) < MIN_PIXELS:
        return None
    with np.errstate(over="ignore"):
        ratio = float(np.median(ground_truth_m[valid] / depth_m[valid]))
    return math.log(min(max(ratio, 1 / LIMIT), LIMIT))


class ScaleEstimate:
    """Estimates the scale of a model's own depth, frame by frame: an exponential average.

    The factor that was in force is divided out, so there is no loop that could oscillate.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self._log_scale: float | None = None
        self._missing: deque[float] = deque(maxlen=RECENT_FRAMES)

    def add(
        self,
        depth_m: NDArray[np.floating],
        ground_truth_m: NDArray[np.floating],
        factor: float = 1.0,
    ) -> DepthScale | None:
        """Add a frame's (N,) published depth and truth, metres; return the estimate.

        It is None if too few pixels are known. `factor` was in force when the depth was published.
        """
        missing = frame_log_scale(depth_m, ground_truth_m)
        if missing is None:
            return None
        self._missing.append(missing)
        own = min(max(missing + math.log(factor), -math.log(LIMIT)), math.log(LIMIT))
        before = own if self._log_scale is None else self._log_scale
        self._log_scale = before + GAIN * (own - before)
        scale_sigma = math.sqrt(float(np.mean(np.square(self._missing))))
        return DepthScale(math.exp(self._log_scale), scale_sigma)
