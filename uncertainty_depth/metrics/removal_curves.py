# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Error of the pixels that are left when the most uncertain, or the worst, are removed.

`poggi` keeps equals of its threshold. The other variants keep a fixed number of pixels, which
leaves the choice among equals to the sort: here each equal is kept in part (the mean over all
choices), so the values do not depend on the order of the pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, Integers, first_sums, sorted_order
from uncertainty_depth.metrics.depth import A1_FACTOR, PixelErrors
from uncertainty_depth.metrics.sparsification_variants import ILG, Variant


def statistic_values(errors: PixelErrors, name: str) -> tuple[Floats, Floats]:
    """Return what a statistic averages, and what its oracle ranks by.

    They are the same, but for a1, which averages `factor >= 1.25` and ranks by the factor.
    """
    if name == "a1":
        return errors.inaccurate, errors.factor
    values = {"abs_rel": errors.relative, "rmse": errors.squared, "mae": errors.absolute}[name]
    return values, values


def removal_curve(convention: Variant, name: str, key: Floats, values: Floats) -> Floats:
    """Return the statistic of the pixels that are left when those with the largest key go."""
    if not len(key):
        return np.full(len(convention.fractions), math.nan)
    ranking = Ranking(key)
    return ranking.curves(convention, (name,), (values,))[0]


def oracle_curve(convention: Variant, name: str, values: Floats, key: Floats) -> Floats:
    """Return the best curve that any order can give: the errors themselves are sorted."""
    if not len(key):
        return np.full(len(convention.fractions), math.nan)
    return sorted_oracle(convention, name, np.sort(key))


def sorted_oracle(convention: Variant, name: str, ascending: Floats) -> Floats:
    """Return `oracle_curve` from the sorted key; pixels outside the factor come last."""
    counts = remaining_counts(convention, ascending)
    if name == "a1":
        return np.maximum(counts - np.searchsorted(ascending, A1_FACTOR), 0) / counts
    return statistic(name, first_sums(ascending, counts) / counts)


def remaining_counts(convention: Variant, ascending: Floats) -> Integers:
    """Return the number of sorted pixels that are left at each fraction."""
    if convention.keeps_ties:
        return np.searchsorted(ascending, upper_percentiles(ascending, convention), "right")
    return remaining_numbers(convention, len(ascending))


def remaining_numbers(convention: Variant, number: int) -> Integers:
    """Return how many of `number` pixels are left at each fraction, where ties are not kept."""
    if convention is ILG:
        percent = np.round(100 * convention.fractions).astype(np.int64)
        return np.maximum((100 - percent) * number // 100, 1)  # a float product would lose pixels
    return np.maximum(((1.0 - convention.fractions) * number).astype(np.int64), 1)


def upper_percentiles(ascending: Floats, convention: Variant) -> Floats:
    """Return the percentiles of `-key` for each fraction, negated.

    Linear interpolation between neighbours, rounded as NumPy does it.
    """
    places, weight = _percentile_places(convention, len(ascending))
    near, far = ascending[places]
    with np.errstate(invalid="ignore"):
        step = far - near
        values = np.where(weight >= 0.5, far - step * (1 - weight), near + step * weight)
    return np.where(near == far, near, values)


@lru_cache(maxsize=8)
def _percentile_places(convention: Variant, number: int) -> tuple[Integers, Floats]:
    """Return the two sorted pixels next to each percentile (2, K) and the second one's weight."""
    place = convention.fractions * (number - 1)
    below = place.astype(np.int64)
    return number - 1 - np.minimum(np.stack((below, below + 1)), number - 1), place - below


def statistic(name: str, mean: Floats) -> Floats:
    """Return the statistic from the mean of its values."""
    return np.sqrt(mean) if name == "rmse" else mean


class Ranking:
    """Pixels in ascending order of a key, for the curves of several statistics from one sort."""

    def __init__(self, key: Floats) -> None:
        self.order, self.ascending = sorted_order(key)

    def curves(
        self, convention: Variant, names: Sequence[str], values: Sequence[Floats] | Floats
    ) -> Floats:
        """Return each statistic of the pixels that are left at each fraction, (S, K).

        Args:
            convention: fractions and ties.
            names: of the S statistics.
            values: what each statistic averages, (N,) in the order of the pixels.
        """
        counts = remaining_counts(convention, self.ascending)
        curves = np.empty((len(names), len(counts)))
        for row, (name, pixels) in enumerate(zip(names, values, strict=True)):
            sums = self._sums(convention, pixels.take(self.order), counts)
            curves[row] = statistic(name, sums / counts)
        return curves

    def _sums(self, convention: Variant, ordered: Floats, counts: Integers) -> Floats:
        """Return the sums of the first `counts` values.

        Where a number of pixels is kept, a group of equal keys that is cut counts in proportion.
        """
        if convention.keeps_ties:
            return first_sums(ordered, counts)
        edge = self.ascending[counts - 1]
        first = np.searchsorted(self.ascending, edge, "left")
        last = np.searchsorted(self.ascending, edge, "right")
        before = first_sums(ordered, first)
        after = first_sums(ordered, last)
        return before + (after - before) * (counts - first) / (last - first)
