# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics on sigma's order: sparsification (AUSE, AURG), risk-coverage, rank correlation.

Pixels are removed from the most uncertain on, and the remaining error is plotted against the
removed fraction. The oracle removes by true error; random removal changes nothing. As in Poggi,
Aleotti, Tosi and Mattoccia, "On the uncertainty of self-supervised monocular depth estimation",
CVPR 2020, and its published evaluation: per image, threshold at a percentile, whose ties are kept,
and a last point (1, 0). Other published conventions give other values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import (
    Integers,
    average_ranks,
    first_sums,
    inner,
    sorted_order,
    trapezoid,
)
from uncertainty_depth.metrics.depth import A1_FACTOR, PixelErrors

STATISTICS = ("abs_rel", "rmse", "a1")
"""Whose curves there are; "a1" is the fraction outside the factor 1.25, as `1 - a1`."""
FRACTIONS: Floats = np.arange(50) / 50
"""Fractions removed."""


@dataclass(frozen=True, eq=False)
class Sparsification:
    """The three curves, (K,) each; all NaN for no pixel.

    Attributes:
        fractions: fractions removed.
        sparsification: error in the rest when removed by sigma.
        oracle: error in the rest when removed by the true error.
        random: error in the full set, which random removal keeps.
    """

    fractions: Floats
    sparsification: Floats
    oracle: Floats
    random: Floats

    @property
    def ause(self) -> float:
        """Area between the sparsification curve and the oracle's; lower is better."""
        return trapezoid(self.sparsification - self.oracle, self.fractions)

    @property
    def aurg(self) -> float:
        """Area between random removal and the sparsification curve; higher is better."""
        return trapezoid(self.random - self.sparsification, self.fractions)


def sparsification(
    depth: ArrayLike, sigma: ArrayLike, ground_truth: ArrayLike, error: str = "abs_rel"
) -> Sparsification:
    """Return the sparsification curves for one image's pixels.

    Args:
        depth: (N,) predicted depth, metres.
        sigma: (N,) standard deviation, metres; only its order matters.
        ground_truth: (N,) positive, metres.
        error: "abs_rel", "rmse" or "a1".

    Returns:
        Curves and areas; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a negative sigma, a non-finite value, an unknown error.

    Examples:
        >>> depth = [1.1, 2.4, 3.0]
        >>> ground_truth = [1.0, 2.0, 3.0]
        >>> sparsification(depth, sigma=[0.1, 0.2, 0.0], ground_truth=ground_truth).ause
        0.0
    """
    row = STATISTICS.index(checks.choice("error", error, STATISTICS))
    depth, sigma, ground_truth = checks.flat(depth=depth, sigma=sigma, ground_truth=ground_truth)
    checks.at_least_zero(sigma=sigma)
    checks.above_zero(ground_truth=ground_truth)
    removal = oracle = np.full(len(FRACTIONS), math.nan)
    if len(sigma):
        order, ascending = sorted_order(sigma)
        errors = PixelErrors.of(depth, ground_truth)
        removal = removal_curves(order, ascending, errors)[row]
        oracle = oracle_curves(errors)[row]
    return Sparsification(
        np.append(FRACTIONS, 1),
        np.append(removal, 0),
        np.append(oracle, 0),
        np.full(len(removal) + 1, removal[0]),
    )


def aurc(error: ArrayLike, sigma: ArrayLike) -> float:
    """Return the area under the risk-coverage curve, metres; lower is better.

    The risk is the mean error of the pixels kept, those with the smallest sigma first: the mean
    over k = 1 ... N of the mean error of the first k. Equal sigmas count as in the mean over all
    their orders. Geifman and El-Yaniv, "Selective Classification for Deep Neural Networks",
    NeurIPS 2017, with the absolute error as the loss.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) standard deviations; only their order matters.

    Returns:
        The area; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value.

    Examples:
        >>> aurc(error=[1.0, 3.0], sigma=[0.1, 0.2])  # the mean of 1 and 2
        1.5
    """
    error, sigma = checks.flat(error=error, sigma=sigma)
    checks.at_least_zero(error=error, sigma=sigma)
    if not len(error):
        return math.nan
    order, ascending = sorted_order(sigma)
    return mean_of_running_means(ascending, error.take(order))


def mean_of_running_means(ascending_key: Floats, values: Floats) -> float:
    """Return the running means' mean, values being sorted by a key and ties shared."""
    numbers = np.arange(1.0, len(values) + 1)
    sums = np.cumsum(values)
    is_last = np.append(ascending_key[1:] != ascending_key[:-1], True)
    if not is_last.all():  # between the ends of a group of equals every order is as likely
        ends = np.flatnonzero(is_last)
        sums = np.interp(numbers, np.append(0, ends + 1), np.append(0.0, sums[ends]))
    return float((sums / numbers).mean())


def spearman(sigma: ArrayLike, error: ArrayLike) -> float:
    """Return Spearman's rank correlation between sigma and error; ties get their ranks' mean.

    Args:
        sigma: (N,) standard deviations.
        error: (N,) absolute errors. The metric is symmetric in the two.

    Returns:
        The correlation; NaN if either is constant, and for N = 0.

    Raises:
        ValueError: wrong shapes, a non-finite value.
    """
    sigma, error = checks.flat(sigma=sigma, error=error)
    if not len(sigma):
        return math.nan
    return correlation(_ranks(sigma), _ranks(error))


def _ranks(values: Floats) -> Floats:
    """Return the values' centred ranks, each in its value's place."""
    order = np.argsort(values)
    result = np.empty(len(values))
    result[order] = average_ranks(values[order])
    return result


def correlation(first: Floats, second: Floats) -> float:
    """Return the correlation between two centred arrays; NaN if one is constant."""
    spread = math.sqrt(inner(first, first) * inner(second, second))
    return inner(first, second) / spread if spread else math.nan


def removal_curves(order: Integers, ascending: Floats, errors: PixelErrors) -> Floats:
    """Return each of `STATISTICS` over the pixels left at each of `FRACTIONS`, (S, K).

    `order` and `ascending` are a key's, by which pixels are removed, as `sorted_order` gives them.
    """
    counts = _remaining_counts(ascending)
    averaged = (errors.relative, errors.squared, errors.inaccurate)
    return _statistics(first_sums(values.take(order), counts) / counts for values in averaged)


def oracle_curves(errors: PixelErrors) -> Floats:
    """Return the best curves that any order can give, (S, K)."""
    factors = np.sort(errors.factor)
    curves = []
    for values in (errors.relative, errors.squared):
        ascending = np.sort(values)
        counts = _remaining_counts(ascending)
        curves.append(first_sums(ascending, counts) / counts)
    counts = _remaining_counts(factors)
    curves.append(np.maximum(counts - np.searchsorted(factors, A1_FACTOR), 0) / counts)
    return _statistics(curves)


def _statistics(means: Iterable[Floats]) -> Floats:
    curves = np.stack(list(means))
    rmse = STATISTICS.index("rmse")
    curves[rmse] = np.sqrt(curves[rmse])
    return curves


def _remaining_counts(ascending: Floats) -> Integers:
    """Return how many sorted pixels are left at each fraction, ties with the threshold kept.

    The thresholds are `-key`'s percentiles, negated, rounded as NumPy does it.
    """
    number = len(ascending)
    position = FRACTIONS * (number - 1)
    below = position.astype(np.int64)
    weight = position - below
    near, far = ascending[number - 1 - np.minimum((below, below + 1), number - 1)]
    with np.errstate(invalid="ignore"):
        step = far - near
        values = np.where(weight >= 0.5, far - step * (1 - weight), near + step * weight)
    return np.searchsorted(ascending, np.where(near == far, near, values), "right")


def ause_and_aurg(removal: Floats, oracle: Floats) -> tuple[Floats, Floats]:
    """Return AUSE and AURG from curves, (..., 50), the appended (1, 0) included."""
    weights = np.full(removal.shape[-1], FRACTIONS[1])
    weights[0] /= 2
    gaps = (removal - oracle) * weights
    return gaps.sum(axis=-1), removal[..., 0] - (removal * weights).sum(axis=-1)
