# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""95 % intervals of metrics by a block bootstrap over frames.

Neighbouring frames are similar, so frames are resampled in blocks of consecutive frames
(Carlstein, "The use of subseries values for estimating the variance of a general statistic",
1986). A replicate is a weighted sum of blocks: the registry computes metrics from it in the same
way as from all frames.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.registry import ANY, METRICS, Metric
from uncertainty_depth.metrics.state import BLOCK, EXTREMES, Sums

Floats = NDArray[np.float64]
ENOUGH_BLOCKS = 10
REPLICATES = 1000
SEED = 0
NORMAL_QUANTILE = 1.959964  # of 97.5 %
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The same of Student's t with 1 to 9 degrees of freedom."""
MIN_SERIES = 8
ROUNDING = 1e-18
"""A variance below this fraction of the mean square is that of rounding."""
FEW_BLOCKS_SPREAD = 0.5
"""Min half width of an interval from fewer than `ENOUGH_BLOCKS` blocks.

As a fraction of the metric, over the square root of the number of blocks.
"""


@dataclass(frozen=True)
class Interval:
    """A metric with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        """Return e.g. `0.310 (0.280 to 0.345)`; just the value without an interval."""
        value = _number(self.value, digits)
        if math.isnan(self.low):
            return value
        return f"{value} ({_number(self.low, digits)} to {_number(self.high, digits)})"


def _number(value: float, digits: int) -> str:
    is_long = math.isfinite(value) and abs(value) >= 10**5
    return f"{value:.2g}" if is_long else f"{value:.{digits}f}"


class Resampled:
    """Sums over all frames, and over bootstrap replicates drawn from their blocks.

    Attributes:
        total: sums over all frames, one row.
        replicates: `REPLICATES` rows.
        blocks: number of blocks to draw from.
    """

    def __init__(self, metrics: OnlineMetrics, length: int | None = None) -> None:
        """Draw the replicates.

        Args:
            metrics: of at least one frame.
            length: number of neighbouring state blocks that are drawn as one; if None, it follows
                from their correlation. Equal numbers draw equal frames from equal blocks.
        """
        table = metrics.blocks.table()
        number = len(table)
        self.total = metrics.total()
        length = block_length(metrics) if length is None else length
        starts = np.arange(0, max(number - length // 2, 1), length)
        self.blocks = len(starts)
        drawn = {name: _joined(name, table[name], starts) for name in BLOCK.names or ()}
        random = np.random.default_rng(SEED)
        weights = random.multinomial(
            self.blocks, np.full(self.blocks, 1 / self.blocks), REPLICATES
        )
        self.replicates = Sums(drawn, weights.astype(np.float64), metrics.config.alpha)

    @property
    def few(self) -> bool:
        """Return whether there are too few blocks for a reliable interval."""
        return self.blocks < ENOUGH_BLOCKS

    def rows(self, metric: Metric | Callable[[Sums], Floats], candidate: str = "method") -> Floats:
        """Return a metric over all frames, and over each replicate: (1 + REPLICATES, ...)."""
        compute = metric.values if isinstance(metric, Metric) else metric
        with np.errstate(all="ignore"):
            return np.concatenate(
                (compute(self.total.of(candidate)), compute(self.replicates.of(candidate)))
            )

    def interval(
        self,
        rows: Floats,
        scale: float | None = None,
        limits: tuple[float, float] = ANY,
    ) -> Interval:
        """Return a metric's interval from its values in the sample and the replicates.

        It is the replicates' percentiles, widened around the value by the ratio of Student's t and
        the normal quantile; with few blocks, the t quantile times the replicates' deviation, and
        at least `FEW_BLOCKS_SPREAD / sqrt(blocks)` times `scale`.

        Args:
            rows: (1 + REPLICATES,) values.
            scale: size of the metric, in its unit. Without it one block has no interval (NaN).
            limits: a `Metric`'s limits, which clip the interval: with few blocks a symmetric
                interval could promise a coverage above 1.
        """
        value = float(rows[0])
        if not math.isfinite(value):
            return Interval(value, value, value)
        if self.blocks == 1 and scale is None:
            return Interval(value, math.nan, math.nan)
        min_width = (
            FEW_BLOCKS_SPREAD / math.sqrt(self.blocks) * (scale or 0.0) if self.few else 0.0
        )
        below, above = self._half_widths(value, rows[1:][np.isfinite(rows[1:])])
        low = max(value - max(below, min_width), limits[0])
        high = min(value + max(above, min_width), limits[1])
        # A value may exceed its limits by rounding.
        return Interval(value, min(low, value), max(high, value))

    def _half_widths(self, value: float, replicates: Floats) -> tuple[float, float]:
        if not replicates.size:
            return 0.0, 0.0
        if self.few:  # the percentiles of a few blocks are steps
            width = NORMAL_QUANTILE * _student_factor(self.blocks) * float(replicates.std())
            return width, width
        low, high = np.percentile(replicates, (2.5, 97.5)).tolist()
        factor = _student_factor(self.blocks)
        return factor * (value - low), factor * (high - value)

    def intervals(self, without_size: bool = False) -> dict[str, Interval]:
        """Return the interval of each metric that is a finite number, by dotted name."""
        by_name = {}
        for metric in METRICS:
            if metric.unit == "count" or (without_size and metric.is_size):
                continue
            rows = self.rows(metric)
            columns = rows.T if metric.groups else [rows]
            for name, column in zip(metric.names(), columns, strict=True):
                if math.isfinite(column[0]):
                    by_name[name] = self.interval(column, limits=metric.limits)
        return by_name


def _joined(name: str, parts: NDArray, starts: NDArray[np.intp]) -> NDArray:
    """Return a part of neighbouring blocks together, as 64 bits."""
    if name in EXTREMES:
        return np.maximum.reduceat(parts, starts, axis=0)
    kind = np.int64 if parts.dtype.kind == "i" else np.float64
    return np.add.reduceat(parts, starts, axis=0, dtype=kind)


def block_length(metrics: OnlineMetrics) -> int:
    """Return how many neighbouring state blocks are drawn as one.

    It is the largest number that error, coverage and sigma's size need, because any of them may
    drift slowly.
    """
    sums = metrics.each_block()
    with np.errstate(invalid="ignore"):
        series = [sums[name] / sums["pixels"] for name in ("error", "log_sigma")]
        series += list((sums["covered"][:, :, -5] / sums["pixels"][:, None]).T)
    return longest_block(series)


def longest_block(series: Iterable[Floats]) -> int:
    """Return the longest block length of several series, at least `n^(1/3)`.

    Politis and White, "Automatic block-length selection for the dependent bootstrap", Econometric
    Reviews 2004: `(3 (G / g)^2 / 2)^(1/3) n^(1/3)`, once with the sums G and g of autocorrelations
    under a flat-top window, and once with the sums for a first-order autoregression, which a short
    series needs.

    Args:
        series: (n,) each, a metric per unit in the order of the run; NaN values are left out.
    """
    lengths = []
    for values in series:
        finite = values[np.isfinite(values)]
        spread = max(_spread_of_window(finite), _spread_of_autoregression(finite))
        factor = (1.5 * spread**2) ** (1 / 3)
        length = math.ceil(max(factor, 1.0) * len(values) ** (1 / 3) - 1e-9)
        lengths.append(max(min(length, len(values)), 1))
    return max(lengths)


def _autocorrelations(values: Floats, lags: int) -> Floats:
    """Return the autocorrelations at lags 0, 1 ... `lags`; zeros but for the first if constant."""
    centred = values - values.mean() if values.size else values
    variance = float(centred @ centred)
    result = np.zeros(lags + 1)
    result[0] = 1.0
    if variance > ROUNDING * float(values @ values):
        for lag in range(1, min(lags, len(values) - 1) + 1):
            result[lag] = float(centred[lag:] @ centred[:-lag]) / variance
    return result


def _spread_of_autoregression(values: Floats) -> float:
    """Return `sum |k| R(k) / sum R(k)` if R(k) is a power of R(1)."""
    correlation = min(max(_autocorrelations(values, 1)[1], 0.0), 0.95)
    return 2 * correlation / (1 - correlation**2)


def _spread_of_window(values: Floats) -> float:
    """Return the same ratio under a flat-top window, twice as wide as the correlation length."""
    number = len(values)
    if number < MIN_SERIES:
        return 0.0
    rest = max(5, math.ceil(math.sqrt(math.log10(number))))
    lags = math.ceil(math.sqrt(number)) + rest
    correlations = _autocorrelations(values, lags)
    small = np.abs(correlations[1:]) < 2 * math.sqrt(math.log10(number) / number)
    quiet = [place for place in range(lags - rest + 1) if small[place : place + rest].all()]
    width = 2 * max(quiet[0] if quiet else lags // 2, 1)
    lag = np.arange(1, min(width, lags) + 1)
    weighted = np.minimum(2 * (1 - lag / width), 1.0) * correlations[lag]
    total = 1 + 2 * float(weighted.sum())
    return 2 * float((lag * weighted).sum()) / total if total > 0 else 0.0


def _student_factor(blocks: int) -> float:
    """Return the quantile of Student's t over the normal's, times the bias of the deviation."""
    freedom = blocks - 1
    if freedom < 1:
        return 1.0
    quantile = STUDENT[freedom - 1] if freedom <= len(STUDENT) else _student_quantile(freedom)
    return quantile / NORMAL_QUANTILE * math.sqrt(blocks / freedom)


def _student_quantile(freedom: int) -> float:
    """Expansion of Cornish and Fisher, Abramowitz and Stegun 26.7.5, to two terms."""
    z = NORMAL_QUANTILE
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + first + second
