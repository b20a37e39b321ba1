"""MAE and n-MeRCI against ground-truth depth, in intervals of equal width (Moukari et al., IROS 2019, figure 5: 0.1 m)."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Array, Arrays, Floats
from uncertainty_depth.metrics.merci import error_ratio, normalised, order_number

ENOUGH_PIXELS = 100
"""Pixels an interval needs to count in the mean: at alpha = 0.95 the five worst of a hundred are left out."""


@dataclass(frozen=True, eq=False)
class DepthIntervals:
    """Figures per depth interval `[edges[k], edges[k + 1])`; NaN where an interval has no pixel.

    Attributes:
        edges: (K + 1,) metres.
        pixels: (K,) how many.
        mae: (K,) metres.
        n_merci: (K,) in the reading that was asked for.
        enough: pixels that an interval needs to count in `mean_n_merci`.
    """

    edges: Floats
    pixels: NDArray[np.int64]
    mae: Floats
    n_merci: Floats
    enough: int = ENOUGH_PIXELS

    @property
    def mean_n_merci(self) -> float:
        """Mean over the intervals with enough pixels, the figure in brackets of the paper's figure 5; NaN where there is none."""
        counted = self.n_merci[(self.pixels >= self.enough) & ~np.isnan(self.n_merci)]
        return float(counted.mean()) if counted.size else math.nan

    @property
    def intervals_with_enough(self) -> int:
        """How many intervals have enough pixels."""
        return int((self.pixels >= self.enough).sum())


def by_depth(
    error: Array,
    sigma: Array,
    ground_truth: Array,
    interval: float = 0.1,
    alpha: float = 0.95,
    trimmed: bool = False,
    enough: int = ENOUGH_PIXELS,
) -> DepthIntervals:
    """MAE and n-MeRCI in each interval `[k w, (k + 1) w)` of ground-truth depth, from 0 to the farthest pixel; `edges` are the exact float64 limits.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) standard deviations, metres, zero allowed.
        ground_truth: (N,) metres, not negative.
        interval: width w, metres.
        alpha: share of the pixels to cover, in (0, 1].
        trimmed: the trimmed reading of n-MeRCI.
        enough: pixels an interval needs to count in the mean.

    Returns:
        The figures; no interval for N = 0.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, alpha or interval out of range.
    """
    xp, (error, sigma, ground_truth) = checks.flat(
        error=error, sigma=sigma, ground_truth=ground_truth
    )
    checks.at_least_zero(error=error, sigma=sigma, ground_truth=ground_truth)
    if not (isinstance(interval, numbers.Real) and 0 < interval < math.inf):
        raise ValueError(f"interval is {interval!r}; expected a positive width in metres")
    order_number(alpha, len(error))
    index = interval_index(xp, ground_truth, interval)
    number = int(index.max()) + 1 if len(error) else 0
    edges = interval_edges(0, number, interval)
    pixels, mae, merci = (
        (np.zeros(0, dtype=np.int64), *2 * (np.zeros(0),))
        if not number
        else _figures(xp, error, sigma, index, number, alpha, trimmed)
    )
    return DepthIntervals(edges, pixels, mae, merci, enough)


def interval_index(xp: Arrays, ground_truth: Array, interval: float) -> Array:
    """Number of the interval of each pixel, as integers."""
    # Not a plain number: on a GPU, division by one is a product with its rounded inverse.
    return xp.integers(ground_truth / xp.floats(np.float64(interval)))


def interval_edges(first: int, number: int, interval: float) -> Floats:
    """(number + 1,) the least depth that `interval_index` puts into each interval: `k w` up to its rounding."""
    wanted = np.arange(first, first + number + 1)
    edges = wanted * interval
    edges = np.where(np.floor(edges / interval) < wanted, np.nextafter(edges, np.inf), edges)
    while (lower := (edges > 0) & (np.floor(np.nextafter(edges, 0) / interval) >= wanted)).any():
        edges = np.where(lower, np.nextafter(edges, 0), edges)
    return edges


def _figures(
    xp: Arrays, error: Array, sigma: Array, index: Array, number: int, alpha: float, trimmed: bool
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """One sort by (interval, ratio): every interval is then a run whose order statistics can be read off."""
    ratio = error_ratio(xp, error, sigma)
    order = xp.argsort(ratio)
    order = order[xp.argsort(xp.floats(index[order]))]
    starts = xp.positions(index[order], np.arange(number + 1), "left")
    pixels = np.diff(starts)
    kept = starts[:-1] + np.array([order_number(alpha, count) for count in pixels])
    ends = kept if trimmed else starts[1:]
    error, sigma, ratio = error[order], sigma[order], ratio[order]
    largest = (
        _run_maxima(xp, error, starts[:-1], ends)
        if trimmed
        else _run_statistics(xp, error, index[order], kept)
    )
    filled = pixels > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        mae, all_mae, mean_sigma = (
            (sums[1] - sums[0]) / (stop - starts[:-1])
            for values, stop in ((error, ends), (error, starts[1:]), (sigma, ends))
            for sums in [xp.prefix_sums(values, np.stack((starts[:-1], stop)))]
        )
        merci = normalised(xp.pick(ratio, np.maximum(kept - 1, 0)), mean_sigma, mae, largest)
    return pixels, all_mae, np.where(filled, merci, math.nan)


def _run_statistics(xp: Arrays, error: Array, index: Array, kept: NDArray[np.int64]) -> Floats:
    """The error order statistic of each run: sort the errors within the runs."""
    order = xp.argsort(error)
    order = order[xp.argsort(xp.floats(index[order]))]
    return xp.pick(error[order], np.maximum(kept - 1, 0))


def _run_maxima(
    xp: Arrays, error: Array, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> Floats:
    """The largest error of each run."""
    return np.array(
        [
            float(error[start:end].max()) if end > start else math.nan
            for start, end in zip(starts, ends, strict=True)
        ]
    )
