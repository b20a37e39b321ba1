# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Logarithmic bins keyed by the top bits of a float64: `2^bits` equal bins in each octave.

Binning is a shift of the float's own bits, so it is exact, fast and the same on every machine. The
first bin holds everything below the first octave and stands for 0, the last everything from the
last octave on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats, Integers, clipped

MANTISSA_BITS = 52
EXPONENT_OFFSET = 1023
EMPTY = -1.0
"""Mark of a bin without a value, see `join_single_values`; NaN marks a bin with several."""


@dataclass(frozen=True)
class Bins:
    """Bins of `[2^low, 2^high)`, relative width at most `2^-bits`.

    Attributes:
        low: exponent of the first octave.
        high: exponent that the last octave ends at.
        bits: binary logarithm of the number of bins in an octave.
    """

    low: int
    high: int
    bits: int

    @property
    def number(self) -> int:
        """Number of bins, the two open ones included."""
        return ((self.high - self.low) << self.bits) + 2

    def index(self, values: Floats) -> Integers:
        """Return the bin of each float64 >= 0, +inf included."""
        first = (EXPONENT_OFFSET + self.low) << self.bits
        index = values.view(np.int64) >> (MANTISSA_BITS - self.bits)
        index -= first - 1
        return clipped(index, self.number)

    def coarse(self, index: Integers, coarser: Bins) -> Integers:
        """Return the bin in `coarser`, of fewer bits, that contains each of these bins."""
        shift = self.bits - coarser.bits
        # One sum moves to the first octave of `wanted` and makes the shift count from 1.
        shifted = index + (((self.low - coarser.low) << self.bits) + (1 << shift) - 1)
        return clipped(shifted >> shift, coarser.number)

    def coarse_counts(self, counts: Integers, coarser: Bins) -> Integers:
        """Return the counts in the bins of `coarser`, of fewer bits."""
        places = self.coarse(np.arange(self.number), coarser)
        return np.bincount(places, counts, coarser.number).astype(counts.dtype)

    @cached_property
    def edges(self) -> Floats:
        """Lower edge of each bin, and +inf at the end: (number + 1,)."""
        octave = np.ldexp(1.0, np.arange(self.low, self.high))
        inner = (octave[:, None] * (1 + np.arange(1 << self.bits) / (1 << self.bits))).reshape(-1)
        return np.concatenate(([0.0], inner, [2.0**self.high, np.inf]))

    def order_statistics(
        self, counts: NDArray, numbers: Integers, extremes: tuple[float, float]
    ) -> Floats:
        """Return approximate order statistics, counted from 1, to a bin's width.

        Args:
            counts: (number,) pixels in each bin.
            numbers: which order statistics.
            extremes: minimum and maximum value that was binned.
        """
        total = np.cumsum(counts)
        place = np.minimum(np.searchsorted(total, numbers, side="left"), self.number - 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            fraction = (numbers - (total[place] - counts[place]) - 0.5) / counts[place]
            width = self.edges[place + 1] - self.edges[place]
            values = np.where(place == 0, 0.0, self.edges[place] + fraction * width)
        return np.where(numbers == total[-1], extremes[1], np.clip(values, *extremes))

    def below(self, counts: Integers, values: Floats) -> Floats:
        """Return approximately how many lie at or below each value, to one bin's pixels."""
        index = np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, self.number - 1)
        before = np.concatenate(([0], np.cumsum(counts)))
        with np.errstate(invalid="ignore"):
            width = self.edges[index + 1] - self.edges[index]
            fraction = np.nan_to_num((values - self.edges[index]) / width)
        return before[index] + fraction * counts[index]


@dataclass(frozen=True)
class Window:
    """Rows of a table that holds the bins seen so far as finely as its size allows.

    Bin b lies in row `(b >> shift) mod rows`, with the smallest shift at which all bins between
    the lowest and the highest one seen have a row. So tables filled in any order are equal.

    Attributes:
        bins: the finest bins, and the range beyond which they are not told apart.
        rows: a power of 2.
    """

    bins: Bins
    rows: int

    def shift(self, span: Integers) -> int:
        """Return by how many bits bins are merged, for the lowest and the highest bin in use."""
        low, high = map(int, span)
        return next(s for s in range(64) if (high >> s) - (low >> s) < self.rows)

    def row(self, index: Integers, span: Integers) -> Integers:
        """Return the row of each bin."""
        return (index >> self.shift(span)) & (self.rows - 1)

    def ordered(self, table: NDArray, span: Integers) -> NDArray:
        """Return the rows in the order of their bins."""
        return table[self._coarse(span) & (self.rows - 1)]

    def row_limits(self, counts: Integers, span: Integers) -> tuple[Floats, Floats]:
        """Return lower and upper limits of the rows, in their order, (rows,) each.

        Args:
            counts: pixels in each bin; the limits are those of the bins that are not empty.
            span: the lowest and the highest bin seen.
        """
        filled = np.flatnonzero(counts)
        row = (filled >> self.shift(span)) - self._coarse(span)[0]
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        ends = np.append(starts[1:], len(row)) - 1
        lower = np.zeros(len(self._coarse(span)))
        upper = np.zeros(len(self._coarse(span)))
        lower[row[starts]] = self.bins.edges[filled[starts]]
        upper[row[starts]] = self.bins.edges[filled[ends] + 1]
        return lower, upper

    def widened(self, table: NDArray, span: Integers, wider: Integers) -> NDArray:
        """Return the table for a wider span."""
        result = np.zeros_like(table)
        steps = self.shift(wider) - self.shift(span)
        row = (self._coarse(span) >> steps) & (self.rows - 1)
        np.add.at(result, row, self.ordered(table, span))
        return result

    def _coarse(self, span: Integers) -> Integers:
        low, high = span >> self.shift(span)
        return np.arange(low, high + 1)


def first_bin_sums(counts: NDArray, sums: NDArray, numbers: NDArray) -> Floats:
    """Return the sum over the first `numbers` pixels of a histogram, a cut bin in proportion."""
    total = np.cumsum(counts)
    place = np.minimum(np.searchsorted(total, numbers, side="left"), len(counts) - 1)
    fraction = (numbers - (total[place] - counts[place])) / np.maximum(counts[place], 1)
    before = np.concatenate(([0.0], np.cumsum(sums, dtype=np.float64)))
    return before[place] + fraction * sums[place]


def remaining_with_ties(counts: Integers, fractions: Floats, single: Floats) -> Integers:
    """Return the pixels left at each fraction, where ties at the percentile stay (`poggi`).

    Args:
        counts: pixels in each bin.
        fractions: removed.
        single: the value of each bin whose pixels are all equal, NaN elsewhere: such a bin is kept
            whole; of another one as many as if none were equal.
    """
    pixels = counts.sum()
    numbers = pixels - np.ceil(fractions * (pixels - 1)).astype(np.int64)
    total = np.cumsum(counts)
    place = np.searchsorted(total, numbers, side="left")
    return np.where(np.isnan(single[place]), numbers, total[place])


def join_single_values(first: Floats, second: Floats) -> Floats:
    """Return the single value of merged bins: NaN where two values differ."""
    same = (second == EMPTY) | (first == second)
    return np.where(first == EMPTY, second, np.where(same, first, np.nan))
