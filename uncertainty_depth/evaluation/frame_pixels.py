# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The pixels of a frame that are scored, by cell of the image."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.metrics.arrays import as_floats
from uncertainty_depth.metrics.depth import flat_maps, has_prediction, scorable
from uncertainty_depth.metrics.merci import error_ratio
from uncertainty_depth.records import DepthPrediction

GRID = (16, 20)
"""Rows and columns of the cells that an image is divided into, as in a model's median depth."""
CELLS = GRID[0] * GRID[1]


@lru_cache(maxsize=4)
def cell_map(height: int, width: int) -> NDArray[np.intp]:
    """Return the (height * width,) cell of `GRID` of each pixel, numbered row by row."""
    rows = np.arange(height) * GRID[0] // height
    columns = np.arange(width) * GRID[1] // width
    return (rows[:, None] * GRID[1] + columns).reshape(-1)


class FramePixels:
    """The pixels of a frame that have ground truth, and those of them that are scored.

    Attributes:
        valid_truth: (M,) ground truth within the limits of the evaluation, metres.
        cells: (N,) cell of `GRID` of each pixel that also has a prediction. The arrays below are
            of these pixels, (N,) float64.
        depth, sigma, ground_truth: metres.
    """

    def __init__(
        self, prediction: DepthPrediction, ground_truth_m: NDArray, config: EvaluationConfig
    ) -> None:
        """Select the pixels.

        Raises:
            ValueError: the shapes differ.
        """
        depth, sigma, truth = flat_maps(prediction.depth_m, prediction.sigma_m, ground_truth_m)
        valid = np.flatnonzero(scorable(truth, config.min_depth, config.max_depth))
        self.valid_truth = as_floats(truth.take(valid))
        self.depth = as_floats(depth.take(valid))
        self.sigma = as_floats(sigma.take(valid))
        self.ground_truth = self.valid_truth
        self.cells = cell_map(*ground_truth_m.shape).take(valid)
        scored = has_prediction(self.depth, self.sigma)
        if not scored.all():
            self._keep(scored)

    def _keep(self, scored: NDArray[np.bool_]) -> None:
        self.depth = self.depth[scored]
        self.sigma = self.sigma[scored]
        self.ground_truth = self.ground_truth[scored]
        self.cells = self.cells[scored]

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """(N,) absolute errors, metres."""
        return np.abs(self.depth - self.ground_truth)

    @cached_property
    def ratio(self) -> NDArray[np.float64]:
        """(N,) `error / sigma`."""
        return error_ratio(self.error, self.sigma)
