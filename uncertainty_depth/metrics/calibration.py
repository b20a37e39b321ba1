"""Does sigma have the right size, and the right order: coverage, AUCE, negative log likelihood, rank correlation, Gaussian divergence."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Array, Arrays, Floats
from uncertainty_depth.metrics.merci import error_ratio

LEVELS: Floats = np.arange(1, 100) / 100
"""Confidence levels of the reliability curve: 0.01 ... 0.99."""


def half_widths(levels: Floats) -> Floats:
    """Half width of the central Gaussian interval of each level, in standard deviations."""
    return np.array([NormalDist().inv_cdf((1 + level) / 2) for level in levels])


HALF_WIDTHS = half_widths(LEVELS)


def coverage(error: Array, sigma: Array, p: float | Floats) -> float | Floats:
    """Share of the pixels whose error lies within the central Gaussian interval of probability p: `e <= Phi^-1((1 + p) / 2) sigma`.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) standard deviations, metres, zero allowed.
        p: a level in (0, 1), or an array of them.

    Returns:
        A share for each level, NaN for N = 0. The comparison is made on `e / sigma`, so that one sort serves every level.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, a level out of range.
    """
    levels = np.atleast_1d(np.asarray(p, dtype=np.float64))
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"p is {p!r}; expected levels strictly between 0 and 1")
    xp, (error, sigma) = checks.flat(error=error, sigma=sigma)
    checks.at_least_zero(error=error, sigma=sigma)
    shares = covered(xp, xp.sort(error_ratio(xp, error, sigma)), half_widths(levels)) / np.float64(
        len(error) or math.nan
    )
    return shares if np.ndim(p) else float(shares[0])


def covered(xp: Arrays, ascending_ratio: Array, widths: Floats) -> np.ndarray:
    """How many of the sorted ratios e / sigma lie within each half width."""
    return xp.positions(ascending_ratio, widths, "right")


def auce(error: Array, sigma: Array) -> float:
    """Area under the calibration error curve `|p - coverage(p)|`, p = 0.01 ... 0.99, trapezoid: 0 is calibrated.

    Gustafsson, Danelljan and Schon, "Evaluating Scalable Bayesian Deep Learning Methods for Robust Computer Vision", CVPRW 2020. Arguments and
    errors as in `coverage`; NaN for N = 0.
    """
    return area_of_miscoverage(coverage(error, sigma, LEVELS))


def area_of_miscoverage(shares: Floats) -> float:
    """AUCE from the shares covered at `LEVELS`."""
    return trapezoid(np.abs(LEVELS - shares), LEVELS)


def trapezoid(values: Floats, positions: Floats) -> float:
    """Integral by the trapezoid rule."""
    return float(((values[1:] + values[:-1]) * np.diff(positions)).sum() / 2)


def nll(error: Array, sigma: Array) -> float:
    """Mean negative log likelihood of the errors under a zero-mean Gaussian of variance `sigma^2`, nats: `ln(2 pi s^2) / 2 + e^2 / (2 s^2)`.

    A zero sigma is a certain claim: +inf as soon as one such pixel is in error; -inf where all of them are right.
    Arguments and errors as in `coverage`; NaN for N = 0.
    """
    xp, (error, sigma) = checks.flat(error=error, sigma=sigma)
    checks.at_least_zero(error=error, sigma=sigma)
    return gaussian_nll(len(error), *nll_sums(xp, sigma, error_ratio(xp, error, sigma)))


def nll_sums(xp: Arrays, sigma: Array, ratio: Array) -> tuple[float, float]:
    """Sums of `ln sigma` and of `(e / sigma)^2`: all that the likelihood needs. -inf and +inf with a zero sigma."""
    with np.errstate(divide="ignore", over="ignore"):
        return float(xp.lib.log(sigma).sum()), float(ratio @ ratio)


def gaussian_nll(pixels: int, log_sigma: float, squared_ratio: float) -> float:
    """The mean from its sums; an infinite penalty outweighs an infinite reward."""
    if not pixels:
        return math.nan
    if math.isinf(squared_ratio):
        return math.inf
    return math.log(2 * math.pi) / 2 + (log_sigma + squared_ratio / 2) / pixels


def spearman(sigma: Array, error: Array) -> float:
    """Spearman's rank correlation of sigma and error, equals sharing the mean of their ranks; NaN where either is constant and for N = 0.

    Args:
        sigma: (N,) standard deviations.
        error: (N,) absolute errors. The measure is symmetric in the two.

    Raises:
        ValueError: wrong shapes, a non-finite value.
    """
    xp, (sigma, error) = checks.flat(sigma=sigma, error=error)
    if not len(sigma):
        return math.nan
    order, ascending = xp.ordered(sigma)
    return correlation(
        xp.average_ranks(ascending), ranks_in_place(xp, *xp.ordered(error)).take(order)
    )


def ranks_in_place(xp: Arrays, order: Array, ascending: Array) -> Array:
    """Centred ranks of the elements where they were before they were sorted."""
    ranks = xp.lib.empty_like(ascending)
    ranks[order] = xp.average_ranks(ascending)
    return ranks


def correlation(first: Array, second: Array) -> float:
    """Correlation of two centred arrays; NaN where one is constant."""
    spread = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / spread if spread else math.nan


def kl_divergence(mean_p: Array, sigma_p: Array, mean_q: Array, sigma_q: Array) -> float:
    """Mean Kullback-Leibler divergence KL(p || q) of Gaussians p from Gaussians q, nats.

    `ln(sigma_q / sigma_p) + (sigma_p^2 + (mean_p - mean_q)^2) / (2 sigma_q^2) - 1/2`, averaged over the elements.

    Args:
        mean_p: (N,) means of p.
        sigma_p: (N,) positive standard deviations of p.
        mean_q: (N,) means of q.
        sigma_q: (N,) positive standard deviations of q.

    Returns:
        The mean; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a non-finite value, a sigma that is not positive.
    """
    xp, (mean_p, sigma_p, mean_q, sigma_q) = checks.flat(
        mean_p=mean_p, sigma_p=sigma_p, mean_q=mean_q, sigma_q=sigma_q
    )
    checks.above_zero(sigma_p=sigma_p, sigma_q=sigma_q)
    if not len(mean_p):
        return math.nan
    spread, shift = sigma_p / sigma_q, (mean_p - mean_q) / sigma_q
    return float(((spread * spread + shift * shift - 1) / 2 - xp.lib.log(spread)).mean())
