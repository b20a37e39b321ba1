# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How the scale of the predicted depth wanders from frame to frame, in six numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats

SUMS = ("frames", "log", "squared_log", "jumps", "jump", "last_log")


def frame_scale(depth: Floats, ground_truth: Floats) -> float:
    """Return the median of ground truth / depth over (N,) pixels; NaN without positive depth."""
    positive = depth > 0
    if not positive.any():
        return math.nan
    if not positive.all():
        ground_truth = ground_truth[positive]
        depth = depth[positive]
    return float(np.median(ground_truth / depth))


class ScaleDrift:
    """Sums over the logarithms of the frames' scales, in the order of the frames."""

    def __init__(self, sums: NDArray[np.float64] | None = None) -> None:
        """Start without frames, or continue from the sums of an earlier run."""
        self.sums = np.zeros(len(SUMS)) if sums is None else sums.copy()

    def add(self, scale: float) -> None:
        """Add the scale of the next frame; values that are not positive and finite are ignored."""
        if not (math.isfinite(scale) and scale > 0):
            return
        log = math.log(scale)
        frames, _, _, _, _, last = self.sums
        jump = abs(log - last) if frames else 0.0
        self.sums += (1, log, log * log, bool(frames), jump, log - last)

    def merge(self, other: ScaleDrift) -> None:
        """Add the frames of another part; the jump between the parts is not counted."""
        last = other.sums[-1] if other.sums[0] else self.sums[-1]
        self.sums += other.sums
        self.sums[-1] = last

    def as_dict(self) -> dict[str, float]:
        """Return the metrics of the scale; NaN without frames.

        Returns:
            scale: geometric mean of the frames' scales s_t.
            scale_drift: standard deviation of ln s_t over the frames.
            scale_jump: mean of |ln s_t - ln s_(t-1)| over neighbouring frames.
        """
        frames, log, squared_log, jumps, jump, _ = self.sums.tolist()
        mean = log / frames if frames else math.nan
        variance = max(squared_log / frames - mean * mean, 0.0) if frames else math.nan
        return {
            "scale": math.exp(mean) if frames else math.nan,
            "scale_drift": math.sqrt(variance) if frames else math.nan,
            "scale_jump": jump / jumps if jumps else math.nan,
        }
