# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""MAE and n-MeRCI against ground-truth depth, in intervals of equal width.

Moukari et al., IROS 2019, figures 4 and 5: intervals of 0.1 m, the MAE of 95 % of the points.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Floats, Integers, interval_edges, interval_index
from uncertainty_depth.metrics.merci import n_merci, order_number, smallest_errors

ENOUGH_PIXELS = 100
"""Pixels an interval needs to count in the mean: at alpha = 0.95, five lie beyond the quantile."""


@dataclass(frozen=True, eq=False)
class DepthIntervals:
    """Metrics per depth interval `[edges[k], edges[k + 1])`; NaN where they are not defined.

    Attributes:
        edges: (K + 1,) metres.
        pixels: (K,) number of pixels.
        mae: (K,) metres.
        mae_kept: (K,) metres, of the `ceil(alpha n)` pixels with the smallest error: the paper's.
        n_merci: (K,) in the reading that was asked for; NaN where an interval has fewer than two
            pixels, or errors that are all equal.
        enough: pixels that an interval needs to count in `mean_n_merci`.
    """

    edges: Floats
    pixels: Integers
    mae: Floats
    mae_kept: Floats
    n_merci: Floats
    enough: int = ENOUGH_PIXELS

    @property
    def mean_n_merci(self) -> float:
        """Mean over the intervals with enough pixels (in brackets in the paper's figure 5).

        NaN where there is none.
        """
        values = self.n_merci[(self.pixels >= self.enough) & ~np.isnan(self.n_merci)]
        return float(values.mean()) if values.size else math.nan

    @property
    def intervals_with_enough(self) -> int:
        """Number of intervals with enough pixels."""
        return int((self.pixels >= self.enough).sum())


def by_depth(
    error: ArrayLike,
    sigma: ArrayLike,
    ground_truth: ArrayLike,
    interval: float = 0.1,
    alpha: float = 0.95,
    trimmed: bool = False,
    withdrawn: bool = False,
    enough: int = ENOUGH_PIXELS,
) -> DepthIntervals:
    """Return MAE and n-MeRCI in each interval `[k w, (k + 1) w)` of ground truth.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) standard deviations, metres, zero allowed.
        ground_truth: (N,) metres, not negative.
        interval: width w, metres.
        alpha: fraction of the pixels to cover, in (0, 1].
        trimmed: the trimmed reading of n-MeRCI, see `n_merci`.
        withdrawn: the withdrawn reading.
        enough: pixels an interval needs to count in the mean.

    Returns:
        The metrics; no interval for N = 0.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, alpha or interval out of range.
    """
    error, sigma, ground_truth = checks.flat(error=error, sigma=sigma, ground_truth=ground_truth)
    checks.at_least_zero(error=error, sigma=sigma, ground_truth=ground_truth)
    checks.fraction("alpha", alpha)
    if not (isinstance(interval, numbers.Real) and 0 < interval < math.inf):
        raise ValueError(f"interval is {interval!r}; expected a positive width in metres")
    place = interval_index(ground_truth, interval)
    number = int(place.max()) + 1 if len(place) else 0
    order = np.argsort(place, kind="stable")
    pixels = np.bincount(place, minlength=number)
    parts = np.split(order, np.cumsum(pixels)[:-1]) if number else []
    mae = np.full(number, math.nan)
    mae_kept = np.full(number, math.nan)
    merci = np.full(number, math.nan)
    for k in np.flatnonzero(pixels):
        errors = error[parts[k]]
        mae[k] = errors.mean()
        mae_kept[k] = errors[smallest_errors(errors, order_number(alpha, len(errors)))].mean()
        if errors.min() < errors.max():
            merci[k] = n_merci(errors, sigma[parts[k]], alpha, trimmed, withdrawn)
    return DepthIntervals(
        interval_edges(0, number, interval), pixels, mae, mae_kept, merci, enough
    )
