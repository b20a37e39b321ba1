# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fit a prediction to the ground truth, up to its median, its scale, or its scale and shift.

A robot has no ground truth, but what it measures: a network's inverse depth without a unit becomes
metres by as few as `MIN_MEASURED` pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.records import DepthPrediction

Mask = NDArray[np.bool_]
Line = tuple[float, float]
MIN_POINTS = 30
"""Pixels with ground truth below which nothing is fitted."""
MIN_MEASURED = 16
"""The same for measured pixels, which are few and whose alignment is corrected after it."""
MAX_POINTS = 20_000
"""About as many are used, evenly spaced: the fit of dense depth must not take a second."""
BEYOND_MEASURED = 2.0
"""Depth at most that measured pixels give a network without a unit, over the farthest of them."""
TRIM = 3.0
"""Residuals beyond this many robust standard deviations are left out of the least squares."""
MAD_TO_SIGMA = 1.4826
TOO_FEW = "too_few_points_to_align"
MAX_STEPS = 50


@dataclass(frozen=True)
class Alignment:
    """The line `scale * prediction + shift`, in depth or in inverse depth.

    The scale is positive.
    """

    scale: float = 1.0
    shift: float = 0.0
    is_inverse: bool = False

    @property
    def depth_scale(self) -> float:
        """The factor on depth that the scale is."""
        return 1 / self.scale if self.is_inverse else self.scale

    def depth_and_sigma(
        self, prediction: NDArray[np.float32], sigma: NDArray[np.float32], max_depth: float
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return aligned depth and sigma, metres, to the first order; none becomes `max_depth`."""
        aligned = self.scale * prediction.astype(np.float64) + self.shift
        scaled_sigma = self.scale * sigma.astype(np.float64)
        if self.is_inverse:
            aligned = 1 / np.maximum(aligned, 1 / max_depth)
            scaled_sigma = scaled_sigma * aligned**2
        return aligned.astype(np.float32), scaled_sigma.astype(np.float32)


def fit(mode: str, prediction: Floats, ground_truth_m: Floats, is_inverse: bool) -> Alignment:
    """Fit a prediction to the ground truth, (N,) metres.

    `median` is the ratio of the two medians (Zhou et al., CVPR 2017). `scale` and `scale_shift`
    are least squares that start from the medians, then leave out residuals beyond `TRIM` robust
    standard deviations until the set stays the same; up to a third of the points may be outliers.
    Inverse depth is fitted as such.
    """
    if len(prediction) < MIN_POINTS:
        raise MessageError(
            TOO_FEW,
            f"{len(prediction)} pixels have a prediction and a ground truth within the depth "
            f"range; expected at least {MIN_POINTS} to align, or --align-per source",
        )
    other = "depth" if is_inverse else "inverse_depth"
    expected = f"one that does, --depth-type {other} if it is recorded so, or --align median"
    return _fit(mode, prediction, ground_truth_m, is_inverse, expected)


def in_metres(inverse: DepthPrediction, measurements: Measurements) -> DepthPrediction:
    """Return the depth and sigma that measured pixels make of inverse depth without a unit.

    Scale and shift are fitted as for a ground truth. What they leave in the median is added to the
    network's own relative sigma, which may be of another size, or 0.

    Raises `MessageError` as `fit`.
    """
    values = inverse.depth_m[measurements.rows, measurements.columns].astype(np.float64)
    is_known = np.isfinite(values)
    values, measured_m = values[is_known], measurements.depth_m[is_known]
    if len(values) < MIN_MEASURED:
        raise MessageError(
            TOO_FEW,
            f"{len(values)} of the {len(measurements)} measured pixels have a prediction; "
            f"expected at least {MIN_MEASURED} for the scale and shift of a network whose inverse "
            "depth has no unit",
        )
    expected = "inverse depth, and measured pixels both near and far"
    line = _fit("scale_shift", values, measured_m, True, expected)
    farthest_m = BEYOND_MEASURED * float(measured_m.max())
    depth_m, sigma_m = line.depth_and_sigma(inverse.depth_m, inverse.sigma_m, farthest_m)
    aligned_m = depth_m[measurements.rows, measurements.columns][is_known]
    left = MAD_TO_SIGMA * float(np.median(np.abs(np.log(measured_m / aligned_m))))
    sigma_m = np.hypot(sigma_m, np.float32(left) * depth_m)
    return replace(inverse, depth_m=depth_m, sigma_m=sigma_m)


def _fit(
    mode: str, prediction: Floats, ground_truth_m: Floats, is_inverse: bool, expected: str
) -> Alignment:
    step = max(len(prediction) // MAX_POINTS, 1)
    prediction = prediction[::step]
    target = 1 / ground_truth_m[::step] if is_inverse else ground_truth_m[::step]
    if mode == "scale_shift":
        scale, shift = _fit_line(prediction, target)
    else:
        median = float(np.median(prediction))
        scale = float(np.median(target)) / median if median else np.inf
        shift = 0.0
        if mode == "scale" and np.isfinite(scale):
            line = (scale, shift)
            scale, _ = _refined(line, prediction, target, _inliers, _through_origin)
    if not (np.isfinite(scale) and scale > 0):
        raise MessageError(
            "alignment_failed",
            f"the alignment has the scale {scale:.3g}: the prediction does not rise with the "
            f"{'inverse ' if is_inverse else ''}depth; expected {expected}",
        )
    return Alignment(float(scale), float(shift), is_inverse)


def _fit_line(prediction: Floats, target: Floats) -> Line:
    """Return scale and shift: first least trimmed squares of one half, then all inliers.

    By concentration steps: Rousseeuw and Van Driessen, Data Mining and Knowledge Discovery, 2006.
    """
    centre = float(np.median(prediction))
    spread = float(np.median(np.abs(prediction - centre)))
    if not spread:
        return np.nan, np.nan
    middle = float(np.median(target))
    rises = np.median((prediction - centre) * (target - middle)) >= 0
    scale = float(np.median(np.abs(target - middle))) / spread * (1 if rises else -1)
    line = (scale, middle - scale * centre)
    line = _refined(line, prediction, target, _smaller_half, _least_squares)
    return _refined(line, prediction, target, _inliers, _least_squares)


def _refined(
    line: Line,
    prediction: Floats,
    target: Floats,
    select: Callable[[Floats], Mask],
    solve: Callable[[Floats, Floats], Line],
) -> Line:
    """Alternate between choosing points by their residuals and solving, until nothing changes."""
    inliers: Mask | None = None
    for _ in range(MAX_STEPS):
        scale, shift = line
        selection = select(np.abs(target - scale * prediction - shift))
        if inliers is not None and np.array_equal(selection, inliers):
            break
        inliers = selection
        line = solve(prediction[inliers], target[inliers])
    return line


def _through_origin(prediction: Floats, target: Floats) -> Line:
    power = float(prediction @ prediction)
    return float(prediction @ target) / power if power else np.nan, 0.0


def _least_squares(prediction: Floats, target: Floats) -> Line:
    centre = prediction.mean()
    deviation = prediction - centre
    variance = float(deviation @ deviation)
    scale = float(deviation @ target) / variance if variance else np.nan
    return scale, float(target.mean() - scale * centre)


def _smaller_half(residual: Floats) -> Mask:
    half = len(residual) // 2 + 1
    return residual <= np.partition(residual, half - 1)[half - 1]


def _inliers(residual: Floats) -> Mask:
    return residual <= TRIM * MAD_TO_SIGMA * np.median(residual)
