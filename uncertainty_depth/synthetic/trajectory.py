# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The robot's drive: laps of a smooth closed curve at constant speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS = 24  # points per span of the curve


@dataclass(frozen=True, eq=False)
class Drive:
    """Position of the robot over time.

    Attributes:
        path: (P, 2) points of the closed curve, metres, first not repeated.
        speed: metres per second.
        start: metres along the curve at time 0.
    """

    path: NDArray[np.float64]
    speed: float
    start: float

    def pose(self, time_s: float) -> tuple[float, float, float]:
        """Return (x, y, yaw) at a time, metres and radians; the robot looks where it drives."""
        closed = np.vstack([self.path, self.path[:1]])
        steps = np.diff(closed, axis=0)
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*steps.T))])
        at = (self.start + self.speed * time_s) % along[-1]
        heading = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
        middle = (along[1:] + along[:-1]) / 2
        turn = 2 * np.pi * np.round((heading[-1] - heading[0]) / (2 * np.pi))
        middle = np.concatenate([[middle[-1] - along[-1]], middle, [middle[0] + along[-1]]])
        heading = np.concatenate([[heading[-1] - turn], heading, [heading[0] + turn]])
        return (
            float(np.interp(at, along, closed[:, 0])),
            float(np.interp(at, along, closed[:, 1])),
            float(np.interp(at, middle, heading)),
        )


def smooth_loop(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the closed uniform cubic B-spline of (C, 2) control points, (STEPS * C, 2).

    It stays in the convex hull of each four neighbouring points.
    """
    s = np.arange(STEPS)[:, None] / STEPS
    cubics = [(1 - s) ** 3, 3 * s**3 - 6 * s**2 + 4, -3 * s**3 + 3 * s**2 + 3 * s + 1, s**3]
    basis = np.stack(cubics) / 6
    spans = []
    for i in range(len(corners)):
        span = np.zeros((STEPS, 2))
        for k in range(4):
            span += basis[k] * corners[(i + k) % len(corners)]
        spans.append(span)
    return np.concatenate(spans)
