# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Errors and ratios of every depth interval in bounded memory, for the intervals' n-MeRCI.

Each interval has a row of cells that follows the values it has seen: fine where they are close to
each other, and nothing is resolved that is 64 times smaller than the largest (compare DDSketch,
Masson, Rim and Lee, VLDB 2019, which lets the lowest buckets collapse). Rows filled in any order
are equal, so they can be merged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.metrics.arrays import (
    Floats,
    Integers,
    clipped,
    interval_edges,
    interval_index,
)
from uncertainty_depth.metrics.bins import Bins

CELLS = 116_000
"""Cells of each of the two tables of counts."""
MIN_CELLS = 32
MAX_CELLS = 4096
OCTAVES = 6
"""Values this many octaves below the largest are not told apart."""
EMPTY_SPAN = -1


@dataclass(frozen=True)
class Intervals:
    """The depth intervals of a config.

    Attributes:
        width: metres.
        first: number of the interval that holds the minimum depth scored.
        number: how many.
        cells: of each interval's row.
    """

    width: float
    first: int
    number: int
    cells: int

    @classmethod
    def of(cls, config: EvaluationConfig) -> Intervals:
        """Return rows with as many cells as the memory allows.

        Raises:
            ConfigError: a limit is not finite, the limits are reversed, or there are more
                intervals than fit.
        """
        _check_limits(config)
        first = np.floor(config.min_depth / config.depth_bin_width)
        number = np.floor(config.max_depth / config.depth_bin_width) - first + 1
        max_number = CELLS // MIN_CELLS
        if not number <= max_number:
            raise ConfigError(
                f"depth_bin_width is {config.depth_bin_width}; expected at least "
                f"{_fitting(config, max_number)} for depths from min_depth, {config.min_depth}, "
                f"to max_depth, {config.max_depth}: the state holds {max_number} intervals"
            )
        cells = min(CELLS // int(number), MAX_CELLS)
        return cls(config.depth_bin_width, int(first), int(number), cells)

    @property
    def edges(self) -> Floats:
        """(number + 1,) metres."""
        return interval_edges(self.first, self.number, self.width)

    def index(self, ground_truth: Floats) -> Integers:
        """Return the index of each pixel's interval."""
        return clipped(interval_index(ground_truth, self.width) - self.first, self.number)


def _check_limits(config: EvaluationConfig) -> None:
    for name in ("min_depth", "max_depth", "depth_bin_width"):
        value = getattr(config, name)
        if not (math.isfinite(value) and value >= 0):
            raise ConfigError(
                f"{name} is {value}; expected a finite number of metres, not negative"
            )
    if config.min_depth >= config.max_depth:
        raise ConfigError(
            f"min_depth is {config.min_depth}; expected less than max_depth, {config.max_depth}"
        )
    if not config.depth_bin_width:
        raise ConfigError(f"depth_bin_width is {config.depth_bin_width}; expected more than 0")


def _fitting(config: EvaluationConfig, max_number: int) -> float:
    """Return an interval width with which these depths fit, two digits, rounded up."""
    min_width = (config.max_depth - config.min_depth) / (
        max_number - 2
    )  # two intervals may be cut
    unit = 10.0 ** (math.floor(math.log10(min_width)) - 1)
    return float(f"{math.ceil(min_width / unit) * unit:.2g}")


@dataclass(frozen=True)
class IntervalBins:
    """Rows of cells over `bins`; a row's place is known from the lowest and highest bin it saw.

    A row begins `OCTAVES` below the highest bin, or at the lowest; its first cell holds everything
    up to there. A cell holds `2^shift` bins, the least with which the row reaches the highest.
    """

    bins: Bins
    cells: int

    def shift(self, span: Integers) -> Integers:
        """Return by how many bits bins are merged, for (K, 2) lowest and highest bins."""
        size = np.minimum(span[:, 1] - span[:, 0], OCTAVES << self.bins.bits)
        limits = (self.cells - 1) << np.arange(OCTAVES + self.bins.bits)
        return np.searchsorted(limits, size, side="right")

    def base(self, span: Integers) -> Integers:
        """Return the index of the first cell, (K,), counted in cells from bin 0."""
        return self._base(span, self.shift(span))

    def _base(self, span: Integers, shift: Integers) -> Integers:
        floor = np.maximum(span[:, 0], span[:, 1] - (OCTAVES << self.bins.bits))
        return floor >> shift

    def cell(self, index: Integers, place: Integers, span: Integers) -> Integers:
        """Return the cell of each pixel in the flat table, for its bin and its interval."""
        shift = self.shift(span)
        cell = index >> shift.take(place)
        cell -= self._base(span, shift).take(place)
        np.maximum(cell, 0, out=cell)
        cell += place * self.cells
        return cell

    def widened(self, table: Integers, span: Integers, wider: Integers) -> Integers:
        """Return the table, (K, cells), for wider spans; unchanged rows are not rewritten."""
        steps = self.shift(wider) - self.shift(span)
        moved = (steps > 0) | (self.base(wider) != self.base(span))
        changed = np.flatnonzero(moved & (span[:, 1] != EMPTY_SPAN))
        if not len(changed):
            return table
        column = np.arange(self.cells) + self.base(span)[changed, None]
        column = (column >> steps[changed, None]) - self.base(wider)[changed, None]
        column = np.clip(column, 0, self.cells - 1)  # beyond the highest bin all cells are empty
        rows = np.arange(len(changed))[:, None] * self.cells + column
        sums = np.bincount(rows.ravel(), table[changed].ravel(), len(changed) * self.cells)
        result = table.copy()
        result[changed] = sums.reshape(-1, self.cells).astype(np.int64)
        return result

    def order_statistics(
        self, table: Integers, span: Integers, numbers: Integers
    ) -> tuple[Floats, Floats]:
        """Return an order statistic of each row, counted from 1, and the width of its cell.

        Both are NaN where nothing was seen; the width is infinite where the cell is open.
        """
        total = np.cumsum(table, axis=1)
        column = np.minimum((total < numbers[:, None]).sum(axis=1), self.cells - 1)
        row = np.arange(len(table))
        shift = self.shift(span)
        bottom = (column + self.base(span)) << shift
        low = self.bins.edges[np.clip(bottom, 0, self.bins.number)]
        high = self.bins.edges[np.clip(bottom + (1 << shift), 0, self.bins.number)]
        is_open = (column == 0) & (self.base(span) << shift > span[:, 0])
        count = table[row, column]
        with np.errstate(invalid="ignore", divide="ignore"):
            fraction = (numbers - (total[row, column] - count) - 0.5) / count
            width = np.where(is_open, np.inf, high - low)
            values = low + fraction * (high - low)
        filled = total[:, -1] > 0
        return np.where(filled, values, np.nan), np.where(filled, width, np.nan)


def grouped(
    bins: IntervalBins, table: Integers, span: Integers, size: int
) -> tuple[Integers, Integers]:
    """Return the rows and spans of each `size` neighbouring intervals put together."""
    missing = -len(table) % size
    table = np.pad(table, ((0, missing), (0, 0)))
    span = np.pad(span, ((0, missing), (0, 0)), constant_values=EMPTY_SPAN)
    low = np.where(span[:, 0] == EMPTY_SPAN, np.iinfo(np.int64).max, span[:, 0])
    low = low.reshape(-1, size).min(axis=1)
    high = span[:, 1].reshape(-1, size).max(axis=1)
    together = np.stack((np.where(high == EMPTY_SPAN, EMPTY_SPAN, low), high), axis=1)
    aligned = bins.widened(table, span, np.repeat(together, size, axis=0))
    return aligned.reshape(len(together), size, -1).sum(axis=1), together


def widest(first: Integers, second: Integers) -> Integers:
    """Return the spans, (K, 2), that contain both; EMPTY_SPAN marks an empty one."""
    low = np.where(first[:, 0] == EMPTY_SPAN, second[:, 0], first[:, 0])
    low = np.where(second[:, 0] == EMPTY_SPAN, low, np.minimum(low, second[:, 0]))
    return np.stack((low, np.maximum(first[:, 1], second[:, 1])), axis=1)


def spans_of(index: Integers, place: Integers, number: int) -> Integers:
    """Return the lowest and the highest bin of each interval's pixels, (number, 2)."""
    low = np.full(number, np.iinfo(np.int64).max)
    high = np.full(number, EMPTY_SPAN, dtype=np.int64)
    np.minimum.at(low, place, index)
    np.maximum.at(high, place, index)
    return np.stack((np.where(high == EMPTY_SPAN, EMPTY_SPAN, low), high), axis=1)
