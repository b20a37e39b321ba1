# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""n-MeRCI, the normalised mean rescaled confidence interval, in three readings.

Moukari, Simon, Picard and Jurie, "n-MeRCI: A new Metric to Evaluate the Correlation Between
Predictive Uncertainty and True Error", IROS 2019, equations 1 and 2, are written over all pixels
("plain"). Its figures withdraw the worst points; which they are is open:

withdrawn
    The 1 - alpha fraction with the largest error: the same pixels for every sigma.
trimmed
    The 1 - alpha fraction with the largest error / sigma. Sigma then chooses what it is not judged
    on, so noise on a sigma improves it: nothing should be ranked by it.

`alpha N` is rounded up after a float64 product, as `numpy.quantile(..., method="inverted_cdf")`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Floats, order_statistic

ALPHAS: Floats = np.arange(1, 21) / 20
"""Fractions of the n-MeRCI curve: 0.05 ... 1."""
ROUNDING = 1e-12
"""A largest error this close to the mean error, relatively, is equal to it: means are rounded."""


class MerciTerms(NamedTuple):
    """What n-MeRCI is computed from.

    Attributes:
        factor: lambda of equation 1.
        mean_sigma: metres.
        mae: mean absolute error, metres.
        max_error: largest error covered, metres.
    """

    factor: float
    mean_sigma: float
    mae: float
    max_error: float


def merci(error: ArrayLike, sigma: ArrayLike, alpha: float = 0.95) -> float:
    """Return the mean length of error bars that cover a fraction alpha of the errors (equation 1).

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) predicted standard deviations, metres, zero allowed.
        alpha: fraction in (0, 1].

    Returns:
        `mean(lambda_alpha * sigma)` over all N; +inf where lambda is infinite; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, alpha out of range.
    """
    error, sigma = _checked(error, sigma)
    number = order_number(alpha, len(error))
    if not number:
        return math.nan
    factor = order_statistic(error_ratio(error, sigma), number)
    return float(rescaled_mean(factor, sigma.mean()))


def n_merci(
    error: ArrayLike,
    sigma: ArrayLike,
    alpha: float = 0.95,
    trimmed: bool = False,
    withdrawn: bool = False,
) -> float:
    """Return n-MeRCI (equation 2): 0 for a sigma equal to the error, 1 for a constant sigma.

    More than 1 is worse than no uncertainty. The scale of sigma does not matter.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) predicted standard deviations, metres, zero allowed.
        alpha: fraction of the pixels to cover, in (0, 1].
        trimmed: keep only the `ceil(alpha N)` pixels with the smallest error / sigma, of equals
            those with the smallest error. This reading rewards noise on sigma.
        withdrawn: keep only the `ceil(alpha N)` pixels with the smallest error, then cover the
            fraction alpha of these. Of equals at the limit the first are kept.

    Returns:
        The metric; +inf where lambda is infinite; NaN for N = 0 and where the largest covered
        error equals the mean error. Negative where errors are so heavy-tailed that their mean lies
        above their alpha quantile.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, alpha out of range, both
            readings.

    Examples:
        >>> error = [0.1, 0.2, 0.3, 0.4]
        >>> n_merci(error, sigma=[1, 2, 3, 4], alpha=1.0)  # proportional to the error
        0.0
        >>> n_merci(error, sigma=[1, 1, 1, 1], alpha=1.0)  # says nothing
        1.0
    """
    errors, sigmas = _checked(error, sigma)
    if trimmed and withdrawn:
        raise ValueError("trimmed and withdrawn are both true; expected at most one reading")
    if withdrawn:
        mask = smallest_errors(errors, order_number(alpha, len(errors)))
        errors = errors[mask]
        sigmas = sigmas[mask]
    number = order_number(alpha, len(errors))
    if not number:
        return math.nan
    ratio = error_ratio(errors, sigmas)
    factor = order_statistic(ratio, number)
    if trimmed:
        return float(normalised(*trimmed_terms(errors, sigmas, ratio, factor, number)))
    max_error = order_statistic(errors, number)
    return float(normalised(factor, sigmas.mean(), errors.mean(), max_error))


def n_merci_curve(
    error: ArrayLike,
    sigma: ArrayLike,
    alphas: Sequence[float] | Floats = ALPHAS,
    trimmed: bool = False,
    withdrawn: bool = False,
) -> Floats:
    """Return n-MeRCI for each of several alphas (paper, figure 2).

    Arguments, values and errors as in `n_merci`; (len(alphas),), all NaN for N = 0.
    """
    error, sigma = _checked(error, sigma)
    return np.array([n_merci(error, sigma, alpha, trimmed, withdrawn) for alpha in alphas])


def _checked(error: ArrayLike, sigma: ArrayLike) -> tuple[Floats, Floats]:
    error, sigma = checks.flat(error=error, sigma=sigma)
    checks.at_least_zero(error=error, sigma=sigma)
    return error, sigma


def order_number(alpha: float, pixels: int) -> int:
    """Return `ceil(alpha N)`: the order statistic that covers a fraction alpha; 0 for no pixel."""
    return math.ceil(checks.fraction("alpha", alpha) * pixels)


def error_ratio(error: Floats, sigma: Floats) -> Floats:
    """Return `error / sigma`; where sigma is 0: 0 for no error, +inf otherwise."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = error / sigma
    if not len(sigma) or sigma.min() > 0:
        return ratio
    return np.where(error == 0, 0.0, ratio)


def rescaled_mean(factor: float | Floats, mean_sigma: float | Floats) -> Floats:
    """Return `mean(lambda sigma)`, infinite with lambda even where every sigma is 0."""
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


def smallest_errors(error: Floats, number: int) -> np.ndarray:
    """Return the mask of the `number` smallest errors; of equals at the limit the first."""
    if number == len(error):
        return np.ones(number, dtype=bool)
    limit = order_statistic(error, number)
    mask = error <= limit
    surplus = int(np.count_nonzero(mask)) - number
    if surplus:
        mask[np.flatnonzero(error == limit)[-surplus:]] = False
    return mask


def trimmed_terms(
    error: Floats, sigma: Floats, ratio: Floats, factor: float, number: int
) -> MerciTerms:
    """Return the terms of equation 2 for the `number` pixels with the smallest ratio.

    Of equals at the limit those with the smallest error are kept.

    Args:
        error: (N,) metres.
        sigma: (N,) metres.
        ratio: (N,) `error / sigma`.
        factor: the `number`-th smallest ratio.
        number: of pixels kept, at least one.
    """
    mask = ratio <= factor
    surplus = int(np.count_nonzero(mask)) - number
    if surplus:
        equal = np.flatnonzero(ratio == factor)
        by_error = equal[np.argsort(error[equal], kind="stable")]
        mask[by_error[-surplus:]] = False
    masked_error = error[mask]
    mean_sigma = float(sigma[mask].sum()) / number
    return MerciTerms(
        factor, mean_sigma, float(masked_error.sum()) / number, float(masked_error.max())
    )
