# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Logarithmic bins keyed by a float64's top bits: `2^bits` equal bins in each octave.

Binning is a shift of the float's own bits, so it is exact, fast and the same on every machine. The
first bin holds everything below the first octave and stands for 0, the last everything from the
last octave on. Histograms have any leading axes: a thousand bootstrap replicates are read at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.arrays import Integers

MANTISSA_BITS = 52
EXPONENT_OFFSET = 1023
FEW_PIXELS = 8
"""Pixels in a bin whose slope counts half."""


@dataclass(frozen=True)
class Bins:
    """Bins over `[2^low, 2^high)`, `2^bits` in an octave: relative width at most `2^-bits`."""

    low: int
    high: int
    bits: int

    @property
    def number(self) -> int:
        """How many bins there are, the two open ones included."""
        return ((self.high - self.low) << self.bits) + 2

    def index(self, values: Floats) -> Integers:
        """Return each float64's bin, >= 0, +inf included."""
        first = (EXPONENT_OFFSET + self.low) << self.bits
        index = values.view(np.int64) >> (MANTISSA_BITS - self.bits)
        index -= first - 1
        return np.clip(index, 0, self.number - 1)

    def at(self, exponent: int) -> Bins:
        """Return the same bins for values `2^exponent` times as large."""
        return replace(self, low=self.low + exponent, high=self.high + exponent)

    def moved(self, counts: NDArray, octaves: int) -> NDArray:
        """Return histograms by these bins in those of `at(octaves)`.

        What leaves the inner bins joins an open one. The open bins keep their pixels: where they
        lie in them is not known.
        """
        index = np.clip(np.arange(self.number) - (octaves << self.bits), 0, self.number - 1)
        index[[0, -1]] = 0, self.number - 1
        result = np.zeros_like(counts)
        np.add.at(np.moveaxis(result, -1, 0), index, np.moveaxis(counts, -1, 0))
        return result

    def coarse(self, index: Integers, coarser: Bins) -> Integers:
        """Return the bin in `coarser`, with fewer bits, that contains each bin here."""
        shift = self.bits - coarser.bits
        # One sum moves to the first octave in `coarser` and makes the shift count from 1.
        shifted = index + (((self.low - coarser.low) << self.bits) + (1 << shift) - 1)
        return np.clip(shifted >> shift, 0, coarser.number - 1)

    @cached_property
    def edges(self) -> Floats:
        """Each bin's lower edge, and +inf at the end: (number + 1,)."""
        octave = np.ldexp(1.0, np.arange(self.low, self.high))
        inner = (octave[:, None] * (1 + np.arange(1 << self.bits) / (1 << self.bits))).reshape(-1)
        return np.concatenate(([0.0], inner, [2.0**self.high, np.inf]))

    @cached_property
    def centres(self) -> Floats:
        """Each bin's representative value, (number,): 0 for the first, the edge for the last."""
        middle = (self.edges[:-1] + self.edges[1:]) / 2
        return np.concatenate(([0.0], middle[1:-1], [self.edges[-2]]))

    def order_statistics(
        self,
        counts: NDArray,
        numbers: NDArray,
        zeros: NDArray,
        infinite: NDArray,
        resolved: tuple[NDArray, NDArray],
    ) -> Floats:
        """Return approximate order statistics from histograms, counted from 1.

        The density within a bin is assumed to be linear, see `_skew`. A statistic that lies in an
        open bin is NaN, unless it is one that is exactly 0 or infinite.

        Args:
            counts: (..., bins) pixels in each bin.
            numbers: (..., K) which order statistics; same leading axes as `counts`.
            zeros: (...) pixels whose value is exactly 0.
            infinite: (...) pixels whose value is infinite.
            resolved: (...) each, the smallest and largest value that the histograms resolve.
        """
        total = np.cumsum(counts, axis=-1, dtype=np.float64)
        index = _places(total, numbers)
        count = np.take_along_axis(counts, index, axis=-1)
        before = np.take_along_axis(total, index, axis=-1) - count
        lower = self.edges[index]
        upper = self.edges[index + 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (numbers - before - 0.5) / count
            skew = self._skew(counts, index)
            # The root of t + skew (t^2 - t) = share, without a loss of digits.
            fraction = 2 * share / (1 - skew + np.sqrt((1 - skew) ** 2 + 4 * skew * share))
            values = lower + fraction * (upper - lower)
        low, high = (np.asarray(limit)[..., None] for limit in resolved)
        is_inner = (index > 0) & (index < self.number - 1)
        values = np.where(is_inner & (low <= lower) & (upper <= high), values, np.nan)
        number = total[..., -1:]
        values = np.where(numbers <= zeros[..., None], 0.0, values)
        values = np.where(numbers > number - infinite[..., None], np.inf, values)
        return np.where(number > 0, values, np.nan)

    def below(self, counts: NDArray, values: NDArray) -> Floats:
        """Return approximately how many pixels lie at or below each value.

        Counts are (..., bins); values (..., K), or (K,) for the same ones in each histogram.
        """
        index = np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, self.number - 1)
        lower = self.edges[index]
        with np.errstate(invalid="ignore"):
            fraction = np.nan_to_num((values - lower) / (self.edges[index + 1] - lower))
        before = np.cumsum(counts, axis=-1, dtype=np.float64)
        index = np.broadcast_to(index, (*counts.shape[:-1], index.shape[-1]))
        count = np.take_along_axis(counts, index, axis=-1)
        share = fraction + self._skew(counts, index) * (fraction * fraction - fraction)
        return np.take_along_axis(before, index, axis=-1) - (1 - share) * count

    def _skew(self, counts: NDArray, index: Integers) -> Floats:
        """Return the density's slope in bins, -1 to 1, reduced if it rests on a few pixels."""
        inner = (index > 0) & (index < self.number - 1)
        index = np.where(inner, index, 1)
        neighbours = index + np.array([-1, 0, 1]).reshape(3, *[1] * index.ndim)
        width = np.maximum(np.diff(self.edges)[neighbours], np.finfo(float).tiny)
        count = np.stack([np.take_along_axis(counts, beside, axis=-1) for beside in neighbours])
        density = count / width
        distance = width[1] + (width[0] + width[2]) / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = (density[2] - density[0]) / distance
            skew = np.clip(slope * width[1] / (2 * density[1]), -1, 1)
            skew *= count[1] / (count[1] + FEW_PIXELS)
        return np.where(inner & np.isfinite(skew), skew, 0.0)


def _places(total: Floats, numbers: NDArray) -> Integers:
    """Return the bin that each order statistic lies in, (..., K), from cumulative counts."""
    index = (total[..., None, :] < np.asarray(numbers)[..., None]).sum(axis=-1)
    return np.minimum(index, total.shape[-1] - 1)


def first_bin_sums(counts: NDArray, sums: NDArray, numbers: NDArray) -> Floats:
    """Return the sum over the first `numbers`, (..., K), pixels; counts and sums are (..., B)."""
    total = np.cumsum(counts, axis=-1, dtype=np.float64)
    index = _places(total, numbers)
    count = np.take_along_axis(counts, index, axis=-1)
    before = np.take_along_axis(total, index, axis=-1) - count
    fraction = (numbers - before) / np.maximum(count, 1)
    cut = np.take_along_axis(sums, index, axis=-1)
    until = np.take_along_axis(np.cumsum(sums, axis=-1, dtype=np.float64), index, axis=-1)
    return until - (1 - fraction) * cut
