# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics on sigma's order: sparsification (AUSE, AURG), risk-coverage, rank correlation.

Pixels are removed from the most uncertain on, and the remaining error is plotted against the
removed fraction. The oracle removes by true error; random removal changes nothing. Published
conventions differ in the following, so each has its own name, and a value means nothing without
it:

poggi
    Poggi, Aleotti, Tosi and Mattoccia, "On the uncertainty of self-supervised monocular depth
    estimation", CVPR 2020, and its published evaluation.
gustafsson
    Gustafsson, Danelljan and Schon, "Evaluating Scalable Bayesian Deep Learning Methods for Robust
    Computer Vision", CVPRW 2020, and its published code.
ilg
    Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow", ECCV 2018.

`poggi` keeps ties at its threshold. The other variants keep a fixed number of pixels, which leaves
the choice among ties to the sort. Here each tie is kept in part (the mean over all choices), so
the values do not depend on pixel order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

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


@dataclass(frozen=True, eq=False)
class Variant:
    """One published convention.

    Attributes:
        name: its name.
        title: name shown in plots.
        errors: the error statistics it is defined for.
        fractions: fractions removed.
        keeps_ties: threshold at a percentile and keep ties, instead of a number of pixels.
        normalised: divide each curve by its first value.
        closed: append the point (1, 0).
    """

    name: str
    title: str
    errors: tuple[str, ...]
    fractions: Floats
    keeps_ties: bool
    normalised: bool
    closed: bool


POGGI = Variant(
    "poggi",
    "Poggi et al. 2020",
    ("abs_rel", "rmse", "a1"),
    np.arange(50) / 50,
    keeps_ties=True,
    normalised=False,
    closed=True,
)
GUSTAFSSON = Variant(
    "gustafsson",
    "Gustafsson et al. 2020",
    ("rmse",),
    np.arange(100) * np.float64(0.01),
    keeps_ties=False,
    normalised=True,
    closed=False,
)
ILG = Variant(
    "ilg",
    "Ilg et al. 2018",
    ("mae",),
    np.arange(100) / 100,
    keeps_ties=False,
    normalised=True,
    closed=False,
)
VARIANTS = {variant.name: variant for variant in (POGGI, GUSTAFSSON, ILG)}


@dataclass(frozen=True, eq=False)
class Sparsification:
    """The three curves, (K,) each; all NaN for no pixel.

    Attributes:
        variant: the convention's name.
        error: the error statistic's name; "a1" is the fraction outside the factor 1.25, as `1 -
            a1`.
        fractions: fractions removed.
        sparsification: error in the rest when removed by sigma.
        oracle: error in the rest when removed by the true error.
        random: error in the full set, which random removal keeps.
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
    """Return the sparsification curves for one set of pixels.

    Args:
        depth: (N,) predicted depth, metres.
        sigma: (N,) standard deviation, metres; only its order matters.
        ground_truth: (N,) positive, metres.
        error: "abs_rel", "rmse" or "a1" for poggi, "rmse" for gustafsson, "mae" for ilg; None
            takes the variant's first.
        variant: "poggi" (per image: call it for each, and average), "gustafsson" or "ilg" (all
            pixels in the set together).

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
    values, oracle_key = statistic_values(PixelErrors.of(depth, ground_truth), name)
    if not len(sigma):
        nothing = np.full(len(convention.fractions), math.nan)
        return curves(convention, name, nothing, nothing)
    removal = Ranking(sigma).curves(convention, (name,), (values,))[0]
    return curves(convention, name, removal, oracle_curve(convention, name, np.sort(oracle_key)))


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


def statistic_values(errors: PixelErrors, name: str) -> tuple[Floats, Floats]:
    """Return what a statistic averages, and what its oracle ranks by; they differ for a1."""
    if name == "a1":
        return errors.inaccurate, errors.factor
    values = {"abs_rel": errors.relative, "rmse": errors.squared, "mae": errors.absolute}[name]
    return values, values


class Ranking:
    """Pixels in ascending order by a key, for several statistics' curves from one sort."""

    def __init__(self, key: Floats) -> None:
        self.order, self.ascending = sorted_order(key)

    def curves(
        self, convention: Variant, names: Sequence[str], values: Sequence[Floats] | Floats
    ) -> Floats:
        """Return each statistic over the pixels that are left at each fraction, (S, K).

        `values` is what each of the S statistics averages, (N,) in the pixels' order.
        """
        counts = _remaining_counts(convention, self.ascending)
        curves = np.empty((len(names), len(counts)))
        edge = self.ascending[counts - 1]
        first = np.searchsorted(self.ascending, edge, "left")
        last = np.searchsorted(self.ascending, edge, "right")
        for row, (name, pixels) in enumerate(zip(names, values, strict=True)):
            ordered = pixels.take(self.order)
            sums = first_sums(ordered, last)
            if not convention.keeps_ties:  # a group of equal keys that is cut counts in proportion
                before = first_sums(ordered, first)
                sums = before + (sums - before) * (counts - first) / (last - first)
            curves[row] = _statistic(name, sums / counts)
        return curves


def oracle_curve(convention: Variant, name: str, ascending: Floats) -> Floats:
    """Return the best curve that any order can give, from the sorted errors; for a1, factors."""
    counts = _remaining_counts(convention, ascending)
    if name == "a1":
        return np.maximum(counts - np.searchsorted(ascending, A1_FACTOR), 0) / counts
    return _statistic(name, first_sums(ascending, counts) / counts)


def _remaining_counts(convention: Variant, ascending: Floats) -> Integers:
    """Return how many sorted pixels are left at each fraction."""
    if convention.keeps_ties:
        return np.searchsorted(ascending, _upper_percentiles(ascending, convention), "right")
    return remaining_numbers(convention, len(ascending))


def remaining_numbers(convention: Variant, number: int) -> Integers:
    """Return how many among `number` pixels are left at each fraction, without ties."""
    if convention is ILG:
        percent = np.round(100 * convention.fractions).astype(np.int64)
        return np.maximum((100 - percent) * number // 100, 1)  # a float product would lose pixels
    return np.maximum(((1.0 - convention.fractions) * number).astype(np.int64), 1)


def _upper_percentiles(ascending: Floats, convention: Variant) -> Floats:
    """Return `-key`'s percentiles for each fraction, negated, rounded as NumPy does it."""
    places, weight = _percentile_places(convention, len(ascending))
    near, far = ascending[places]
    with np.errstate(invalid="ignore"):
        step = far - near
        values = np.where(weight >= 0.5, far - step * (1 - weight), near + step * weight)
    return np.where(near == far, near, values)


@lru_cache(maxsize=8)
def _percentile_places(convention: Variant, number: int) -> tuple[Integers, Floats]:
    """Return the two sorted pixels next to each percentile (2, K) and the second one's weight."""
    position = convention.fractions * (number - 1)
    below = position.astype(np.int64)
    return number - 1 - np.minimum(np.stack((below, below + 1)), number - 1), position - below


def _statistic(name: str, mean: Floats) -> Floats:
    """Return the statistic from its values' mean."""
    return np.sqrt(mean) if name == "rmse" else mean


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
    """Return AUSE and AURG from raw poggi curves, (..., 50), the appended (1, 0) included."""
    weights = np.full(removal.shape[-1], POGGI.fractions[1])
    weights[0] /= 2
    gaps = (removal - oracle) * weights
    return gaps.sum(axis=-1), removal[..., 0] - (removal * weights).sum(axis=-1)
