# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The size and the order of sigma: coverage, AUCE, likelihood, rank correlation, divergence."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.metrics import checks, distributions
from uncertainty_depth.metrics.arrays import Floats, Integers, average_ranks, inner
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS, LEVEL_STEP, Distribution
from uncertainty_depth.metrics.merci import error_ratio


def coverage(
    error: ArrayLike, sigma: ArrayLike, p: float | Floats, distribution: str = "gaussian"
) -> float | Floats:
    """Return the fraction of pixels whose error lies in the central interval of probability p.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) standard deviations, metres, zero allowed.
        p: a level in (0, 1), or an array of them.
        distribution: "gaussian", interval `Phi^-1((1 + p) / 2) sigma`, or "laplace",
            `-ln(1 - p) sigma / sqrt(2)`.

    Returns:
        A fraction for each level, NaN for N = 0. The comparison is made on `error / sigma`, so
        that one sort serves every level.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, a level out of range, an unknown
            distribution.
    """
    levels = np.atleast_1d(np.asarray(p, dtype=np.float64))
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"p is {p!r}; expected levels strictly between 0 and 1")
    law = distributions.named(distribution)
    error, sigma = checks.flat(error=error, sigma=sigma)
    checks.at_least_zero(error=error, sigma=sigma)
    ascending_ratio = np.sort(error_ratio(error, sigma))
    covered = covered_pixels(ascending_ratio, law.half_widths(levels))
    fractions = covered / np.float64(len(error) or math.nan)
    return fractions if np.ndim(p) else float(fractions[0])


def covered_pixels(ascending_ratio: Floats, half_widths: Floats) -> Integers:
    """Return the number of the sorted ratios `error / sigma` within each half width."""
    return np.searchsorted(ascending_ratio, half_widths, side="right")


def auce(error: ArrayLike, sigma: ArrayLike, distribution: str = "gaussian") -> float:
    """Return the area under the calibration error curve `|p - coverage(p)|`; 0 is best.

    Gustafsson, Danelljan and Schon, "Evaluating Scalable Bayesian Deep Learning Methods for Robust
    Computer Vision", CVPRW 2020, is the Gaussian one. A perfectly calibrated Laplace sigma has
    0.074 there, and 0 with distribution="laplace".

    Arguments and errors as in `coverage`; trapezoid rule; NaN for N = 0.

    Examples:
        >>> round(auce(error=[1.0, 2.0], sigma=[0.0, 0.0]), 2)  # covers nothing
        0.49
    """
    fractions = np.asarray(coverage(error, sigma, CONFIDENCE_LEVELS, distribution))
    return float(area_of_miscoverage(fractions))


def area_of_miscoverage(fractions: Floats) -> Floats:
    """Return AUCE from the fractions covered at `CONFIDENCE_LEVELS`, (..., 99) to (...)."""
    gaps = np.abs(CONFIDENCE_LEVELS - fractions)
    return (gaps.sum(axis=-1) - (gaps[..., 0] + gaps[..., -1]) / 2) * LEVEL_STEP


def nll(error: ArrayLike, sigma: ArrayLike, distribution: str = "gaussian") -> float:
    """Return the mean negative log likelihood of the errors, nats.

    Gaussian: `ln(2 pi s^2) / 2 + e^2 / (2 s^2)`. Laplace: `ln(sqrt(2) s) + sqrt(2) e / s`.
    A zero sigma is a certain claim: +inf as soon as one such pixel is in error; -inf where all of
    them are right. Arguments and errors as in `coverage`; NaN for N = 0.
    """
    law = distributions.named(distribution)
    error, sigma = checks.flat(error=error, sigma=sigma)
    checks.at_least_zero(error=error, sigma=sigma)
    ratio = error_ratio(error, sigma)
    return law.mean_nll(len(error), log_sum(sigma), power_sum(ratio, law))


def log_sum(sigma: Floats) -> float:
    """Return the sum of `ln sigma`; -inf with a zero sigma."""
    with np.errstate(divide="ignore"):
        return float(np.log(sigma).sum())


def power_sum(ratio: Floats, law: Distribution) -> float:
    """Return the sum of `(error / sigma)^power` of a distribution."""
    with np.errstate(over="ignore"):
        return inner(ratio, ratio) if law.power == 2 else float(ratio.sum())


def spearman(sigma: ArrayLike, error: ArrayLike) -> float:
    """Return Spearman's rank correlation of sigma and error; ties get the mean of their ranks.

    Args:
        sigma: (N,) standard deviations.
        error: (N,) absolute errors. The metric is symmetric in the two.

    Returns:
        The correlation; NaN where either is constant, and for N = 0.

    Raises:
        ValueError: wrong shapes, a non-finite value.
    """
    sigma, error = checks.flat(sigma=sigma, error=error)
    if not len(sigma):
        return math.nan
    return correlation(ranks(sigma), ranks(error))


def ranks(values: Floats) -> Floats:
    """Return the centred ranks of the values, each in the place of its value."""
    order = np.argsort(values)
    result = np.empty(len(values))
    result[order] = average_ranks(values[order])
    return result


def correlation(first: Floats, second: Floats) -> float:
    """Return the correlation of two centred arrays; NaN where one is constant."""
    spread = math.sqrt(inner(first, first) * inner(second, second))
    return inner(first, second) / spread if spread else math.nan


def kl_divergence(
    mean_p: ArrayLike, sigma_p: ArrayLike, mean_q: ArrayLike, sigma_q: ArrayLike
) -> float:
    """Return the mean Kullback-Leibler divergence KL(p || q) of Gaussians p and q, nats.

    `ln(sigma_q / sigma_p) + (sigma_p^2 + (mean_p - mean_q)^2) / (2 sigma_q^2) - 1/2`.

    Args:
        mean_p: (N,) means of p.
        sigma_p: (N,) positive standard deviations of p.
        mean_q: (N,) means of q.
        sigma_q: (N,) positive standard deviations of q.

    Returns:
        The mean over the elements; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a non-finite value, a sigma that is not positive.
    """
    mean_p, sigma_p, mean_q, sigma_q = checks.flat(
        mean_p=mean_p, sigma_p=sigma_p, mean_q=mean_q, sigma_q=sigma_q
    )
    checks.above_zero(sigma_p=sigma_p, sigma_q=sigma_q)
    if not len(mean_p):
        return math.nan
    spread = sigma_p / sigma_q
    shift = (mean_p - mean_q) / sigma_q
    return float(((spread * spread + shift * shift - 1) / 2 - np.log(spread)).mean())
