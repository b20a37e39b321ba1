# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics on sigma's size: coverage, AUCE, likelihood, CRPS, interval score.

Coverage and its area: Gustafsson, Danelljan and Schon, "Evaluating Scalable Bayesian Deep Learning
Methods for Robust Computer Vision", CVPRW 2020. CRPS and interval score: Gneiting and Raftery,
"Strictly Proper Scoring Rules, Prediction, and Estimation", JASA 2007. A level's coverage is
also known as PICP. Sigma is a Gaussian's or a Laplace distribution's standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import inner
from uncertainty_depth.metrics.merci import error_ratio


@dataclass(frozen=True)
class Distribution:
    """A zero-mean distribution for the signed error with standard deviation sigma.

    Its negative log likelihood is `normaliser + ln sigma + weight (error / sigma)^power`.

    Attributes:
        name: "gaussian" or "laplace".
        power: that of error / sigma.
        weight: before that power.
        normaliser: nats.
    """

    name: str
    power: int
    weight: float
    normaliser: float

    def half_widths(self, levels: ArrayLike) -> Floats:
        """Return each level's central interval's half width, in standard deviations."""
        levels = np.asarray(levels, dtype=np.float64)
        if self.power == 1:
            return -np.log1p(-levels) / math.sqrt(2)
        quantiles = [NormalDist().inv_cdf((1 + level) / 2) for level in levels.reshape(-1)]
        return np.array(quantiles).reshape(levels.shape)

    def coverage(self, half_width: float) -> float:
        """Return the probability that an error is at most this many standard deviations."""
        if self.power == 1:
            return -math.expm1(-math.sqrt(2) * half_width)
        return math.erf(half_width / math.sqrt(2))

    def likely_scale(self, mean_power: ArrayLike) -> Floats:
        """Return the factor on sigma that maximises the errors' likelihood; 0 without any error.

        `mean_power` is the mean of `(error / sigma)^power`, in any shape.
        """
        scale: Floats = (self.power * self.weight * np.asarray(mean_power)) ** (1 / self.power)
        return scale

    def nll(self, mean_log_sigma: ArrayLike, mean_power: ArrayLike) -> Any:
        """Return the mean negative log likelihood, nats, from means of ln sigma and the power."""
        return self.normaliser + np.asarray(mean_log_sigma) + self.weight * np.asarray(mean_power)


GAUSSIAN = Distribution("gaussian", 2, 1 / 2, math.log(2 * math.pi) / 2)
LAPLACE = Distribution("laplace", 1, math.sqrt(2), math.log(2) / 2)
DISTRIBUTIONS = {distribution.name: distribution for distribution in (GAUSSIAN, LAPLACE)}
LEVEL_STEP = 0.01
CONFIDENCE_LEVELS: Floats = np.arange(1, 100) / 100
"""Confidence levels on the reliability curve: 0.01 ... 0.99."""
HALF_WIDTHS = {
    name: distribution.half_widths(CONFIDENCE_LEVELS)
    for name, distribution in DISTRIBUTIONS.items()
}
NOMINAL_LEVEL = 0.95
"""Level whose interval's score and width are metrics themselves."""
SIZE_TOLERANCE = 4 / 3
"""A sigma within this factor of the true deviation has the right size."""
NOMINAL_WIDTHS = {
    name: float(distribution.half_widths(NOMINAL_LEVEL))
    for name, distribution in DISTRIBUTIONS.items()
}


def distribution_of(head: Any) -> str:
    """Return the error's distribution by the network's head; Gaussian without a head."""
    return "laplace" if head == "laplace" else "gaussian"


def of_distribution(name: str, distribution: str) -> str:
    """Return a metric's name under an error distribution: `auce`, `auce_laplace`."""
    return name if distribution == "gaussian" else f"{name}_{distribution}"


def without_distribution(name: str) -> str:
    """Return a metric's name without its distribution's."""
    return name.replace("_laplace", "")


def named(distribution: str) -> Distribution:
    """Return a distribution by its name; raise `ValueError` for an unknown one."""
    return DISTRIBUTIONS[checks.choice("distribution", distribution, tuple(DISTRIBUTIONS))]


def coverage(
    error: ArrayLike, sigma: ArrayLike, p: float | Floats, distribution: str = "gaussian"
) -> float | Floats:
    """Return the fraction of pixels whose error lies in the central interval of probability p.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) standard deviations, metres, zero allowed.
        p: a level in (0, 1), or several.
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
    claimed = named(distribution)
    error, sigma = checks.errors(error, sigma)
    ascending_ratio = np.sort(error_ratio(error, sigma))
    covered = np.searchsorted(ascending_ratio, claimed.half_widths(levels), side="right")
    fractions = covered / np.float64(len(error) or math.nan)
    return fractions if np.ndim(p) else float(fractions[0])


def auce(error: ArrayLike, sigma: ArrayLike, distribution: str = "gaussian") -> float:
    """Return the area under the calibration error curve `|p - coverage(p)|`; 0 is best.

    Gustafsson et al. 2020 use the Gaussian one, which gives 0.074 for a perfectly calibrated
    Laplace sigma; distribution="laplace" gives 0.

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
    """Return the errors' mean negative log likelihood, nats.

    Gaussian: `ln(2 pi s^2) / 2 + e^2 / (2 s^2)`. Laplace: `ln(sqrt(2) s) + sqrt(2) e / s`. A zero
    sigma claims certainty: the result is +inf if any such pixel is in error, and -inf if all are
    exact. Arguments and errors as in `coverage`; NaN for N = 0.
    """
    claimed = named(distribution)
    error, sigma = checks.errors(error, sigma)
    if not len(error):
        return math.nan
    mean_power = power_sum(error_ratio(error, sigma), claimed) / len(error)
    if math.isinf(mean_power):
        return math.inf
    return float(claimed.nll(log_sum(sigma) / len(sigma), mean_power))


def log_sum(sigma: Floats) -> float:
    """Return the sum of `ln sigma`; -inf with a zero sigma."""
    with np.errstate(divide="ignore"):
        return float(np.log(sigma).sum())


def power_sum(ratio: Floats, claimed: Distribution) -> float:
    """Return the sum over `(error / sigma)^power` for a distribution."""
    with np.errstate(over="ignore"):
        return inner(ratio, ratio) if claimed.power == 2 else float(ratio.sum())


def crps(error: ArrayLike, sigma: ArrayLike, distribution: str = "gaussian") -> float:
    """Return the mean continuous ranked probability score, metres; 0 is best.

    Gaussian: `s (z erf(z / sqrt 2) + 2 phi(z) - 1 / sqrt pi)` with `z = e / s`. Laplace with scale
    `b = s / sqrt 2`: `e + b exp(-e / b) - 3 b / 4`. A certain claim's score, s = 0, is the
    error. Arguments and errors as in `coverage`; NaN for N = 0.
    """
    claimed = named(distribution)
    error, sigma = checks.errors(error, sigma)
    if not len(error):
        return math.nan
    return crps_sum(error, sigma, error_ratio(error, sigma), claimed) / len(error)


def crps_sum(
    error: Floats, sigma: Floats, ratio: Floats, claimed: Distribution, scale: float = 1.0
) -> float:
    """Return the summed CRPS for `scale * sigma`, metres.

    Args:
        error: (N,) absolute errors, metres; or sums over bins of nearly equal ratio, as the score
            is linear in error and sigma at a fixed ratio.
        sigma: (N,) metres, or anything proportional to it.
        ratio: (N,) `error / sigma`.
        claimed: the distribution that sigma claims.
        scale: factor on sigma; 0 claims certainty.
    """
    if not scale:
        return float(error.sum())
    if claimed is GAUSSIAN:
        density, probability = folded_normal(ratio * (1 / scale))
        spread = inner(sigma, density) - float(sigma.sum()) / math.sqrt(math.pi)
        return inner(error, probability) + scale * spread
    decay = ratio * (-math.sqrt(2) / scale)
    spread = inner(sigma, np.exp(decay, out=decay)) - 0.75 * float(sigma.sum())
    return float(error.sum()) + scale * spread / math.sqrt(2)


def interval_score(
    error: ArrayLike,
    sigma: ArrayLike,
    level: float = NOMINAL_LEVEL,
    distribution: str = "gaussian",
) -> float:
    """Return the mean score for a level's central interval, metres; 0 is best.

    `2 h + 2 / (1 - level) max(e - h, 0)`, h being the interval's half width: its width, and a
    penalty for errors beyond it. Arguments and errors as in `coverage`; NaN for N = 0.

    Examples:
        >>> round(interval_score(error=[0.0, 3.0], sigma=[1.0, 1.0], level=0.95), 3)
        24.721
    """
    error, sigma = checks.errors(error, sigma)
    half_width = _half_width(level, distribution)
    if not len(error):
        return math.nan
    excess = excess_sum(error, sigma, half_width)
    return float(mean_interval_score(half_width * sigma.mean(), excess / len(error), level))


def mean_interval_score(
    mean_half_width: Any, mean_excess: Any, level: float = NOMINAL_LEVEL
) -> Any:
    """Return the interval score from two means over the pixels, metres."""
    return 2 * mean_half_width + 2 / (1 - level) * mean_excess


def excess_sum(error: Floats, sigma: Floats, half_width: float) -> float:
    """Return the summed errors beyond their intervals, metres."""
    excess = sigma * -half_width
    excess += error
    return float(np.maximum(excess, 0.0, out=excess).sum())


def mpiw(sigma: ArrayLike, level: float = NOMINAL_LEVEL, distribution: str = "gaussian") -> float:
    """Return a level's mean central prediction interval width, metres; NaN for N = 0.

    Arguments and errors as in `coverage`.
    """
    (sigma,) = checks.flat(sigma=sigma)
    checks.at_least_zero(sigma=sigma)
    half_width = _half_width(level, distribution)
    return 2 * half_width * float(sigma.mean()) if len(sigma) else math.nan


def _half_width(level: float, distribution: str) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level is {level!r}; expected a number strictly between 0 and 1")
    return float(named(distribution).half_widths(level))


NORMAL_STEPS = 512
"""Table nodes in each unit: a third-order step from the nearest is exact to 1e-13."""
NORMAL_LIMIT = 9.0
"""Errors beyond this many sigmas have probability 1 in float64."""
_NODES = range(int(NORMAL_LIMIT) * NORMAL_STEPS + 1)
CENTRAL_PROBABILITY: Floats = np.array(
    [math.erf(node / NORMAL_STEPS / math.sqrt(2)) for node in _NODES]
)
"""Probability that `[-z, z]` has at the nodes."""


def folded_normal(standard: Floats) -> tuple[Floats, Floats]:
    """Return density and distribution function for `|Z|`, Z standard normal.

    It takes half as long as SciPy's `erf`.

    Args:
        standard: (N,) values that are not negative, +inf included; overwritten.

    Returns:
        `2 phi(z)`, and `erf(z / sqrt 2)` with an error of at most 1e-13. Both are (N,); beyond 9
        they are constant.
    """
    np.minimum(standard, NORMAL_LIMIT, out=standard)
    density = standard * standard
    density *= -0.5
    np.exp(density, out=density)
    density *= math.sqrt(2 / math.pi)
    node = np.rint(standard * NORMAL_STEPS)
    step = standard - node * (1 / NORMAL_STEPS)
    probability = CENTRAL_PROBABILITY.take(node.astype(np.int64))
    # The series about z itself, whose derivatives are multiples of the density:
    # step (1 + step z / 2 + step^2 (z^2 - 1) / 6) 2 phi(z).
    series = standard * standard
    series -= 1
    series *= step
    series *= 1 / 3
    series += standard
    series *= step
    series *= 0.5
    series += 1
    series *= step
    series *= density
    probability += series
    return density, probability
