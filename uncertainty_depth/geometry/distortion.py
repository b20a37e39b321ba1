# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Lens distortion, as `sensor_msgs/distortion_models.hpp` names it and OpenCV defines it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

EQUIDISTANT = "equidistant"
COEFFICIENT_COUNTS = {
    "plumb_bob": (4, 5),
    "rational_polynomial": (4, 5, 8, 12),
    EQUIDISTANT: (4,),
}
UNDISTORTION_STEPS = 100
UNDISTORTION_ERROR = 1e-10


@dataclass(frozen=True, eq=False)
class Distortion:
    """How a lens bends rays. A ray is (x, y) = (X / Z, Y / Z) in the camera's optical frame.

    Attributes:
        model: a key of `COEFFICIENT_COUNTS`.
        coefficients: float64, (k1, k2, p1, p2[, k3[, k4, k5, k6[, s1, s2, s3, s4]]]), or (k1, k2,
            k3, k4) if equidistant.
    """

    model: str
    coefficients: NDArray[np.float64]

    def distorted(self, rays: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return image coordinates of rays for unit focal length, (N, 2); NaN beyond `max_radius`.

        Source: OpenCV's calib3d reference, "Detailed Description", and its fisheye model.
        """
        radius = np.hypot(rays[:, 0], rays[:, 1])
        rays = np.where((radius <= self.max_radius)[:, None], rays, np.nan)
        return self._equidistant(rays) if self.model == EQUIDISTANT else self._polynomial(rays)

    def undistorted(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rays of image coordinates for unit focal length: the inverse of `distorted`."""
        import cv2  # a camera alone does not need it

        points = np.ascontiguousarray(coordinates, dtype=np.float64).reshape(-1, 1, 2)
        stop = cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS
        if self.model == EQUIDISTANT:
            return cv2.fisheye.undistortPoints(points, np.eye(3), self.coefficients).reshape(-1, 2)
        rays = cv2.undistortPointsIter(
            points,
            np.eye(3),
            self.coefficients,
            np.eye(3),
            np.eye(3),
            (stop, UNDISTORTION_STEPS, UNDISTORTION_ERROR),
        )
        return rays.reshape(-1, 2)

    @cached_property
    def max_radius(self) -> float:
        """Ray radius up to which rays farther out fall farther out in the image.

        Beyond it, a polynomial fitted to the image folds back: points beside the camera would land
        in the middle of the image.
        """
        if self.model == EQUIDISTANT:
            k1, k2, k3, k4 = self.coefficients
            image_radius = Polynomial([0, 1, 0, k1, 0, k2, 0, k3, 0, k4])
            angle = _first_positive(np.asarray(image_radius.deriv().roots(), complex))
            return np.tan(angle) if angle < np.pi / 2 else np.inf
        k1, k2, _, _, k3, k4, k5, k6, *_ = self._padded
        above = Polynomial([0, 1, 0, k1, 0, k2, 0, k3])
        below = Polynomial([1, 0, k4, 0, k5, 0, k6])
        slope = above.deriv() * below - above * below.deriv()
        roots = np.concatenate([slope.roots(), below.roots()])
        return _first_positive(np.asarray(roots, complex))

    @property
    def _padded(self) -> NDArray[np.float64]:
        return np.pad(self.coefficients, (0, 12 - len(self.coefficients)))

    def _polynomial(self, rays: NDArray[np.float64]) -> NDArray[np.float64]:
        k1, k2, p1, p2, k3, k4, k5, k6, s1, s2, s3, s4 = self._padded
        x = rays[:, 0]
        y = rays[:, 1]
        r2 = x * x + y * y
        radial = (1 + r2 * (k1 + r2 * (k2 + r2 * k3))) / (1 + r2 * (k4 + r2 * (k5 + r2 * k6)))
        across = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x) + r2 * (s1 + r2 * s2)
        down = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y + r2 * (s3 + r2 * s4)
        return np.stack([across, down], axis=1)

    def _equidistant(self, rays: NDArray[np.float64]) -> NDArray[np.float64]:
        k1, k2, k3, k4 = self.coefficients
        radius = np.hypot(rays[:, 0], rays[:, 1])
        angle = np.arctan(radius)
        a2 = angle * angle
        image_radius = angle * (1 + a2 * (k1 + a2 * (k2 + a2 * (k3 + a2 * k4))))
        scale = np.divide(image_radius, radius, out=np.ones_like(radius), where=radius > 0)
        return rays * scale[:, None]


def _first_positive(roots: NDArray[np.complexfloating]) -> float:
    real = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0)]
    return float(real.min()) if len(real) else np.inf
