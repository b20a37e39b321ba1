# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""n-MeRCI, the normalised mean rescaled confidence interval.

Moukari, Simon, Picard and Jurie, "n-MeRCI: A new Metric to Evaluate the Correlation Between
Predictive Uncertainty and True Error", IROS 2019, equations 1 and 2, over all pixels. `alpha N` is
rounded up after a float64 product, as `numpy.quantile(..., method="inverted_cdf")`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import order_statistic

ROUNDING = 1e-12
"""A largest error this close to the mean error, relatively, is equal to it: means are rounded."""


def merci(error: ArrayLike, sigma: ArrayLike, alpha: float = 0.95) -> float:
    """Return the mean length that error bars need to cover a fraction alpha (equation 1).

    Arguments and errors as in `n_merci`; +inf if lambda is infinite; NaN for N = 0.
    """
    error, sigma = checks.errors(error, sigma)
    number = order_number(alpha, len(error))
    if not number:
        return math.nan
    factor = order_statistic(error_ratio(error, sigma), number)
    return float(rescaled_mean(factor, sigma.mean()))


def n_merci(error: ArrayLike, sigma: ArrayLike, alpha: float = 0.95) -> float:
    """Return n-MeRCI (equation 2): 0 for a sigma equal to the error, 1 for a constant sigma.

    More than 1 is worse than no uncertainty. Sigma's scale does not matter.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) predicted standard deviations, metres, zero allowed.
        alpha: fraction of the pixels to cover, in (0, 1].

    Returns:
        The metric; +inf if lambda is infinite; NaN for N = 0, or if the largest covered error
        equals the mean error. Negative if errors are so heavy-tailed that their mean lies above
        their alpha quantile.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, alpha out of range.

    Examples:
        >>> error = [0.1, 0.2, 0.3, 0.4]
        >>> n_merci(error, sigma=[1, 2, 3, 4], alpha=1.0)  # proportional to the error
        0.0
        >>> n_merci(error, sigma=[1, 1, 1, 1], alpha=1.0)  # says nothing
        1.0
    """
    errors, sigmas = checks.errors(error, sigma)
    number = order_number(alpha, len(errors))
    if not number:
        return math.nan
    factor = order_statistic(error_ratio(errors, sigmas), number)
    max_error = order_statistic(errors, number)
    return float(normalised(factor, sigmas.mean(), errors.mean(), max_error))


def order_number(alpha: float, pixels: int) -> int:
    """Return `ceil(alpha N)`: the order statistic that covers a fraction alpha; 0 for no pixel."""
    return math.ceil(checks.fraction("alpha", alpha) * pixels)


def at_shares(ascending: Floats, shares: ArrayLike) -> Floats:
    """Return the smallest sorted values, e.g. `error / sigma`, that each share does not exceed."""
    numbers = np.ceil(np.asarray(shares) * len(ascending)).astype(np.int64)
    values: Floats = ascending[numbers - 1]
    return values


def error_ratio(error: Floats, sigma: Floats) -> Floats:
    """Return `error / sigma`; if sigma is 0, 0 for no error, else +inf."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = error / sigma
    if not len(sigma) or sigma.min() > 0:
        return ratio
    return np.where(error == 0, 0.0, ratio)


def rescaled_mean(factor: float | Floats, mean_sigma: float | Floats) -> Floats:
    """Return `mean(lambda sigma)`, infinite if lambda is, even if every sigma is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(factor), np.inf, factor * np.asarray(mean_sigma))


def normalised(
    factor: float | Floats,
    mean_sigma: float | Floats,
    mae: float | Floats,
    max_error: float | Floats,
) -> Floats:
    """Return equation 2: `(merci - mae) / (max_alpha - mae)`."""
    span = np.asarray(max_error, dtype=np.float64) - mae
    span = np.where(np.abs(span) <= ROUNDING * np.abs(mae), 0.0, span)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (rescaled_mean(factor, mean_sigma) - np.asarray(mae)) / span
    return np.where(span == 0, math.nan, np.where(np.isinf(factor), np.inf, value))
