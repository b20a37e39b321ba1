"""Array operations that several metrics share: orders, sums of prefixes, ranks with ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def as_floats(values: Any) -> Floats:
    """The values as float64, without a copy where they are float64 already.

    Tensors of torch on the CPU are arrays too.
    """
    return np.asarray(values, dtype=np.float64)


def order_statistic(values: Floats, number: int) -> float:
    """The `number`-th smallest value, counted from 1."""
    return float(np.partition(values, number - 1)[number - 1])


def first_sums(values: Floats, counts: Integers) -> Floats:
    """Sums of the first `counts` values, for a few counts of any shape."""
    order = np.argsort(counts, axis=None)
    ends = counts.reshape(-1)[order]
    starts = np.concatenate(([0], ends[:-1]))
    segments = np.zeros(ends.size)
    inside = starts < ends[-1]
    if inside.any():
        segments[inside] = np.add.reduceat(values[: ends[-1]], starts[inside])
        segments[starts == ends] = 0.0  # reduceat gives an element for an empty segment
    sums = np.empty(ends.size)
    sums[order] = np.cumsum(segments)
    return sums.reshape(counts.shape)


def average_ranks(ascending: Floats) -> Floats:
    """Ranks 0 ... N - 1 of sorted values minus their mean; ties get the mean of their ranks."""
    is_first = np.concatenate(([True], ascending[1:] != ascending[:-1]))
    starts = np.flatnonzero(is_first)
    lengths = np.diff(starts, append=ascending.size)
    group_ranks = starts + (lengths - 1) / 2 - (ascending.size - 1) / 2
    return np.repeat(group_ranks, lengths)


def trapezoid(values: Floats, positions: ArrayLike) -> float:
    """Integral by the trapezoid rule."""
    return float(((values[1:] + values[:-1]) * np.diff(positions)).sum() / 2)
