# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""n-MeRCI as the figures of its paper show it: two readings beside the plain one, and by depth.

Moukari, Simon, Picard and Jurie, IROS 2019, write equations 1 and 2 over all pixels ("plain", see
`uncertainty_depth.metrics.n_merci`). Figures 4 and 5 withdraw the worst points; which they are is
open:

withdrawn
    The 1 - alpha fraction with the largest error: the same pixels for every sigma.
trimmed
    The 1 - alpha fraction with the largest error / sigma. Sigma then chooses what it is not judged
    on, so noise on a sigma improves it: nothing should be ranked by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics import checks, n_merci
from uncertainty_depth.metrics.arrays import Integers, order_statistic
from uncertainty_depth.metrics.merci import error_ratio, normalised, order_number

READINGS = ("plain", "withdrawn", "trimmed")
ENOUGH_PIXELS = 100
"""Pixels an interval needs to count in the mean: at alpha = 0.95, five lie beyond the quantile."""


def n_merci_of(
    error: ArrayLike, sigma: ArrayLike, alpha: float = 0.95, reading: str = "plain"
) -> float:
    """Return n-MeRCI in one of the readings.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) predicted standard deviations, metres, zero allowed.
        alpha: fraction of the pixels to cover, in (0, 1].
        reading: "plain"; "withdrawn" keeps the `ceil(alpha N)` pixels with the smallest error and
            covers the fraction alpha of these; "trimmed" keeps those with the smallest error /
            sigma, of equals those with the smallest error.

    Returns:
        As `n_merci`.

    Raises:
        ValueError: as `n_merci`, or an unknown reading.
    """
    checks.choice("reading", reading, READINGS)
    errors, sigmas = checks.flat(error=error, sigma=sigma)
    number = order_number(alpha, len(errors))
    if reading == "withdrawn" and number:
        kept = smallest_errors(errors, number)
        return n_merci(errors[kept], sigmas[kept], alpha)
    if reading == "trimmed" and number:
        ratio = error_ratio(errors, sigmas)
        kept = np.lexsort((errors, ratio))[:number]
        factor = ratio[kept[-1]]
        terms = sigmas[kept].mean(), errors[kept].mean(), errors[kept].max()
        return float(normalised(factor, *terms))
    return n_merci(errors, sigmas, alpha)


def n_merci_curve(
    error: ArrayLike, sigma: ArrayLike, alphas: Sequence[float] | Floats, reading: str = "plain"
) -> Floats:
    """Return n-MeRCI for each of several alphas (paper, figure 2), (len(alphas),)."""
    return np.array([n_merci_of(error, sigma, alpha, reading) for alpha in alphas])


def smallest_errors(error: Floats, number: int) -> NDArray[np.bool_]:
    """Return the mask of the `number` smallest errors; of equals at the limit the first."""
    if number == len(error):
        return np.ones(number, dtype=bool)
    limit = order_statistic(error, number)
    mask = error <= limit
    surplus = int(np.count_nonzero(mask)) - number
    if surplus:
        mask[np.flatnonzero(error == limit)[-surplus:]] = False
    return mask


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
    reading: str = "plain",
    enough: int = ENOUGH_PIXELS,
) -> DepthIntervals:
    """Return MAE and n-MeRCI in each interval `[k w, (k + 1) w)` of ground truth.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) standard deviations, metres, zero allowed.
        ground_truth: (N,) metres, not negative.
        interval: width w, metres.
        alpha: fraction of the pixels to cover, in (0, 1].
        reading: of n-MeRCI, see `n_merci_of`.
        enough: pixels an interval needs to count in the mean.

    Returns:
        The metrics; no interval for N = 0.

    Raises:
        ValueError: wrong shapes, a negative or non-finite value, alpha or interval out of range.
    """
    error, sigma, ground_truth = checks.flat(error=error, sigma=sigma, ground_truth=ground_truth)
    checks.at_least_zero(error=error, sigma=sigma, ground_truth=ground_truth)
    checks.fraction("alpha", alpha)
    if not 0 < interval < math.inf:
        raise ValueError(f"interval is {interval!r}; expected a positive width in metres")
    place = (ground_truth / interval).astype(np.int64)
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
            merci[k] = n_merci_of(errors, sigma[parts[k]], alpha, reading)
    return DepthIntervals(_edges(number, interval), pixels, mae, mae_kept, merci, enough)


def _edges(number: int, interval: float) -> Floats:
    """Return the smallest depth in each interval, (number + 1,): `k w` up to its rounding."""
    numbers = np.arange(number + 1)
    edges: Floats = numbers * np.float64(interval)
    edges = np.where(np.floor(edges / interval) < numbers, np.nextafter(edges, np.inf), edges)
    while (lower := (edges > 0) & (np.floor(np.nextafter(edges, 0) / interval) >= numbers)).any():
        edges = np.where(lower, np.nextafter(edges, 0), edges)
    return edges
