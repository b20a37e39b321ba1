# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The errors over all frames, from the tables of a state."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.bins import first_bin_sums, remaining_with_ties
from uncertainty_depth.metrics.merci import order_number
from uncertainty_depth.metrics.sparsification import POGGI
from uncertainty_depth.metrics.state import (
    DEPTH_SUMS,
    ERROR,
    ERROR_SUMS,
    State,
)


class PooledErrors:
    """The errors of a state with at least one pixel."""

    def __init__(self, state: State) -> None:
        self.tables = state.tables
        self.pixels = int(self.tables["counts"][0])
        sums = self.tables["depth_sums"].tolist()
        self.sums = dict(zip(DEPTH_SUMS, sums, strict=True))
        self.mae = self.sums["mae"] / self.pixels

    def order_numbers(self, alphas: Floats) -> Integers:
        """Return the number of pixels that cover each fraction."""
        return np.array([order_number(alpha, self.pixels) for alpha in alphas])

    def order_statistics(self, numbers: Integers) -> Floats:
        """Return order statistics of the error, counted from 1."""
        extremes = float(self.tables["error.least"][0]), float(self.tables["error.greatest"][0])
        return ERROR.order_statistics(self.tables["error.count"], numbers, extremes)

    @cached_property
    def coarse_counts(self) -> Integers:
        """Pixels in the bins of `ERROR_SUMS`."""
        return ERROR.coarse_counts(self.tables["error.count"], ERROR_SUMS)

    def first_sums(self, table: str, numbers: Integers) -> Floats:
        """Return sums of a table in the bins of `ERROR_SUMS` over the smallest errors."""
        return first_bin_sums(self.coarse_counts, self.tables[table], numbers)

    @cached_property
    def oracles(self) -> Floats:
        """Raw pooled oracle curve of each statistic, (3, K)."""
        return np.stack([self._abs_rel_oracle(), self._rmse_oracle(), self._a1_oracle()])

    def _abs_rel_oracle(self) -> Floats:
        counts = self.tables["relative.count"]
        remaining = remaining_with_ties(counts, POGGI.fractions, self.tables["relative.single"])
        return first_bin_sums(counts, self.tables["relative.relative"], remaining) / remaining

    def _rmse_oracle(self) -> Floats:
        counts = self.tables["error.count"]
        remaining = remaining_with_ties(counts, POGGI.fractions, self.tables["error.single"])
        return np.sqrt(first_bin_sums(counts, self.tables["error.squared"], remaining) / remaining)

    def _a1_oracle(self) -> Floats:
        counts = self.tables["factor.count"]
        remaining = remaining_with_ties(counts, POGGI.fractions, self.tables["factor.single"])
        return np.maximum(remaining - self.sums["a1"], 0) / remaining


def one_value(values: Floats) -> float:
    """Return the only element of an array."""
    return float(values.reshape(-1)[0])
