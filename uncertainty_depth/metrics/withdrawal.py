# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How the pixels withdrawn for their large error spread over error / sigma."""

from __future__ import annotations

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, Integers

LOG_LIMITS = (-690.0, 690.0)


def withdrawn_counts(
    joint: Integers,
    sigma_limits: tuple[Floats, Floats],
    error_edges: Floats,
    withdrawn: int,
    limit: float,
    ratio_edges: Floats,
) -> Floats:
    """Return how many withdrawn pixels have a ratio below each bin's upper edge, approximately.

    Withdrawn are the pixels with the largest errors. They are taken from the columns of a joint
    histogram, the last of these in proportion, and each cell is spread evenly over the logarithm
    of the ratios that it can hold.

    Args:
        joint: (R, C) pixels by sigma and error.
        sigma_limits: lower and upper limit of each row, (R,) each, metres.
        error_edges: (C + 1,) metres.
        withdrawn: how many.
        limit: the smallest error withdrawn, metres.
        ratio_edges: (B + 1,) edges of the ratio bins.

    Returns:
        (B,) numbers of pixels, ascending.
    """
    columns = joint.sum(axis=0)
    larger = np.concatenate((np.cumsum(columns[::-1])[::-1][1:], [0]))
    withdrawn_columns = np.clip(withdrawn - larger, 0, columns)
    fraction = withdrawn_columns / np.maximum(columns, 1)
    rows, places = np.nonzero(joint * (fraction > 0))
    weight = joint[rows, places] * fraction[places]
    log_lower_sigma, log_upper_sigma = map(_logarithm, sigma_limits)
    log_error = _logarithm(error_edges)
    log_lower_error = np.maximum(log_error, _logarithm(np.array([limit]))[0])
    lowest = np.minimum(log_lower_error[places], log_error[places + 1]) - log_upper_sigma[rows]
    highest = log_error[places + 1] - log_lower_sigma[rows]
    return _ramps(lowest, np.maximum(highest, lowest + 1e-9), weight, _logarithm(ratio_edges[1:]))


def _logarithm(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.clip(np.log(values), *LOG_LIMITS)


def _ramps(start: Floats, end: Floats, height: Floats, positions: Floats) -> Floats:
    """Return the sum, at ascending positions, of ramps from 0 at each start to their height."""
    slope = height / (end - start)
    knots = np.concatenate((start, end))
    order = np.argsort(knots)
    knots = knots[order]
    slopes = np.cumsum(np.concatenate((slope, -slope))[order])
    values = np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(knots))))
    if not len(knots):
        return np.zeros(len(positions))
    return np.interp(positions, knots, values)
