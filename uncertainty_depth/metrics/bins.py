"""Logarithmic bins keyed by the top bits of a float64: `2^bits` bins of equal width in each octave.

Binning is a shift of the float's own bits, so it is exact, fast and the same on every machine. The first bin holds everything below the first octave
and stands for 0, the last everything from the last octave on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Array, Arrays, Floats

MANTISSA_BITS, EXPONENT_OFFSET = 52, 1023
TIE_SHARE, TIE_CONTRAST = 1 / 512, 4
"""A bin with more than this share of all pixels, and this many times more than either neighbour, is taken for one group of equal keys; within the
others keys are taken to be spread evenly."""

Counts = NDArray[np.int64]


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
        """How many bins, the two open ones included."""
        return ((self.high - self.low) << self.bits) + 2

    def holds(self, span: tuple[float, float]) -> bool:
        """Whether values of this span, least and greatest, need neither of the open bins."""
        return span[0] >= 2.0**self.low and span[1] < 2.0**self.high

    def index(self, xp: Arrays, values: Array, span: tuple[float, float]) -> Array:
        """Bin of each float64 >= 0, +inf included; `span` are the least and the greatest value."""
        first = (EXPONENT_OFFSET + self.low) << self.bits
        index = xp.bits(values) >> (MANTISSA_BITS - self.bits)
        index -= first - 1
        return index if self.holds(span) else xp.limit_(index, self.number - 1)

    def coarse(self, xp: Arrays, index: Array, wanted: Bins, span: tuple[float, float]) -> Array:
        """Bin in `wanted`, of fewer bits, of what lies in a bin of these."""
        shift = self.bits - wanted.bits
        # The first octave moved to where it is in `wanted`, in these bins: one sum before the shift does for both.
        coarse = index + (((self.low - wanted.low) << self.bits) + (1 << shift) - 1)
        coarse >>= shift
        return coarse if wanted.holds(span) else xp.limit_(coarse, wanted.number - 1)

    @cached_property
    def edges(self) -> Floats:
        """Lower edge of each bin, and +inf at the end: (number + 1,)."""
        octave = np.ldexp(1.0, np.arange(self.low, self.high))
        inner = (octave[:, None] * (1 + np.arange(1 << self.bits) / (1 << self.bits))).reshape(-1)
        return np.concatenate(([0.0], inner, [2.0**self.high, np.inf]))

    def order_statistics(
        self, counts: Counts, numbers: Counts, extremes: tuple[float, float]
    ) -> Floats:
        """Approximate order statistics, counted from 1, of what was binned; never outside the known extremes. Off by at most a bin's width."""
        total = np.cumsum(counts)
        place = np.searchsorted(total, numbers, side="left")
        share = (numbers - (total[place] - counts[place]) - 0.5) / counts[place]
        width = np.where(
            np.isfinite(self.edges[place + 1]), self.edges[place + 1] - self.edges[place], np.inf
        )
        with np.errstate(invalid="ignore"):
            values = np.where(place == 0, 0.0, self.edges[place] + share * width)
        return np.where(numbers == total[-1], extremes[1], np.clip(values, *extremes))

    def below(self, counts: Counts, values: Floats) -> Floats:
        """Approximately how many lie at or below each value. Off by at most the pixels of one bin."""
        index = np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, self.number - 1)
        before = np.concatenate(([0], np.cumsum(counts)))
        with np.errstate(invalid="ignore"):
            share = (values - self.edges[index]) / (self.edges[index + 1] - self.edges[index])
        return before[index] + np.nan_to_num(share) * counts[index]


@dataclass(frozen=True)
class Window:
    """Rows of a table that holds the bins seen so far as finely as its size allows, whatever their order of coming.

    Bin b lies in row `(b >> shift) mod rows`, with the least shift at which the bins from the least to the greatest one seen fit.

    Attributes:
        bins: the finest bins, and the range beyond which they are not told apart.
        rows: a power of 2.
    """

    bins: Bins
    rows: int

    def shift(self, span: Counts) -> int:
        """For the least and the greatest bin seen."""
        return next(
            shift
            for shift in range(64)
            if int(span[1] >> shift) - int(span[0] >> shift) < self.rows
        )

    def ordered(self, table: NDArray, span: Counts) -> NDArray:
        """The rows in the order of their bins."""
        return table[self._coarse(span) & (self.rows - 1)]

    def widened(self, table: NDArray, span: Counts, wider: Counts) -> NDArray:
        """The table for a wider span."""
        result, steps = np.zeros_like(table), self.shift(wider) - self.shift(span)
        np.add.at(
            result, (self._coarse(span) >> steps) & (self.rows - 1), self.ordered(table, span)
        )
        return result

    def _coarse(self, span: Counts) -> Counts:
        low, high = span >> self.shift(span)
        return np.arange(low, high + 1)


def first_sums(counts: Counts, sums: NDArray, numbers: Floats | Counts) -> Floats:
    """Sum over the first `numbers` pixels of a histogram, a bin that is cut counting in proportion."""
    total = np.cumsum(counts)
    place = np.minimum(np.searchsorted(total, numbers, side="left"), len(counts) - 1)
    share = (numbers - (total[place] - counts[place])) / np.maximum(counts[place], 1)
    return np.concatenate(([0.0], np.cumsum(sums, dtype=np.float64)))[place] + share * sums[place]


def kept_with_ties(counts: Counts, fractions: Floats) -> Counts:
    """How many are left at each fraction when equals of the percentile stay (`poggi`): whole bins where a bin is a group of equals."""
    pixels = counts.sum()
    numbers = pixels - np.ceil(fractions * (pixels - 1)).astype(np.int64)
    total = np.cumsum(counts)
    place = np.searchsorted(total, numbers, side="left")
    padded = np.concatenate(([0], counts, [0]))
    neighbours = np.maximum(padded[place], padded[place + 2])
    equal = (counts[place] > TIE_SHARE * pixels) & (counts[place] > TIE_CONTRAST * neighbours)
    return np.where(equal, total[place], numbers)
