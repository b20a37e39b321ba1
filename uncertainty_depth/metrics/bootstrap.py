# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""95 % intervals for metrics by a block bootstrap over frames.

Neighbouring frames are similar, so frames are resampled in blocks that follow each other
(Carlstein, "The use of subseries values for estimating the variance of a general statistic",
1986). A replicate is a weighted sum over blocks: the registry computes metrics from it in the same
way as from all frames. Blocks as long as a slow change are few, and still similar to each other:
the replicates' deviation is widened by Student's t and by what a first-order autoregression, with
or without each frame's own noise, makes of that. `benchmarks/intervals.py` simulates how often
the intervals hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.arrays import (
    MAX_CORRELATION,
    autocorrelations,
    neighbour_correlation,
)
from uncertainty_depth.metrics.metric import ANY, Metric, SigmaKind, percent_text
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import METRICS
from uncertainty_depth.metrics.state import BLOCK, EXTREMES, Sums

ENOUGH_BLOCKS = 10
REPLICATES = 1000
SEED = 0
MIN_VIEWS = 20
"""Fewer have no interval: the correlation between so few views is hardly known."""
MIN_WINDOW = 8
DECAY_LAGS = 3
DECAY_VIEWS = 2 * MIN_VIEWS
"""With fewer, noise and a slow change cannot be told apart."""
FEW_CORRELATION = 0.8
"""Lowest correlation of neighbouring frames of one recording with fewer than `DECAY_VIEWS`: so few
cannot show that it is less."""
MIN_DRAWN = 3
"""Min number of blocks, however slowly a run changes: fewer have no deviation to speak of."""
ROUGH_SPREAD = 0.5
"""Min half width of a rough interval, from fewer than `MIN_VIEWS` views.

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

    def text_in_percent(self) -> str:
        """Return e.g. `93.8 % (88.6 % to 99.0 %)`; just the value if that is all."""
        value, low, high = map(percent_text, (self.value, self.low, self.high))
        return value if math.isnan(self.low) or low == high else f"{value} ({low} to {high})"


def _number(value: float, digits: int) -> str:
    is_long = math.isfinite(value) and abs(value) >= 10**5
    return f"{value:.2g}" if is_long else f"{value:.{digits}f}"


class Resampled:
    """Sums over all frames, and over bootstrap replicates drawn from their blocks."""

    def __init__(
        self,
        metrics: OnlineMetrics,
        repeated: float = 0.0,
        dependence: Dependence | None = None,
        places: int | None = None,
    ) -> None:
        """Draw the replicates.

        Args:
            metrics: with at least one frame.
            repeated: fraction of the frames that repeat earlier ones, which are no new evidence:
                only as many blocks are drawn as the others make.
            dependence: between neighbouring state blocks; if None, that of `metrics`. The same one
                draws the same frames from equal blocks.
            places: how many places the frames show, if known: no more blocks are drawn.
        """
        table = metrics.blocks.table()
        number = len(table)
        self.total = metrics.total()
        dependence = dependence or dependence_of(metrics)
        length = dependence.length
        starts = np.arange(0, max(number - length // 2, 1), length)
        drawn_blocks = min(round((1 - repeated) * len(starts)), places or len(starts))
        self.drawn_blocks = max(drawn_blocks, 1)
        self.has_intervals = (1 - repeated) * number >= MIN_VIEWS and self.drawn_blocks > 1
        self._widening = _widening(self.drawn_blocks, dependence)
        drawn = {name: _joined(name, table[name], starts) for name in BLOCK.names or ()}
        random = np.random.default_rng(SEED)
        weights = random.multinomial(
            self.drawn_blocks, np.full(len(starts), 1 / len(starts)), REPLICATES
        )
        self.replicates = Sums(drawn, weights.astype(np.float64))

    def rows(
        self, metric: Metric | Callable[[Sums], Floats], sigma_name: str = "predicted"
    ) -> Floats:
        """Return a metric over all frames, and over each replicate: (1 + REPLICATES, ...)."""
        compute = metric.values if isinstance(metric, Metric) else metric
        with np.errstate(all="ignore"):
            return np.concatenate(
                (compute(self.total.of(sigma_name)), compute(self.replicates.of(sigma_name)))
            )

    def interval(
        self,
        rows: Floats,
        scale: float | None = None,
        limits: tuple[float, float] | None = None,
    ) -> Interval:
        """Return a metric's interval from its values in the sample and the replicates.

        It is symmetric around the value: replicates' percentiles lie too high for a metric that
        adds up absolute deviations, as AUCE does, and those from few blocks are steps.

        Args:
            rows: (1 + REPLICATES,) values.
            scale: the metric's size, in its unit. Without it there is no interval (NaN) for fewer
                than `MIN_VIEWS` views; with it a rough one, which can refute but not confirm.
            limits: a `Metric`'s limits, which clip the interval: with few blocks a symmetric
                interval could promise a coverage above 1. A metric without limits has no interval
                (NaN) for fewer than `ENOUGH_BLOCKS` blocks: nothing would keep three blocks' from
                being absurd. None for the difference of two metrics, which is judged as it is.
        """
        value = float(rows[0])
        if not math.isfinite(value):
            return Interval(value, value, value)
        is_open = limits == ANY and self.drawn_blocks < ENOUGH_BLOCKS
        if is_open or (scale is None and not self.has_intervals):
            return Interval(value, math.nan, math.nan)
        replicates = rows[1:][np.isfinite(rows[1:])]
        half_width = self._widening * float(replicates.std()) if replicates.size else 0.0
        if not self.has_intervals:
            half_width = max(
                half_width, ROUGH_SPREAD / math.sqrt(self.drawn_blocks) * (scale or 0.0)
            )
        lowest, highest = limits or ANY
        low = max(value - half_width, lowest)
        high = min(value + half_width, highest)
        # A value may exceed its limits by rounding.
        return Interval(value, min(low, value), max(high, value))

    def intervals(self, kind: SigmaKind = SigmaKind.METRES) -> dict[str, Interval]:
        """Return each metric's interval that this kind of sigma has, by dotted name."""
        by_name = {}
        for metric in METRICS:
            if metric.unit == "count" or not metric.is_judged(kind):
                continue
            rows = self.rows(metric)
            columns = rows.T if metric.groups else [rows]
            for name, column in zip(metric.names(), columns, strict=True):
                if math.isfinite(column[0]):
                    by_name[name] = self.interval(column, limits=metric.limits)
        return by_name


def _joined(name: str, parts: NDArray, starts: NDArray[np.intp]) -> NDArray:
    """Return a part from neighbouring blocks together, as 64 bits."""
    if name in EXTREMES:
        return np.maximum.reduceat(parts, starts, axis=0)
    kind = np.int64 if parts.dtype.kind == "i" else np.float64
    return np.add.reduceat(parts, starts, axis=0, dtype=kind)


class Dependence(NamedTuple):
    """How neighbouring state blocks depend on each other.

    Attributes:
        length: how many are drawn as one.
        correlation: between two neighbours.
        decay: factor from the correlation at one lag to that at the next; more than `correlation`
            if each block's own noise lies over a slow change.
    """

    length: int
    correlation: float
    decay: float


def dependence_of(*metrics: OnlineMetrics) -> Dependence:
    """Return the dependence that all metrics' error, coverage and sigma's size need.

    Any may drift slowly: the longest blocks and the highest correlations count.
    """
    found: list[Dependence] = []
    for each in metrics:
        sums = each.each_block()
        with np.errstate(invalid="ignore"):
            series = [sums[name] / sums["pixels"] for name in ("error", "log_sigma")]
            series += list((sums["covered"][:, :, -5] / sums["pixels"][:, None]).T)
        found += map(_dependence, series)
    return Dependence(*map(max, zip(*found, strict=True)))


def _dependence(values: Floats) -> Dependence:
    """Return a series' dependence: its first-order autoregression, or a longer block.

    Blocks are at least as long as Politis and White ask for ("Automatic block-length selection for
    the dependent bootstrap", Econometric Reviews 2004): `(3 (G / g)^2 / 2)^(1/3) n^(1/3)`, with
    the autocorrelations' sums G and g under a flat-top window.
    """
    finite = values[np.isfinite(values)]
    correlation = neighbour_correlation(finite)
    of_window = (1.5 * _spread_of_window(finite) ** 2) ** (1 / 3)
    length = max(
        max(of_window, 1.0) * len(values) ** (1 / 3), (1 + correlation) / (1 - correlation)
    )
    longest = max(len(values) // MIN_DRAWN, 1)
    decay = max(correlation, _decay(finite))
    return Dependence(min(math.ceil(length - 1e-9), longest), correlation, decay)


def dependence_of_recording(values: Floats, number: int) -> Dependence:
    """Return how a recording's frames depend on each other, which few frames cannot tell.

    `values`, one a frame in the order of time, are this recording's or all's; `number`
    counts its frames. Fewer than `MIN_VIEWS` are one block; fewer than `DECAY_VIEWS` have
    `FEW_CORRELATION` at least.
    """
    found = _dependence(values)
    if number >= DECAY_VIEWS:
        return found
    correlation = max(found.correlation, FEW_CORRELATION)
    length = math.ceil((1 + correlation) / (1 - correlation) - 1e-9)
    length = number if number < MIN_VIEWS else max(found.length, length)
    return Dependence(length, correlation, max(found.decay, correlation))


def mean_interval(values: Floats, rough: float) -> Interval:
    """Return the mean's interval over (N,) frames in time; at least `rough` for few of them."""
    number = len(values)
    is_rough = number < MIN_VIEWS
    # So few are one block, which shows no deviation: the frames' own is then the least.
    dependence = _dependence(values) if is_rough else dependence_of_recording(values, number)
    length = dependence.length
    starts = np.arange(0, max(number - length // 2, 1), length)
    sizes = np.diff(starts, append=number)
    mean = float(values.mean())
    deviations = (np.add.reduceat(values, starts) - mean * sizes) / sizes.mean()
    half_width = _widening(len(starts), dependence) * float(deviations.std())
    half_width /= math.sqrt(len(starts))
    if is_rough:
        half_width = max(half_width, rough)
    return Interval(mean, mean - half_width, mean + half_width)


def _decay(values: Floats) -> float:
    """Return by what factor correlations fall from lag to lag; noise alone does not change it."""
    number = len(values)
    found = autocorrelations(values, DECAY_LAGS)[1:]
    found += (1 + 3 * found[0]) / number  # the bias, as in `neighbour_correlation`
    if number < DECAY_VIEWS or found[0] < 1 / math.sqrt(number) or found[:-1].sum() <= 0:
        return 0.0
    return min(float(found[1:].sum() / found[:-1].sum()), MAX_CORRELATION)


def _spread_of_window(values: Floats) -> float:
    """Return `sum |k| R(k) / sum R(k)` under a window twice as wide as the correlation length."""
    number = len(values)
    if number < MIN_WINDOW:
        return 0.0
    rest = max(5, math.ceil(math.sqrt(math.log10(number))))
    lags = math.ceil(math.sqrt(number)) + rest
    correlations = autocorrelations(values, lags)
    small = np.abs(correlations[1:]) < 2 * math.sqrt(math.log10(number) / number)
    quiet = [index for index in range(lags - rest + 1) if small[index : index + rest].all()]
    width = 2 * max(quiet[0] if quiet else lags // 2, 1)
    lag = np.arange(1, min(width, lags) + 1)
    weighted = np.minimum(2 * (1 - lag / width), 1.0) * correlations[lag]
    total = 1 + 2 * float(weighted.sum())
    return 2 * float((lag * weighted).sum()) / total if total > 0 else 0.0


def _widening(blocks: int, dependence: Dependence) -> float:
    """Return an interval's half width over the replicates' deviation; 0 for a single block."""
    from scipy.special import stdtrit  # loads slowly, and `train` needs no interval

    if blocks < 2:
        return 0.0
    of_mean = _variance_of_mean(blocks * dependence.length, dependence)
    of_block = _variance_of_mean(dependence.length, dependence)
    of_replicates = (of_block - of_mean) / blocks
    return float(stdtrit(blocks - 1, 0.975)) * math.sqrt(of_mean / of_replicates)


def _variance_of_mean(number: int, dependence: Dependence) -> float:
    """Return the mean's variance if correlation at lag k is `correlation * decay ** (k - 1)`."""
    gap = 1 - dependence.decay
    lags = 1 / gap - (1 - dependence.decay**number) / (number * gap**2)
    return (1 + 2 * dependence.correlation * lags) / number
