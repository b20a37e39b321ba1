# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of a depth that ignores the image, and the ground truth's distribution."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.depth import A1_FACTOR
from uncertainty_depth.metrics.state import BLOCK_GRID, TRUTH, Sums

Compute = Callable[[Sums], Floats]


def constant_rmse(sums: Sums) -> Floats:
    """Return the lowest rmse of a constant depth, metres: the deviation of the ground truth."""
    mean = sums["truth"] / sums["pixels"]
    return np.sqrt(np.maximum(sums["squared_truth"] / sums["pixels"] - mean**2, 0.0))


def constant_a1(sums: Sums) -> Floats:
    """Return the highest a1 of a constant depth, among the edges of `TRUTH`."""
    edges = TRUTH.edges[1:-1]
    counts = sums["truths"]
    within = TRUTH.below(counts, A1_FACTOR * edges) - TRUTH.below(counts, edges / A1_FACTOR)
    return within.max(axis=-1) / counts.sum(axis=-1)


def finite_rmse_log(sums: Sums) -> Floats:
    """Return rmse_log of pixels with positive depth: a single other pixel must not decide it."""
    return np.sqrt(sums["squared_log"] / (sums["pixels"] - sums["no_depth"]))


def outside(low: float, high: float) -> Compute:
    """Return a function that computes the fraction of ground truth outside [low, high] metres."""

    def compute(sums: Sums) -> Floats:
        counts = sums["truths"]
        below = TRUTH.below(counts, np.array([low, high]))
        share = 1 - (below[..., 1] - below[..., 0]) / counts.sum(axis=-1)
        return np.clip(share, 0.0, 1.0)

    return compute


def median_map(median_m: NDArray[np.float64]) -> tuple[Compute, Compute]:
    """Return what computes rmse_log and rmse, metres, of a depth that is the same in every frame.

    Args:
        median_m: depth by cell of `pixels.GRID`, metres, NaN for unknown; four cells are merged
            here, and pixels do not count if none of the four is known.
    """
    rows, columns = BLOCK_GRID
    cells = np.where(median_m > 0, median_m, np.nan).reshape(rows, 2, columns, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cell without any depth is NaN
        depth = np.nanmedian(cells, axis=(1, 3)).reshape(-1)
    known = np.isfinite(depth)

    def root_mean(value: Floats, name: str) -> Compute:
        def compute(sums: Sums) -> Floats:
            pixels = sums["cell.pixels"][:, known]
            total = sums[f"cell.squared_{name}"][:, known] + pixels * value[known] ** 2
            total = total - 2 * value[known] * sums[f"cell.{name}"][:, known]
            return np.sqrt(total.sum(axis=1) / pixels.sum(axis=1))

        return compute

    with np.errstate(invalid="ignore"):
        return root_mean(np.log(depth), "log_truth"), root_mean(depth, "truth")
