"""Errors of depth (Eigen, Puhrsch and Fergus, "Depth Map Prediction from a Single Image using a Multi-Scale Deep Network", NeurIPS 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Array, Arrays, arrays_of

DEPTH_ERRORS = ("mae", "abs_rel", "sq_rel", "rmse", "rmse_log", "silog", "a1", "a2", "a3")
A1_FACTOR = 1.25


def valid_pixels(
    depth: Array, sigma: Array, ground_truth: Array, min_depth: float, max_depth: float
) -> tuple[Array, Array, Array]:
    """The pixels that are scored, flat: all three finite, `sigma >= 0`, and ground truth positive and in `[min_depth, max_depth]`.

    Args:
        depth: predicted depth of any shape, metres.
        sigma: predicted standard deviation of the same shape, metres.
        ground_truth: of the same shape, metres, NaN where unknown.
        min_depth: least ground truth that is scored, metres. A ground truth of 0 stands for "none" and is never scored.
        max_depth: greatest ground truth that is scored, metres.

    Raises:
        ValueError: the shapes differ.
    """
    xp = arrays_of(depth, sigma, ground_truth)
    arrays = [
        value if hasattr(value, "reshape") else np.asarray(value)
        for value in (depth, sigma, ground_truth)
    ]
    for name, value in zip(("sigma", "ground_truth"), arrays[1:], strict=True):
        if tuple(value.shape) != tuple(arrays[0].shape):
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}; expected {tuple(arrays[0].shape)}, that of depth"
            )
    depth, sigma, ground_truth = (value.reshape(-1) for value in arrays)
    # Ground truth first: from a LiDAR it is sparse, and NaN compares false.
    scored = ground_truth >= min_depth if min_depth > 0 else ground_truth > 0
    scored &= ground_truth <= max_depth
    if not bool(scored.all()):
        depth, sigma, ground_truth = (
            value[xp.lib.where(scored)[0]] for value in (depth, sigma, ground_truth)
        )
    finite = xp.lib.isfinite(depth) & xp.lib.isfinite(sigma) & (sigma >= 0)
    return (
        (depth, sigma, ground_truth)
        if bool(finite.all())
        else (depth[finite], sigma[finite], ground_truth[finite])
    )


@dataclass(frozen=True, eq=False)
class PixelErrors:
    """Every error of every pixel, (N,) float64 each; computed once and shared by all that is scored.

    Attributes:
        absolute: `|d - g|`, metres.
        squared: its square.
        relative: `|d - g| / g`.
        log: `ln d - ln g`; -inf where `d <= 0`.
        factor: `max(d / g, g / d)`; +inf where `d <= 0`.
        inaccurate: 1 where the factor is 1.25 or more, else 0: the mean is `1 - a1`.
        positive_depth: `max(d, 0)`, metres.
    """

    absolute: Array
    squared: Array
    relative: Array
    log: Array
    factor: Array
    inaccurate: Array
    positive_depth: Array

    @classmethod
    def of(cls, xp: Arrays, depth: Array, ground_truth: Array) -> PixelErrors:
        """From float64 depth and positive ground truth."""
        absolute = abs(depth - ground_truth)
        with np.errstate(divide="ignore"):
            positive = depth.clip(min=0.0) if len(depth) and float(depth.min()) < 0 else depth
            quotient = positive / ground_truth
            factor = xp.lib.maximum(quotient, ground_truth / positive)
            log = xp.lib.log(quotient)
        relative, inaccurate = absolute / ground_truth, xp.floats(factor >= A1_FACTOR)
        return cls(absolute, absolute * absolute, relative, log, factor, inaccurate, positive)


def depth_sums(xp: Arrays, errors: PixelErrors) -> dict[str, float]:
    """The sums that `depth_means` needs: what an accumulator keeps."""
    counts = {
        f"a{power}": float(xp.count(errors.factor < A1_FACTOR**power)) for power in (1, 2, 3)
    }
    return {
        "mae": float(errors.absolute.sum()),
        "abs_rel": float(errors.relative.sum()),
        "sq_rel": float(errors.relative @ errors.absolute),
        "squared": float(errors.squared.sum()),
        "log": float(errors.log.sum()),
        "squared_log": float(errors.log @ errors.log),
        **counts,
    }


def depth_means(sums: dict[str, float], pixels: int) -> dict[str, float]:
    """The depth errors from their sums over `pixels` pixels; NaN for none."""
    if not pixels:
        return dict.fromkeys(DEPTH_ERRORS, math.nan)
    mean = {name: value / pixels for name, value in sums.items()}
    variance = mean["squared_log"] - mean["log"] ** 2 if math.isfinite(mean["log"]) else math.inf
    named = {
        **mean,
        "rmse": math.sqrt(mean["squared"]),
        "rmse_log": math.sqrt(mean["squared_log"]),
        "silog": math.sqrt(max(variance, 0.0)),
    }
    return {name: named[name] for name in DEPTH_ERRORS}


def depth_errors(depth: Array, ground_truth: Array) -> dict[str, float]:
    """The depth errors of Eigen et al.: mae, sq_rel and rmse in metres, abs_rel, rmse_log and silog (natural log), and the shares a1, a2, a3.

    `silog` is the standard deviation of `ln d - ln g`. A depth that is not positive has no logarithm: it makes `rmse_log` and `silog` infinite, and
    is within no factor of the truth.

    Args:
        depth: (N,) predicted depth, metres.
        ground_truth: (N,) positive, metres.

    Returns:
        The nine figures by name; all NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a non-finite value, ground truth that is not positive.
    """
    xp, (depth, ground_truth) = checks.flat(depth=depth, ground_truth=ground_truth)
    checks.above_zero(ground_truth=ground_truth)
    errors = PixelErrors.of(xp, depth, ground_truth)
    return exact_depth_errors(errors, depth_sums(xp, errors))


def exact_depth_errors(errors: PixelErrors, sums: dict[str, float]) -> dict[str, float]:
    """As `depth_errors`, from the pixels' errors and their sums; the variance in two passes, free of cancellation."""
    pixels = len(errors.absolute)
    figures = depth_means(sums, pixels)
    if math.isfinite(figures["silog"]):
        centred = errors.log - sums["log"] / pixels
        figures["silog"] = math.sqrt(float(centred @ centred) / pixels)
    return figures
