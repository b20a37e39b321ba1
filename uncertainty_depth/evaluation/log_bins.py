"""Histograms over logarithmic bins, many at a time: the empirical distribution of positive values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LogBins:
    """Bins of equal width in the logarithm; what lies outside is counted in an open bin at each end.

    Attributes:
        low: lower edge of the first closed bin.
        high: the last closed bin ends at this value or just above it.
        width: of a bin, natural logarithm.
    """

    low: float
    high: float
    width: float

    @property
    def closed(self) -> int:
        """Number of closed bins."""
        return math.ceil(math.log(self.high / self.low) / self.width - 1e-9)

    @property
    def number(self) -> int:
        """Number of bins, the two open ones included."""
        return self.closed + 2

    @property
    def edges(self) -> Floats:
        """(closed + 1,) edges of the closed bins."""
        return self.low * np.exp(self.width * np.arange(self.closed + 1))

    def index(self, values: NDArray[np.floating]) -> NDArray[np.intp]:
        """Bin of each value: 0 below `low` (zero included), the last one above `high` (+inf too)."""
        with np.errstate(divide="ignore"):
            place = (np.log(values) - math.log(self.low)) * (1 / self.width)
        return np.clip(np.floor(place) + 1, 0, self.number - 1).astype(np.intp)

    def counts(self, values: NDArray[np.floating]) -> NDArray[np.int64]:
        """(number,) histogram of the values."""
        return np.bincount(self.index(values), minlength=self.number)

    def below(self, values: Floats) -> Floats:
        """(..., number) fraction of each bin at or below each value, spread evenly within a bin."""
        weights = np.clip(self._place(values)[..., None] - np.arange(self.closed), 0.0, 1.0)
        ends = np.ones((*np.shape(values), 1))
        return np.concatenate((ends, weights, 0 * ends), axis=-1)

    def fractions_below(self, counts: Floats, values: Floats) -> Floats:
        """Fraction of each histogram at or below its own values; off by less than one bin's.

        Args:
            counts: (R, number) histograms.
            values: (R, K).

        Returns:
            (R, K); NaN for no counts.
        """
        place = self._place(values)
        cumulative = np.cumsum(counts[:, :-1], axis=1, dtype=np.float64)  # at each edge
        left = np.minimum(place.astype(np.intp), self.closed - 1)
        at_left = np.take_along_axis(cumulative, left, axis=1)
        at_right = np.take_along_axis(cumulative, left + 1, axis=1)
        with np.errstate(invalid="ignore"):
            totals = counts.sum(axis=1, keepdims=True)
            return (at_left + (place - left) * (at_right - at_left)) / totals

    def _place(self, values: Floats) -> Floats:
        """Where each value lies, in closed bins from the lowest edge on."""
        with np.errstate(divide="ignore"):
            place = (np.log(values) - math.log(self.low)) / self.width
        return np.clip(place, 0, self.closed)

    def quantiles(self, counts: Floats, fraction: float) -> Floats:
        """(R,) value below which a fraction of each histogram lies; `low` or +inf in open bins."""
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
