# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of sigma in metres: CRPS, interval score, and the mean width of an interval.

Gneiting and Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation", JASA 2007. The
prediction interval coverage probability (PICP) at a level is `calibration.coverage` of it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.metrics import checks, distributions
from uncertainty_depth.metrics.arrays import Floats, inner
from uncertainty_depth.metrics.distributions import GAUSSIAN, Distribution, folded_normal
from uncertainty_depth.metrics.merci import error_ratio

NOMINAL_LEVEL = 0.95
"""Level of the interval whose score and width are metrics of their own."""
NOMINAL_WIDTHS = {
    name: float(law.half_widths(NOMINAL_LEVEL))
    for name, law in distributions.DISTRIBUTIONS.items()
}


class ScoreSums(NamedTuple):
    """Sums over the pixels, metres.

    Attributes:
        crps: of the continuous ranked probability scores.
        excess: of the errors beyond their interval of `NOMINAL_LEVEL`.
    """

    crps: float
    excess: float


def crps(error: ArrayLike, sigma: ArrayLike, distribution: str = "gaussian") -> float:
    """Return the mean continuous ranked probability score, metres; 0 is best.

    Gaussian: `s (z erf(z / sqrt 2) + 2 phi(z) - 1 / sqrt pi)` with `z = e / s`. Laplace with scale
    `b = s / sqrt 2`: `e + b exp(-e / b) - 3 b / 4`. The score of a certain claim, s = 0, is the
    error. Arguments and errors as in `calibration.coverage`; NaN for N = 0.
    """
    law = distributions.named(distribution)
    error, sigma = _checked(error, sigma)
    if not len(error):
        return math.nan
    return _crps_sum(error, sigma, error_ratio(error, sigma), law) / len(error)


def interval_score(
    error: ArrayLike,
    sigma: ArrayLike,
    level: float = NOMINAL_LEVEL,
    distribution: str = "gaussian",
) -> float:
    """Return the mean score of the central interval of a level, metres; 0 is best.

    `2 h + 2 / (1 - level) max(e - h, 0)`, h being the half width of the interval: its width, and a
    penalty for errors beyond it. Arguments and errors as in `calibration.coverage`; NaN for N = 0.

    Examples:
        >>> round(interval_score(error=[0.0, 3.0], sigma=[1.0, 1.0], level=0.95), 3)
        24.721
    """
    error, sigma = _checked(error, sigma)
    half_width = _half_width(level, distribution)
    if not len(error):
        return math.nan
    excess = _excess(error, sigma, half_width)
    return float(mean_interval_score(half_width * sigma.mean(), excess / len(error), level))


def mpiw(sigma: ArrayLike, level: float = NOMINAL_LEVEL, distribution: str = "gaussian") -> float:
    """Return the mean width of a level's central prediction interval, metres; NaN for N = 0.

    Arguments and errors as in `calibration.coverage`.
    """
    (sigma,) = checks.flat(sigma=sigma)
    checks.at_least_zero(sigma=sigma)
    half_width = _half_width(level, distribution)
    return 2 * half_width * float(sigma.mean()) if len(sigma) else math.nan


def mean_interval_score(
    mean_half_width: Any, mean_excess: Any, level: float = NOMINAL_LEVEL
) -> Any:
    """Return the interval score from two means over the pixels, metres."""
    return 2 * mean_half_width + 2 / (1 - level) * mean_excess


def score_sums(
    error: Floats, sigma: Floats, ratio: Floats, law: Distribution, scale: float = 1.0
) -> ScoreSums:
    """Return the sums of the scores of `scale * sigma`.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) metres, or anything proportional to it.
        ratio: (N,) `error / sigma`.
        law: what sigma claims.
        scale: factor on sigma; 0 claims certainty.
    """
    if not scale:
        total = float(error.sum())
        return ScoreSums(total, total)
    excess = _excess(error, sigma, scale * NOMINAL_WIDTHS[law.name])
    return ScoreSums(_crps_sum(error, sigma, ratio, law, scale), excess)


def binned_score_sums(error: Floats, sigma: Floats, law: Distribution, scale: float) -> ScoreSums:
    """Return `score_sums` from sums of the errors and sigmas of bins of narrow ratio, (B,) each.

    Both scores of a pixel are linear in error and sigma but for the ratio, which the bin shares.
    """
    occupied = (error > 0) | (sigma > 0)
    error = error[occupied]
    sigma = sigma[occupied]
    return score_sums(error, sigma, error_ratio(error, sigma), law, scale)


def _checked(error: ArrayLike, sigma: ArrayLike) -> list[Floats]:
    values = checks.flat(error=error, sigma=sigma)
    checks.at_least_zero(error=values[0], sigma=values[1])
    return values


def _half_width(level: float, distribution: str) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level is {level!r}; expected a number strictly between 0 and 1")
    return float(distributions.named(distribution).half_widths(level))


def _crps_sum(
    error: Floats, sigma: Floats, ratio: Floats, law: Distribution, scale: float = 1.0
) -> float:
    if law is GAUSSIAN:
        density, probability = folded_normal(ratio * (1 / scale))
        spread = inner(sigma, density) - float(sigma.sum()) / math.sqrt(math.pi)
        return inner(error, probability) + scale * spread
    decay = ratio * (-math.sqrt(2) / scale)
    spread = inner(sigma, np.exp(decay, out=decay)) - 0.75 * float(sigma.sum())
    return float(error.sum()) + scale * spread / math.sqrt(2)


def _excess(error: Floats, sigma: Floats, half_width: float) -> float:
    excess = sigma * -half_width
    excess += error
    return float(np.maximum(excess, 0.0, out=excess).sum())
