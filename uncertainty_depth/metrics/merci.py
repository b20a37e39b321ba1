"""n-MeRCI: normalised mean rescaled confidence interval (Moukari, Simon, Picard and Jurie, "n-MeRCI: A new Metric to Evaluate the Correlation Between
Predictive Uncertainty and True Error", IROS 2019, equations 1 and 2), in both readings of the paper.

`alpha N` is rounded up after a float64 product, as `numpy.quantile(..., method="inverted_cdf")` does it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Array, Arrays, Floats

ALPHAS: Floats = np.arange(1, 21) / 20
"""Shares of the n-MeRCI curve: 0.05 ... 1."""
ROUNDING = 1e-12
"""A largest error this close to the mean error, relatively, is equal to it: the mean of equal numbers is rounded."""


def merci(error: Array, sigma: Array, alpha: float = 0.95) -> float:
    """Mean length of the error bars once rescaled to cover a share `alpha` of the errors, metres: `mean(lambda_alpha * sigma)`.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) predicted standard deviations, metres, zero allowed.
        alpha: share in (0, 1].

    Returns:
        The mean over all N; +inf where lambda is infinite; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, alpha out of range.
    """
    xp, error, sigma = _checked(error, sigma)
    number = order_number(alpha, len(error))
    if not number:
        return math.nan
    return rescaled_mean(xp.smallest(error_ratio(xp, error, sigma), number), float(sigma.mean()))


def n_merci(error: Array, sigma: Array, alpha: float = 0.95, trimmed: bool = False) -> float:
    """n-MeRCI: 0 for a sigma equal to the error, 1 for a constant sigma, more is worse than no uncertainty; blind to the scale of sigma.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) predicted standard deviations, metres, zero allowed.
        alpha: share of the pixels to cover, in (0, 1].
        trimmed: the other reading of the paper: every mean and maximum over the `ceil(alpha N)` pixels with the smallest error / sigma, equals in
            their order.

    Returns:
        The figure; +inf where lambda is infinite; NaN for N = 0 and where the largest covered error equals the mean error. The plain reading goes
        negative where errors are so heavy-tailed that their mean lies above their alpha quantile.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, alpha out of range.
    """
    xp, error, sigma = _checked(error, sigma)
    number = order_number(alpha, len(error))
    if not number:
        return math.nan
    ratio = error_ratio(xp, error, sigma)
    factor = xp.smallest(ratio, number)
    if not trimmed:
        return float(
            normalised(
                factor, float(sigma.mean()), float(error.mean()), xp.smallest(error, number)
            )
        )
    return float(normalised(factor, *trimmed_terms(xp, error, sigma, ratio, factor, number)))


def n_merci_curve(
    error: Array, sigma: Array, alphas: Sequence[float] | Floats = ALPHAS, trimmed: bool = False
) -> Floats:
    """n-MeRCI for many alphas from one sort (paper, figure 4). Arguments, values and errors as in `n_merci`; (len(alphas),), all NaN for N = 0."""
    xp, error, sigma = _checked(error, sigma)
    numbers = np.array([order_number(alpha, len(error)) for alpha in alphas], dtype=np.int64)
    if not len(error):
        return np.full(len(numbers), math.nan)
    ratio = error_ratio(xp, error, sigma)
    if not trimmed:
        factors, largest = (xp.pick(xp.sort(values), numbers - 1) for values in (ratio, error))
        return normalised(factors, float(sigma.mean()), float(error.mean()), largest)
    order = xp.argsort(ratio)
    ordered = error[order]
    factors, largest = (
        xp.pick(values, numbers - 1) for values in (ratio[order], xp.running_maximum(ordered))
    )
    return normalised(
        factors,
        xp.prefix_sums(sigma[order], numbers) / numbers,
        xp.prefix_sums(ordered, numbers) / numbers,
        largest,
    )


def _checked(error: Array, sigma: Array) -> tuple[Arrays, Array, Array]:
    xp, (error, sigma) = checks.flat(error=error, sigma=sigma)
    checks.at_least_zero(error=error, sigma=sigma)
    return xp, error, sigma


def order_number(alpha: float, pixels: int) -> int:
    """`ceil(alpha N)`: the order statistic that covers a share alpha; 0 when there is no pixel."""
    return math.ceil(checks.share("alpha", alpha) * pixels)


def error_ratio(xp: Arrays, error: Array, sigma: Array) -> Array:
    """`error / sigma`; where sigma is 0: 0 for no error, +inf otherwise."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = error / sigma
    return (
        ratio if not len(sigma) or float(sigma.min()) > 0 else xp.lib.where(error == 0, 0.0, ratio)
    )


def rescaled_mean(factor: float | Floats, mean_sigma: float | Floats) -> float | Floats:
    """`mean(lambda sigma)`, infinite with lambda even where every sigma is 0."""
    with np.errstate(invalid="ignore"):
        product = np.where(np.isinf(factor), np.inf, factor * np.asarray(mean_sigma))
    return product if product.ndim else float(product)


def normalised(
    factor: float | Floats,
    mean_sigma: float | Floats,
    mae: float | Floats,
    max_error: float | Floats,
) -> Floats:
    """Equation 2: `(merci - mae) / (max_alpha - mae)`."""
    span = np.asarray(max_error, dtype=np.float64) - mae
    span = np.where(np.abs(span) <= ROUNDING * np.abs(mae), 0.0, span)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (rescaled_mean(factor, mean_sigma) - np.asarray(mae)) / span
    return np.where(span == 0, math.nan, np.where(np.isinf(factor), np.inf, value))


def trimmed_terms(
    xp: Arrays, error: Array, sigma: Array, ratio: Array, factor: float, number: int
) -> tuple[float, float, float]:
    """Mean sigma, mean error and largest error of the trimmed reading, without a sort.

    Kept are all pixels below the factor, and the first of those equal to it until there are `number`.
    """
    below = ratio < factor
    kept, equal = xp.floats(below), xp.lib.where(ratio == factor)[0]
    kept[equal[: number - xp.count(below)]] = 1.0
    return float(sigma @ kept) / number, float(error @ kept) / number, float((error * kept).max())
