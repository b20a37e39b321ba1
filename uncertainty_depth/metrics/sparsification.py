# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sparsification curves, AUSE and AURG, each published convention under its own name.

Pixels are removed from the most uncertain on, and the error of the rest is plotted against the
fraction removed; the oracle removes by the true error, random removal changes nothing. The
conventions are those of `sparsification_variants`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Floats, sorted_order, trapezoid
from uncertainty_depth.metrics.depth import PixelErrors
from uncertainty_depth.metrics.removal_curves import (
    oracle_curve,
    removal_curve,
    statistic_values,
)
from uncertainty_depth.metrics.sparsification_variants import POGGI, VARIANTS, Variant


@dataclass(frozen=True, eq=False)
class Sparsification:
    """The three curves, (K,) each; all NaN for no pixel.

    Attributes:
        variant: name of the convention.
        error: name of the error statistic; "a1" is the fraction outside the factor 1.25, as `1 -
            a1`.
        fractions: fractions removed.
        sparsification: error of the rest when removed by sigma.
        oracle: error of the rest when removed by the true error.
        random: error of the full set, which random removal keeps.
    """

    variant: str
    error: str
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
    depth: ArrayLike,
    sigma: ArrayLike,
    ground_truth: ArrayLike,
    error: str | None = None,
    variant: str = "poggi",
) -> Sparsification:
    """Return the sparsification curves of one set of pixels.

    Args:
        depth: (N,) predicted depth, metres.
        sigma: (N,) standard deviation, metres; only its order matters.
        ground_truth: (N,) positive, metres.
        error: "abs_rel", "rmse" or "a1" for poggi, "rmse" for gustafsson, "mae" for ilg; None
            takes the variant's first.
        variant: "poggi" (per image: call it for each, and average), "gustafsson" or "ilg" (all
            pixels of the set together).

    Returns:
        Curves and areas; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a negative sigma, a non-finite value, an unknown variant, an
            error that the variant is not defined for.

    Examples:
        >>> depth = [1.1, 2.4, 3.0]
        >>> ground_truth = [1.0, 2.0, 3.0]
        >>> sparsification(depth, sigma=[0.1, 0.2, 0.0], ground_truth=ground_truth).ause
        0.0
    """
    convention = VARIANTS[checks.choice("variant", variant, tuple(VARIANTS))]
    name = (
        convention.errors[0]
        if error is None
        else checks.choice(f"error for variant {variant!r}", error, convention.errors)
    )
    depth, sigma, ground_truth = checks.flat(depth=depth, sigma=sigma, ground_truth=ground_truth)
    checks.at_least_zero(sigma=sigma)
    checks.above_zero(ground_truth=ground_truth)
    values = statistic_values(PixelErrors.of(depth, ground_truth), name)
    return curves(
        convention,
        name,
        removal_curve(convention, name, sigma, values[0]),
        oracle_curve(convention, name, *values),
    )


def aurc(error: ArrayLike, sigma: ArrayLike) -> float:
    """Return the area under the curve of risk against coverage, metres; lower is better.

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
    """Return the mean of the running means of values that are sorted by a key, ties shared."""
    numbers = np.arange(1.0, len(values) + 1)
    sums = np.cumsum(values)
    is_last = np.append(ascending_key[1:] != ascending_key[:-1], True)
    if not is_last.all():  # between the ends of a group of equals every order is as likely
        ends = np.flatnonzero(is_last)
        sums = np.interp(numbers, np.append(0, ends + 1), np.append(0.0, sums[ends]))
    return float((sums / numbers).mean())


def curves(convention: Variant, name: str, removal: Floats, oracle: Floats) -> Sparsification:
    """Return the two raw curves closed and normalised as the convention has it."""
    fractions: Floats = convention.fractions
    random: Floats = np.full(len(removal), removal[0])
    if convention.normalised:
        with np.errstate(invalid="ignore"):
            removal = removal / removal[0]
            oracle = oracle / oracle[0]
            random = random / random[0]
    if convention.closed:
        fractions = np.append(fractions, 1)
        removal = np.append(removal, 0)
        oracle = np.append(oracle, 0)
        random = np.append(random, random[0])
    return Sparsification(convention.name, name, fractions, removal, oracle, random)


def poggi_areas(removal: Floats, oracle: Floats) -> tuple[Floats, Floats]:
    """Return AUSE and AURG of raw poggi curves, (..., 50).

    The trapezoids of `Sparsification` as one weighted sum, the appended (1, 0) included.
    """
    weights = np.full(removal.shape[-1], POGGI.fractions[1])
    weights[0] /= 2
    gaps = (removal - oracle) * weights
    return gaps.sum(axis=-1), removal[..., 0] - (removal * weights).sum(axis=-1)
