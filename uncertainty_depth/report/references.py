# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of a depth that ignores the image, and the ground truth's distribution."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.calibration import NORMAL_LIMIT, folded_normal
from uncertainty_depth.metrics.depth import A1_FACTOR
from uncertainty_depth.metrics.state import BLOCK_GRID, MAX_LOG_ERROR, TRUTH, Sums

Compute = Callable[[Sums], Floats]


def bounded_rmse_log(sums: Sums) -> Floats:
    """Return rmse_log with errors of at most `MAX_LOG_ERROR`, which a depth of 0 has too."""
    return np.sqrt(sums["bounded_log"] / sums["pixels"])


def constant_bounded_rmse_log(sums: Sums) -> Floats:
    """Return the lowest `bounded_rmse_log` of a constant depth, among the edges of `TRUTH`."""
    log_truth = np.log(TRUTH.centres[1:-1])
    log_error = np.abs(np.log(TRUTH.edges[1:-1]) - log_truth[:, None])
    squared = np.minimum(log_error, MAX_LOG_ERROR) ** 2
    counts = sums["truths"][:, 1:-1]
    return np.sqrt((counts @ squared).min(axis=-1) / counts.sum(axis=-1))


def constant_a1(sums: Sums) -> Floats:
    """Return the highest a1 of a constant depth, among the edges of `TRUTH`."""
    edges = TRUTH.edges[1:-1]
    counts = sums["truths"]
    within = TRUTH.below(counts, A1_FACTOR * edges) - TRUTH.below(counts, edges / A1_FACTOR)
    return within.max(axis=-1) / counts.sum(axis=-1)


def outside(low: float, high: float) -> Compute:
    """Return a function that computes the fraction of ground truth outside [low, high] metres."""

    def compute(sums: Sums) -> Floats:
        counts = sums["truths"]
        below = TRUTH.below(counts, np.array([low, high]))
        share = 1 - (below[..., 1] - below[..., 0]) / counts.sum(axis=-1)
        return np.clip(share, 0.0, 1.0)

    return compute


def median_map(median_m: NDArray[np.float64]) -> Compute:
    """Return what computes `bounded_rmse_log` of a depth that is the same in every frame.

    Its log errors are taken for normally distributed: their mean square follows from sums by cell,
    and from it the mean of the bounded squares.

    Args:
        median_m: depth by cell of `pixels.GRID`, metres, NaN for unknown; four cells are merged
            here, and pixels do not count if none of the four is known.
    """
    rows, columns = BLOCK_GRID
    cells = np.where(median_m > 0, median_m, np.nan).reshape(rows, 2, columns, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cell without any depth is NaN
        log_depth = np.log(np.nanmedian(cells, axis=(1, 3)).reshape(-1))
    known = np.isfinite(log_depth)
    log_depth = log_depth[known]

    def compute(sums: Sums) -> Floats:
        pixels = sums["cell.pixels"][:, known]
        total = sums["cell.squared_log_truth"][:, known] + pixels * log_depth**2
        total = total - 2 * log_depth * sums["cell.log_truth"][:, known]
        deviation = np.sqrt(np.maximum(total.sum(axis=1) / pixels.sum(axis=1), 0.0))
        with np.errstate(divide="ignore"):
            bound = np.clip(np.nan_to_num(MAX_LOG_ERROR / deviation), 0.0, NORMAL_LIMIT)
        density, within = folded_normal(bound)
        return deviation * np.sqrt(within - bound * density + bound**2 * (1 - within))

    return compute
