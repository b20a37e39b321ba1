# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Statistics of one value a frame: the range of cameras, the drift of scale, unfamiliarity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.metrics.arrays import Floats


class CameraRange:
    """Min and max of focal length over width, and of width over height, of the scored frames.

    Both matter to a network that predicts metric depth.

    Attributes:
        focal_length_per_width: [min, max] of fx / width; None if no camera is known.
        aspect: [min, max] of width / height; None before the first frame.
        size: (width, height) of the last frame, pixels.
    """

    def __init__(self) -> None:
        self.focal_length_per_width: list[float] | None = None
        self.aspect: list[float] | None = None
        self.size: tuple[int, int] | None = None

    def add(self, camera: Camera | None, shape: tuple[int, ...]) -> None:
        """Add the camera of a frame whose maps have this shape, (H, W)."""
        height, width = shape
        self.size = (width, height)
        self.aspect = _widened(self.aspect, width / height)
        if camera is not None:
            focal_length = float(camera.intrinsics[0, 0]) / camera.width
            self.focal_length_per_width = _widened(self.focal_length_per_width, focal_length)

    def as_dict(self) -> dict[str, list[float] | tuple[int, int] | None]:
        """Return it as in `summary.json`."""
        return {
            "size": self.size,
            "focal_length_per_width": self.focal_length_per_width,
            "aspect": self.aspect,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, list[Any] | None]) -> CameraRange:
        """Return the range that `as_dict` gave."""
        cameras = cls()
        cameras.focal_length_per_width = values["focal_length_per_width"]
        cameras.aspect = values["aspect"]
        size = values["size"]
        cameras.size = None if size is None else (size[0], size[1])
        return cameras

    def merge(self, other: CameraRange) -> None:
        """Add the cameras of another evaluation."""
        for value in other.focal_length_per_width or []:
            self.focal_length_per_width = _widened(self.focal_length_per_width, value)
        for value in other.aspect or []:
            self.aspect = _widened(self.aspect, value)
        self.size = other.size or self.size


def _widened(limits: list[float] | None, value: float) -> list[float] | None:
    if not math.isfinite(value):
        return limits
    if limits is None:
        return [value, value]
    return [min(limits[0], value), max(limits[1], value)]


SCALE_SUMS = ("frames", "log", "squared_log", "jumps", "jump", "last_log")


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
        self.sums = np.zeros(len(SCALE_SUMS)) if sums is None else sums.copy()

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


@dataclass
class Unfamiliarity:
    """Sums over the frames whose unfamiliarity is known.

    Attributes:
        frames: how many those are.
        above: how many of them are above 1.
        total: the sum of their scores.
        highest: the largest score.
    """

    frames: int = 0
    above: int = 0
    total: float = 0.0
    highest: float = 0.0

    def add(self, score: float | None) -> None:
        """Add the score of a frame; None where it is not known."""
        if score is None:
            return
        self.frames += 1
        self.above += int(score > 1)
        self.total += score
        self.highest = max(self.highest, score)

    def merge(self, other: Unfamiliarity) -> None:
        """Add the frames of another."""
        self.frames += other.frames
        self.above += other.above
        self.total += other.total
        self.highest = max(self.highest, other.highest)

    def as_dict(self) -> dict[str, Any]:
        """Return it as in `summary.json`: mean and max are null where nothing is known."""
        has_frames = self.frames > 0
        return {
            "frames": self.frames,
            "mean": self.total / self.frames if has_frames else math.nan,
            "max": self.highest if has_frames else math.nan,
            "fraction_above_1": self.above / self.frames if has_frames else math.nan,
        }
