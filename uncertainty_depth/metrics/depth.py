# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Errors in depth.

Eigen, Puhrsch and Fergus, "Depth Map Prediction from a Single Image using a Multi-Scale Deep
Network", NeurIPS 2014. Errors in the inverse depth: Uhrig et al., "Sparsity Invariant CNNs", 3DV
2017, as KITTI's depth completion benchmark reports them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics import checks

NAMES = (
    "mae",
    "abs_rel",
    "sq_rel",
    "rmse",
    "rmse_log",
    "silog",
    "imae",
    "irmse",
    "a1",
    "a2",
    "a3",
)
PER_KM = 1000.0
"""Factor from 1/m to 1/km, KITTI's unit for errors of inverse depth."""
A1_FACTOR = 1.25


def scorable(ground_truth: NDArray, min_depth: float, max_depth: float) -> NDArray[np.bool_]:
    """Return which ground truth is finite, positive and in `[min_depth, max_depth]`."""
    above_min = ground_truth >= min_depth if min_depth > 0 else ground_truth > 0
    return above_min & (ground_truth <= max_depth)


def valid_pixels(
    depth: ArrayLike,
    sigma: ArrayLike,
    ground_truth: ArrayLike,
    min_depth: float,
    max_depth: float,
) -> tuple[NDArray, NDArray, NDArray]:
    """Return the scored pixels, flat: `scorable`, with a finite depth and a sigma >= 0; metres."""
    depths, sigmas, truth = flat_maps(depth=depth, sigma=sigma, ground_truth=ground_truth)
    valid = scorable(truth, min_depth, max_depth) & has_prediction(depths, sigmas)
    return depths[valid], sigmas[valid], truth[valid]


def flat_maps(**maps: ArrayLike) -> list[NDArray]:
    """Return maps flattened, with unchanged types; raise ValueError if their shapes differ."""
    arrays = {name: checks.numbers_of(name, values) for name, values in maps.items()}
    shape = arrays["depth"].shape
    for name, values in arrays.items():
        if values.shape != shape:
            raise ValueError(f"{name} has shape {values.shape}; expected {shape}, that of depth")
    return [values.reshape(-1) for values in arrays.values()]


def has_prediction(depth: NDArray, sigma: NDArray | None) -> NDArray[np.bool_]:
    """Return where depth is finite and sigma, if there is any, finite and not negative."""
    is_finite: NDArray[np.bool_] = np.isfinite(depth)
    return is_finite if sigma is None else is_finite & np.isfinite(sigma) & (sigma >= 0)


@dataclass(frozen=True, eq=False)
class PixelErrors:
    """Every error for every pixel, (N,) float64 each.

    Attributes:
        absolute: `|d - g|`, metres.
        squared: its square.
        relative: `|d - g| / g`.
        log: `ln d - ln g`; -inf if `d <= 0`.
        factor: `max(d / g, g / d)`; +inf if `d <= 0`.
        inverse: `|1 / d - 1 / g|`, 1/m; +inf if `d <= 0`.
        inaccurate: 1 if the factor is 1.25 or more, else 0: the mean is `1 - a1`.
        positive_depth: `max(d, 0)`, metres.
    """

    absolute: Floats
    squared: Floats
    relative: Floats
    log: Floats
    factor: Floats
    inverse: Floats
    inaccurate: Floats
    positive_depth: Floats

    @classmethod
    def of(cls, depth: Floats, ground_truth: Floats) -> PixelErrors:
        """Return the errors that float64 depth has against positive ground truth."""
        absolute = np.abs(depth - ground_truth)
        positive = np.maximum(depth, 0.0)
        with np.errstate(divide="ignore"):
            quotient = positive / ground_truth
            factor = np.maximum(quotient, ground_truth / positive)
            log = np.log(quotient)
            relative = absolute / ground_truth
            inverse = relative / positive
        return cls(
            absolute=absolute,
            squared=absolute * absolute,
            relative=relative,
            log=log,
            factor=factor,
            inverse=inverse,
            inaccurate=(factor >= A1_FACTOR).astype(np.float64),
            positive_depth=positive,
        )


def depth_errors(depth: ArrayLike, ground_truth: ArrayLike) -> dict[str, float]:
    """Return the depth errors of Eigen et al. and of KITTI's depth completion.

    mae, rmse in metres; abs_rel, sq_rel; rmse_log and silog (natural logarithm), silog being the
    standard deviation of `ln d - ln g`; imae and irmse in the inverse depth, 1/km; the fractions
    a1, a2, a3. A depth that is not positive has neither logarithm nor inverse: it makes rmse_log,
    silog, imae and irmse infinite, and is within no factor of the truth.

    Args:
        depth: (N,) predicted depth, metres.
        ground_truth: (N,) positive, metres.

    Returns:
        The eleven metrics by name; all NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a non-finite value, ground truth that is not positive.

    Examples:
        >>> depth_errors(depth=[2.0, 3.0], ground_truth=[1.0, 3.0])["mae"]
        0.5
    """
    depth, ground_truth = checks.flat(depth=depth, ground_truth=ground_truth)
    checks.above_zero(ground_truth=ground_truth)
    if not len(depth):
        return dict.fromkeys(NAMES, math.nan)
    errors = PixelErrors.of(depth, ground_truth)
    is_positive = depth.min() > 0
    means = {
        "mae": errors.absolute.mean(),
        "abs_rel": errors.relative.mean(),
        "sq_rel": (errors.relative * errors.absolute).mean(),
        "rmse": np.sqrt(errors.squared.mean()),
        "rmse_log": np.sqrt((errors.log**2).mean()),
        "silog": errors.log.std() if is_positive else math.inf,
        "imae": PER_KM * errors.inverse.mean(),
        "irmse": PER_KM * np.sqrt((errors.inverse**2).mean()),
        **{f"a{power}": (errors.factor < A1_FACTOR**power).mean() for power in (1, 2, 3)},
    }
    return {name: float(means[name]) for name in NAMES}
