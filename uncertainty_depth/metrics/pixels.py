# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The pixels of a frame that are scored."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.metrics.arrays import Floats, Integers, as_floats
from uncertainty_depth.metrics.depth import flat_maps, has_prediction, scorable
from uncertainty_depth.metrics.merci import error_ratio

GRID = (16, 20)
"""Rows and columns of the cells that an image is divided into, as in a model's median depth."""
CELLS = GRID[0] * GRID[1]


@lru_cache(maxsize=4)
def cell_map(height: int, width: int) -> Integers:
    """Return the (height * width,) cell of `GRID` of each pixel, numbered row by row."""
    rows = np.arange(height) * GRID[0] // height
    columns = np.arange(width) * GRID[1] // width
    return (rows[:, None] * GRID[1] + columns).reshape(-1)


class ScoredPixels:
    """The pixels of a frame that have ground truth, and those of them that are scored.

    Attributes:
        truth: (M,) ground truth within the limits of the evaluation, metres.
        depth, sigma, ground_truth: (N,) float64 of the pixels that also have a prediction, metres.
        cells: (N,) cell of `GRID` of each of these; None if the maps are flat.
    """

    def __init__(
        self,
        depth: ArrayLike,
        sigma: ArrayLike,
        ground_truth: ArrayLike,
        min_depth: float,
        max_depth: float,
    ) -> None:
        """Select the pixels, see `valid_pixels`.

        Raises:
            ValueError: the shapes differ, or an argument is not an array of numbers.
        """
        depths, sigmas, truth = flat_maps(depth, sigma, ground_truth)
        valid = np.flatnonzero(scorable(truth, min_depth, max_depth))
        self.truth = as_floats(truth.take(valid))
        self.depth = as_floats(depths.take(valid))
        self.sigma = as_floats(sigmas.take(valid))
        self.ground_truth = self.truth
        shape = np.shape(ground_truth)
        self.cells = cell_map(*shape).take(valid) if len(shape) == 2 else None
        scored = has_prediction(self.depth, self.sigma)
        if not scored.all():
            self.depth = self.depth[scored]
            self.sigma = self.sigma[scored]
            self.ground_truth = self.ground_truth[scored]
            self.cells = None if self.cells is None else self.cells[scored]

    def __len__(self) -> int:
        """Return the number of scored pixels."""
        return len(self.depth)

    @cached_property
    def error(self) -> Floats:
        """(N,) absolute errors, metres."""
        return np.abs(self.depth - self.ground_truth)

    @cached_property
    def ratio(self) -> NDArray[np.float64]:
        """(N,) `error / sigma`."""
        return error_ratio(self.error, self.sigma)
