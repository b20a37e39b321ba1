# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Array operations that several metrics share: orders, prefix sums, ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.core.array_types import Floats

Integers = NDArray[np.int64]


def as_floats(values: Any) -> Floats:
    """Return values, or torch tensors, as float64, without a copy if they are float64."""
    return np.asarray(as_array(values), dtype=np.float64)


def as_array(values: Any) -> NDArray[Any]:
    """Return the values as an array in their own type.

    A torch tensor may be on any device and have a gradient. bfloat16, which NumPy lacks, becomes
    float32. Masked elements are NaN, so a masked array of whole numbers becomes float64.
    """
    if np.ma.isMaskedArray(values):
        kind = values.dtype if values.dtype.kind == "f" else np.float64
        filled: NDArray[Any] = values.astype(kind).filled(np.nan)
        return filled
    if hasattr(values, "detach"):  # a tensor, and torch need not be imported for it
        values = values.detach().cpu()
        values = values.float() if "bfloat16" in str(values.dtype) else values
    return np.asarray(values)


def order_statistic(values: Floats, number: int) -> float:
    """Return the `number`-th smallest value, counted from 1."""
    return float(np.partition(values, number - 1)[number - 1])


def sorted_order(values: Floats) -> tuple[Integers, Floats]:
    """Return the argsort for values that are not negative, and the sorted values.

    The sort is stable, so the result is the same on every machine. NumPy sorts 16 bits at a time
    in linear time on any processor. Two such passes sort each float64's upper half; values
    that differ only in the lower half are sorted afterwards.
    """
    bits = values.view(np.uint64) >> np.uint64(32)
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    bits >>= np.uint64(16)
    order = order.take(np.argsort(bits.astype(np.uint16).take(order), kind="stable"))
    ascending = values.take(order)
    if (ascending[1:] < ascending[:-1]).any():
        order = order.take(np.argsort(ascending, kind="stable"))
        ascending = values.take(order)
    return order, ascending


def inner(first: Floats, second: Floats) -> float:
    """Return the inner product without BLAS, so that rounding does not depend on its threads."""
    return float(np.einsum("i,i", first, second))


def first_sums(values: Floats, counts: Integers) -> Floats:
    """Return the sums over the first `counts` values along the last axis.

    Values are (..., N), counts of any shape; the result has both's leading axes in this order.
    """
    order = np.argsort(counts, axis=None)
    ends = counts.reshape(-1)[order]
    starts = np.concatenate(([0], ends[:-1]))
    segments = np.zeros((*values.shape[:-1], ends.size))
    inside = starts < ends[-1]
    if inside.any():
        segments[..., inside] = np.add.reduceat(values[..., : ends[-1]], starts[inside], axis=-1)
        segments[..., starts == ends] = 0.0  # reduceat gives an element for an empty segment
    sums = np.empty_like(segments)
    sums[..., order] = np.cumsum(segments, axis=-1)
    return sums.reshape(*values.shape[:-1], *counts.shape)


def average_ranks(ascending: Floats) -> Floats:
    """Return centred ranks, equal values' mean, for sorted values."""
    first = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
    lengths = np.diff(first, append=len(ascending))
    return np.repeat(first + (lengths - 1) / 2, lengths) - (len(ascending) - 1) / 2


ROUNDING = 1e-18
"""A variance below this fraction of the mean square comes from rounding."""
MAX_CORRELATION = 0.97


def autocorrelations(values: Floats, lags: int) -> Floats:
    """Return the autocorrelations at lags 0, 1 ... `lags`; zeros but for the first if constant."""
    centred = values - values.mean() if values.size else values
    variance = float(centred @ centred)
    result = np.zeros(lags + 1)
    result[0] = 1.0
    if variance > ROUNDING * float(values @ values):
        for lag in range(1, min(lags, len(values) - 1) + 1):
            result[lag] = float(centred[lag:] @ centred[:-lag]) / variance
    return result


def neighbour_correlation(values: Floats) -> float:
    """Return the correlation between neighbours in a series, 0 to `MAX_CORRELATION`.

    For a short series it is too low by (1 + 3 r) / n (Marriott and Pope, "Bias in the estimation
    of autocorrelations", Biometrika 1954). A mean over n values in a first-order autoregression
    has the variance that n (1 - r) / (1 + r) independent values have.
    """
    found = float(autocorrelations(values, 1)[1])
    if not found:  # a constant, whose correlation is not known to be too low
        return 0.0
    return min(max(found + (1 + 3 * found) / len(values), 0.0), MAX_CORRELATION)


def trapezoid(values: Floats, positions: ArrayLike) -> float:
    """Return the integral by the trapezoid rule."""
    return float(((values[1:] + values[:-1]) * np.diff(positions)).sum() / 2)
