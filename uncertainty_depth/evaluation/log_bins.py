# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Histograms over logarithmic bins: empirical distributions, many at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LogBins:
    """Bins of equal width in the logarithm, with an open bin at each end.

    `metrics.bins.Bins` are for the exact sums of one histogram. These are for quantiles of a
    thousand bootstrap replicates at once, and their width may be a root of the factor of a1.

    Attributes:
        low: lower edge of the first closed bin.
        high: upper edge of the last closed bin, or just below it.
        width: of a bin, natural logarithm.
    """

    low: float
    high: float
    width: float

    @property
    def closed(self) -> int:
        """Return the number of closed bins."""
        return math.ceil(math.log(self.high / self.low) / self.width - 1e-9)

    @property
    def number(self) -> int:
        """Return the number of bins, including the two open ones."""
        return self.closed + 2

    @property
    def edges(self) -> Floats:
        """Return the (closed + 1,) edges of the closed bins."""
        return self.low * np.exp(self.width * np.arange(self.closed + 1))

    def index(self, values: NDArray[np.floating]) -> NDArray[np.intp]:
        """Return the bin of each value: 0 below `low`, the last one above `high` and for +inf."""
        with np.errstate(divide="ignore"):
            place = np.log(values)
        place -= math.log(self.low)
        place *= 1 / self.width
        np.floor(place, out=place)
        place += 1
        np.maximum(place, 0, out=place)
        np.minimum(place, self.number - 1, out=place)
        return place.astype(np.intp)

    def coarse(self, index: NDArray[np.intp], factor: int) -> NDArray[np.intp]:
        """Return the bins of indices in bins that are `factor` times as wide."""
        return (index + factor - 1) // factor

    def counts(self, values: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the (number,) histogram of the values."""
        return np.bincount(self.index(values), minlength=self.number)

    def below(self, values: Floats) -> Floats:
        """Return the (..., number) fraction of each bin that lies at or below each value.

        Values are taken as uniform in the logarithm within a bin.
        """
        weights = np.clip(self._place(values)[..., None] - np.arange(self.closed), 0.0, 1.0)
        ends = np.ones((*np.shape(values), 1))
        return np.concatenate((ends, weights, 0 * ends), axis=-1)

    def fractions_below(self, counts: Floats, values: Floats) -> Floats:
        """Return the fraction of each histogram at or below its values, to a bin's width.

        Args:
            counts: (R, number) histograms.
            values: (R, K).

        Returns:
            (R, K); NaN for no counts.
        """
        place = self._place(values)
        cumulative = np.cumsum(counts[:, :-1], axis=1, dtype=np.float64)  # at each edge
        lower = np.minimum(place.astype(np.intp), self.closed - 1)
        at_lower = np.take_along_axis(cumulative, lower, axis=1)
        at_upper = np.take_along_axis(cumulative, lower + 1, axis=1)
        with np.errstate(invalid="ignore"):
            totals = counts.sum(axis=1, keepdims=True)
            return (at_lower + (place - lower) * (at_upper - at_lower)) / totals

    def _place(self, values: Floats) -> Floats:
        """Return the position of each value, in bins from the lowest edge."""
        with np.errstate(divide="ignore"):
            place = (np.log(values) - math.log(self.low)) / self.width
        return np.clip(place, 0, self.closed)

    def quantiles(self, counts: Floats, fraction: float) -> Floats:
        """Return the (R,) quantiles of (R, number) histograms; `low` or +inf in open bins."""
        cumulative = np.cumsum(counts, axis=1, dtype=np.float64)
        target = fraction * cumulative[:, -1:]
        place = (cumulative < target).sum(axis=1)
        row = np.arange(len(counts))
        in_bin = counts[row, np.minimum(place, self.number - 1)]
        before = cumulative[row, np.minimum(place, self.number - 1)] - in_bin
        with np.errstate(divide="ignore", invalid="ignore"):
            within = (target[:, 0] - before) / in_bin
            values = self.low * np.exp(self.width * (place - 1 + within))
        values = np.where(place == 0, self.low, values)
        values = np.where(place >= self.number - 1, np.inf, values)
        return np.where(cumulative[:, -1] > 0, values, np.nan)
