# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Are images and poses of the same moment? By which offset the corners fit the poses best.

A camera that turns unevenly sees corners move as its poses of the images' true moments say, and
less well as those of other moments do. A common cause is a camera that stamps an image when it has
been sent, not when it was exposed.
"""

from __future__ import annotations

import numpy as np

from uncertainty_depth.core.array_types import Floats

SPAN = 4
"""Images between two that are compared."""
OFFSETS = np.linspace(-1, 1, 17)
"""Offsets that are tried, over the time between two images."""
MIN_TURN_RAD = np.deg2rad(1.0)
"""Smallest turn between two images from which they tell anything."""
MIN_CORNERS = 20
MIN_PAIRS = 10
MIN_ERROR_PX = 0.1
"""Added to the epipolar error: corners are not tracked better than that."""
SURE = 3.0
"""Standard errors by which another offset must fit better than none."""


class TimeOffset:
    """Estimates it over pairs of images that do not overlap; `interval_s` is NaN before any."""

    def __init__(self) -> None:
        self.pairs = 0
        self.interval_s = float("nan")
        self._error = np.zeros(len(OFFSETS))  # sums over the pairs of its logarithm
        self._gain = np.zeros(len(OFFSETS))  # and of how much less it is than without an offset
        self._gain_squared = np.zeros(len(OFFSETS))

    def add(
        self, stamps_s: Floats, poses: Floats, before: Floats, after: Floats, focal_px: float
    ) -> None:
        """Compare two images, and the poses of those about them.

        Poses, (N, 4, 4), are camera to world at N successive `stamps_s`; rays, (C, 3), are those
        of corners in the second image and in the last but one.
        """
        from scipy.spatial.transform import Rotation, Slerp  # loads slowly

        turn = poses[1, :3, :3].T @ poses[-2, :3, :3]
        if len(before) < MIN_CORNERS or np.trace(turn) > 1 + 2 * np.cos(MIN_TURN_RAD):
            return
        interval_s = float(np.median(np.diff(stamps_s)))
        moments = stamps_s[[1, -2]] + OFFSETS[:, None] * interval_s  # of both images, (O, 2)
        moments = np.clip(moments, stamps_s[0], stamps_s[-1]).ravel()
        turns = Slerp(stamps_s, Rotation.from_matrix(poses[:, :3, :3]))(moments).as_matrix()
        places = [np.interp(moments, stamps_s, poses[:, axis, 3]) for axis in range(3)]
        way = np.diff(np.stack(places, axis=-1).reshape(-1, 2, 3), axis=1)
        one, other = before @ turns[::2].transpose(0, 2, 1), after @ turns[1::2].transpose(0, 2, 1)
        normal = np.cross(one, way)
        normal /= np.maximum(np.linalg.norm(normal, axis=2, keepdims=True), 1e-12)
        angle = np.abs((normal * other).sum(axis=2)) / np.linalg.norm(other, axis=2)
        error = np.median(angle, axis=1) * focal_px
        logs = np.log(error + MIN_ERROR_PX)
        gain = logs[len(OFFSETS) // 2] - logs
        self._error += logs
        self._gain += gain
        self._gain_squared += gain**2
        before_s = self.interval_s if self.pairs else 0.0
        self.interval_s = before_s + (interval_s - before_s) / (self.pairs + 1)
        self.pairs += 1

    def seconds(self) -> float:
        """Return what the images' stamps lack to their moments, below 0 if they are late.

        0 if no offset fits better for sure; NaN if too few images tell.
        """
        if self.pairs < MIN_PAIRS:
            return float("nan")
        best = int(np.argmin(self._error))
        mean = self._gain[best] / self.pairs
        variance = self._gain_squared[best] / self.pairs - mean**2
        deviation = np.sqrt(max(variance, 0.0) / self.pairs)
        if mean <= SURE * deviation:
            return 0.0
        offset = OFFSETS[best]
        if 0 < best < len(OFFSETS) - 1:  # the vertex of the parabola through three
            left, middle, right = self._error[best - 1 : best + 2]
            step = OFFSETS[1] - OFFSETS[0]
            offset += step * (left - right) / (2 * max(left - 2 * middle + right, 1e-12))
        return float(offset) * self.interval_s
