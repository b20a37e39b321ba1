"""Confidence intervals of anything computed from sums, by a block bootstrap over frames.

Neighbouring frames are alike, so frames are resampled in blocks of consecutive ones (Carlstein 1986).
What the metrics need of each block is a fixed set of sums, see `units`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ENOUGH_BLOCKS = 10
REPLICATES = 1000
SEED = 0
NORMAL_QUANTILE = 1.959964  # of 97.5 %
FEW_BLOCKS_SPREAD = 0.5
"""With fewer than `ENOUGH_BLOCKS` blocks an interval reaches at least this fraction of the metric,
over the square root of the number of blocks, to either side: so few say little of other scenes."""


@dataclass(frozen=True)
class Interval:
    """A metric with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        """E.g. `0.310 (0.280 to 0.345)`; the value alone where there is no interval."""
        value, low, high = (_number(each, digits) for each in (self.value, self.low, self.high))
        return value if math.isnan(self.low) else f"{value} ({low} to {high})"


def _number(value: float, digits: int) -> str:
    return (
        f"{value:.{digits}f}" if abs(value) < 10**5 or not math.isfinite(value) else f"{value:.2g}"
    )


class Bootstrap:
    """Resampled sums: row 0 of everything it returns is the sample itself, the others are replicates.

    Attributes:
        blocks: number of blocks of consecutive units that are drawn from.
    """

    def __init__(self, units: Mapping[str, NDArray], series: Floats) -> None:
        """Draw the blocks.

        Args:
            units: (n, ...) sums of consecutive units of frames, by name.
            series: (n,) mean error of each unit, which tells how alike neighbours are.
        """
        self._units = units
        length = block_length(series)
        self._starts = np.arange(0, max(len(series) - length // 2, 1), length)
        self.blocks = len(self._starts) if len(series) else 0
        random = np.random.default_rng(SEED)
        equal = np.full(max(self.blocks, 1), 1 / max(self.blocks, 1))
        draws = random.multinomial(self.blocks, equal, size=REPLICATES)
        self._weights = np.vstack((np.ones((1, draws.shape[1])), draws))

    @property
    def few(self) -> bool:
        """Whether there are too few blocks for an interval that can be relied on."""
        return self.blocks < ENOUGH_BLOCKS

    def sums(self, name: str) -> Floats:
        """(1 + REPLICATES, ...) sums of a table."""
        return self.resample(self._units[name])

    def resample(self, table: NDArray) -> Floats:
        """(1 + REPLICATES, ...) sums of a (n, ...) table of the units."""
        blocks = np.add.reduceat(table, self._starts, axis=0).astype(np.float64)
        rows = self._weights @ blocks.reshape(self.blocks, -1)
        return rows.reshape(len(rows), *table.shape[1:])

    def interval(self, rows: Floats, scale: float | None = None) -> Interval:
        """The interval of a metric from its value in the sample and in the replicates.

        Percentiles of the replicates, widened round the value as Student's t is wider than a normal
        with as many degrees of freedom as there are blocks. With few blocks it is at least
        `FEW_BLOCKS_SPREAD / sqrt(blocks)` times `scale` wide to either side.

        Args:
            rows: (1 + REPLICATES,) values.
            scale: size of the metric, in its unit. Without it the interval of one block is NaN.
        """
        value = float(rows[0])
        if not math.isfinite(value):
            return Interval(value, value, value)
        if self.blocks == 1 and scale is None:
            return Interval(value, math.nan, math.nan)
        low, high = np.nanpercentile(rows[1:], (2.5, 97.5)).tolist()
        least = FEW_BLOCKS_SPREAD / math.sqrt(self.blocks) * (scale or 0.0) if self.few else 0.0
        factor = 1.0 if self.few else _student_factor(self.blocks)
        below = max(factor * (value - low), least)
        above = max(factor * (high - value), least)
        return Interval(value, value - below, value + above)


def block_length(series: Floats) -> int:
    """Units in a block: the length that estimates a variance best, and no less than `n^(1/3)`.

    Politis and White, "Automatic block-length selection for the dependent bootstrap", Econometric
    Reviews 2004, for an autoregressive series of first order: `(6 r^2 / (1 - r^2)^2)^(1/3) n^(1/3)`
    with the correlation r of neighbours.

    Args:
        series: (n,) a metric of each unit, in order.
    """
    number = len(series)
    known = series[np.isfinite(series)]
    centred = known - known.mean() if known.size else known
    variance = float(centred @ centred)
    correlation = float(centred[1:] @ centred[:-1]) / variance if variance else 0.0
    correlation = min(max(correlation, 0.0), 0.95)
    likeness = (6 * correlation**2 / (1 - correlation**2) ** 2) ** (1 / 3)
    return min(math.ceil(max(likeness, 1.0) * number ** (1 / 3) - 1e-9), max(number, 1))


def _student_factor(blocks: int) -> float:
    """Quantile of Student's t over the normal's, and the bias of a variance over `blocks` values."""
    z = NORMAL_QUANTILE
    freedom = blocks - 1
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return (z + first + second) / z * math.sqrt(blocks / freedom)
