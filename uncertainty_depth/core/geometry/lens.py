# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How a lens bends rays, and which ray a point of the image came by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

EQUIDISTANT = "equidistant"
COEFFICIENT_COUNTS = {
    "plumb_bob": (4, 5),
    "rational_polynomial": (4, 5, 8, 12),
    EQUIDISTANT: (4,),
}
MAX_RAY_RADIUS = 2.0**20
"""Rays farther out are not looked for: the angle is within 1e-6 of 90 degrees."""
KNOTS = 1025
MAX_STEPS = 50
"""Newton's method takes about 3 from a table, bisection 42 to `CONVERGED`."""
CONVERGED = 1e-12
COMPLEX_STEP = 1e-30
MAX_TANGENTIAL_STEPS = 8
NEXT_IS_EXACT = 1e-7
"""Newton's error after a step this small is its square."""
NEARLY = 1 - 1e-12  # a polynomial's turn and pole are themselves no place to start from


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

    @np.errstate(all="ignore")  # coordinates without a ray, which become NaN
    def undistorted(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rays, (N, 2), from image coordinates for unit focal length.

        It is the inverse of `distorted`; NaN if no ray within `max_radius` falls there. OpenCV's
        `fisheye.undistortPoints` clamps angles at 90 degrees, and its `undistortPoints` diverges
        in the corners of wide lenses, both in silence.
        """
        image_radius = np.hypot(coordinates[:, 0], coordinates[:, 1])
        radius = self._argument_of(image_radius)
        if self.model == EQUIDISTANT:
            radius = np.tan(radius)
        has_others = self.model != EQUIDISTANT and self._padded[[2, 3, 8, 9, 10, 11]].any()
        if has_others:  # tangential terms reach a little beyond
            radius = np.nan_to_num(radius, nan=0.98 * self._limit)
        scale = np.divide(radius, image_radius, out=np.ones_like(radius), where=image_radius > 0)
        rays = coordinates * scale[:, None]
        if has_others:
            rays = self._with_tangential(rays, coordinates)
        return np.where(np.hypot(*rays.T)[:, None] <= self.max_radius, rays, np.nan)

    @cached_property
    def max_radius(self) -> float:
        """Ray radius up to which rays farther out fall farther out in the image.

        Beyond it, a polynomial fitted to the image folds back: points beside the camera would land
        in the image's middle.
        """
        if self.model != EQUIDISTANT:
            return self._limit
        return float(np.tan(self._limit)) if self._limit < np.pi / 2 else np.inf

    @cached_property
    def _limit(self) -> float:
        """The argument of `_image_radius` from which on it no longer rises."""
        above, below = self._image_radius
        slope = above.deriv() * below - above * below.deriv()
        roots = np.concatenate([slope.roots(), below.roots()]).astype(complex)
        real = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0)]
        return float(real.min(initial=np.pi / 2 if self.model == EQUIDISTANT else np.inf))

    @cached_property
    def _image_radius(self) -> tuple[Polynomial, Polynomial]:
        """Numerator and denominator of the image radius, by the ray's radius or angle."""
        if self.model == EQUIDISTANT:
            k1, k2, k3, k4 = self.coefficients
            return Polynomial([0, 1, 0, k1, 0, k2, 0, k3, 0, k4]), Polynomial([1])
        k1, k2, _, _, k3, k4, k5, k6, *_ = self._padded
        return Polynomial([0, 1, 0, k1, 0, k2, 0, k3]), Polynomial([1, 0, k4, 0, k5, 0, k6])

    def _argument_of(self, image_radius: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what `_image_radius` takes to these radii, from a table; NaN if none."""
        above, below = self._image_radius
        slopes = above.deriv(), below.deriv()
        limit = min(self._limit * NEARLY, MAX_RAY_RADIUS)
        end = min(1.0, limit)
        while end < limit and above(end) / below(end) < image_radius.max(initial=0.0):
            end = min(2 * end, limit)
        table = np.linspace(0, end, KNOTS)
        argument = np.interp(image_radius, above(table) / below(table), table)
        low = argument - table[1]
        high = np.minimum(argument + table[1], end)
        for _ in range(MAX_STEPS):
            denominator = below(argument)
            value = above(argument) / denominator
            low = np.where(value < image_radius, argument, low)
            high = np.where(value > image_radius, argument, high)
            slope = (slopes[0](argument) - value * slopes[1](argument)) / denominator
            new = argument - (value - image_radius) / slope
            new = np.where((new >= low) & (new <= high), new, (low + high) / 2)
            change = np.abs(new - argument).max(initial=0.0)
            argument = new
            if not change > CONVERGED * end:
                break
        return np.where(image_radius <= above(end) / below(end), argument, np.nan)

    def _with_tangential(
        self, rays: NDArray[np.float64], coordinates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the rays by Newton's method, with derivatives by an imaginary step."""
        for _ in range(MAX_TANGENTIAL_STEPS):
            missed = coordinates - self._polynomial(rays)
            by_x = self._polynomial(rays + np.array([COMPLEX_STEP * 1j, 0])).imag / COMPLEX_STEP
            by_y = self._polynomial(rays + np.array([0, COMPLEX_STEP * 1j])).imag / COMPLEX_STEP
            determinant = by_x[:, 0] * by_y[:, 1] - by_y[:, 0] * by_x[:, 1]
            x = (by_y[:, 1] * missed[:, 0] - by_y[:, 0] * missed[:, 1]) / determinant
            y = (by_x[:, 0] * missed[:, 1] - by_x[:, 1] * missed[:, 0]) / determinant
            rays = rays + np.stack([x, y], axis=1)
            change = np.hypot(x, y)
            if change.max(initial=0.0, where=np.isfinite(change)) < NEXT_IS_EXACT:
                break
        return rays

    @property
    def _padded(self) -> NDArray[np.float64]:
        return np.pad(self.coefficients, (0, 12 - len(self.coefficients)))

    def _polynomial(self, rays: NDArray[Any]) -> NDArray[Any]:
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
