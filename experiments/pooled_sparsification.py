# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sparsification of all pixels together, as two papers have it; `metrics` has it image by image.

rmse: Gustafsson, Danelljan and Schon, "Evaluating Scalable Bayesian Deep Learning Methods for
Robust Computer Vision", CVPRW 2020, and its published code.
mae: Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow", ECCV 2018.

Both remove 0, 1 ... 99 % and divide each curve by its first value; areas are over 0 ... 0.99. They
keep a fixed number of pixels, which leaves the choice among ties to the sort. Here each tie is
kept in part (the mean over all choices), so the values do not depend on pixel order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Integers, first_sums, sorted_order
from uncertainty_depth.metrics.sparsification import Sparsification

FRACTIONS: Floats = np.arange(100) * np.float64(0.01)
"""Fractions removed."""


def pooled_sparsification(
    depth: ArrayLike, sigma: ArrayLike, ground_truth: ArrayLike, error: str = "rmse"
) -> Sparsification:
    """Return the curves for all pixels of a set.

    Args:
        depth: (N,) predicted depth, metres.
        sigma: (N,) standard deviation, metres; only its order matters.
        ground_truth: (N,), metres.
        error: "rmse" or "mae".

    Returns:
        Curves and areas; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a negative sigma, a non-finite value, an unknown error.
    """
    checks.choice("error", error, ("rmse", "mae"))
    depth, sigma, ground_truth = checks.flat(depth=depth, sigma=sigma, ground_truth=ground_truth)
    checks.at_least_zero(sigma=sigma)
    values = np.abs(depth - ground_truth)
    if error == "rmse":
        values = values * values
        kept = kept_numbers(len(values))
    else:  # a product of floats would lose pixels
        kept = np.maximum((100 - np.arange(100)) * len(values) // 100, 1)
    if not len(values):
        nothing = np.full(len(FRACTIONS), np.nan)
        return normalised(nothing, nothing)
    removal, oracle = (_means_of_rest(key, values, kept) for key in (sigma, values))
    return normalised(*(map(np.sqrt, (removal, oracle)) if error == "rmse" else (removal, oracle)))


def kept_numbers(number: int) -> Integers:
    """Return how many among `number` pixels Gustafsson et al. keep at each fraction."""
    return np.maximum(((1.0 - FRACTIONS) * number).astype(np.int64), 1)


def normalised(removal: Floats, oracle: Floats) -> Sparsification:
    """Return raw curves divided by their first values."""
    with np.errstate(invalid="ignore"):
        random = np.full(len(removal), removal[0]) / removal[0]
        return Sparsification(FRACTIONS, removal / removal[0], oracle / oracle[0], random)


def _means_of_rest(key: Floats, values: Floats, kept: Integers) -> Floats:
    """Return the mean of the values that are kept when those with the largest keys are removed."""
    order, ascending = sorted_order(key)
    ordered = values.take(order)
    edge = ascending[kept - 1]
    first, last = (np.searchsorted(ascending, edge, side) for side in ("left", "right"))
    before, until = first_sums(ordered, first), first_sums(ordered, last)
    return (before + (until - before) * (kept - first) / (last - first)) / kept
