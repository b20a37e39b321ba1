# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The pixels of a frame that are scored, and their errors by position in the image."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.metrics.arrays import Floats, as_floats
from uncertainty_depth.metrics.depth import flat_maps, has_prediction, scorable
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS
from uncertainty_depth.metrics.merci import error_ratio
from uncertainty_depth.records import DepthPrediction

GRID = (16, 20)
"""Rows and columns of the cells that an image is divided into, as in a model's median depth."""
CELLS = GRID[0] * GRID[1]
MIN_PIXELS = 20
"""With fewer a cell has no mean."""
INTERVAL_LEVELS = (0.68, 0.95)
LAWS = ("gaussian", "laplace")
LEVEL_WIDTHS = {law: DISTRIBUTIONS[law].half_widths(INTERVAL_LEVELS) for law in LAWS}
"""Half widths, in sigmas, of the intervals whose coverage is counted."""


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


def covered_by_cell(cells: NDArray[np.intp], ratio: Floats, widths: Floats) -> NDArray[np.int64]:
    """Return the (K, CELLS) pixels whose ratio is within each of K widths.

    One histogram serves all widths: of how many of them hold a pixel's ratio.
    """
    holding = np.zeros(len(ratio), np.intp)
    for width in widths:
        holding += ratio <= width
    classes = len(widths) + 1
    counts = np.bincount(cells * classes + holding, minlength=CELLS * classes)
    cumulative = np.cumsum(counts.reshape(CELLS, classes)[:, ::-1], axis=1)
    narrowest_first = np.argsort(widths)
    covered = np.empty((len(widths), CELLS), np.int64)
    covered[narrowest_first] = cumulative[:, :-1].T
    return covered


class Positions:
    """Sums of pixels, errors and covered errors by cell of the image, over all frames.

    Attributes:
        pixels: `GRID` counts.
    """

    def __init__(self) -> None:
        self.pixels = np.zeros(GRID, np.int64)
        self._error_m = np.zeros(GRID)
        self._covered = np.zeros((len(LAWS), len(INTERVAL_LEVELS), *GRID), np.int64)

    def add(self, pixels: FramePixels) -> None:
        """Add the scored pixels of a frame."""
        cells = pixels.cells
        self.pixels += np.bincount(cells, minlength=CELLS).reshape(GRID)
        self._error_m += np.bincount(cells, pixels.error, CELLS).reshape(GRID)
        widths = np.concatenate([LEVEL_WIDTHS[law] for law in LAWS])
        self._covered += covered_by_cell(cells, pixels.ratio, widths).reshape(self._covered.shape)

    def tables(self) -> dict[str, NDArray]:
        """Return the sums by name."""
        return {"pixels": self.pixels, "error_m": self._error_m, "covered": self._covered}

    @classmethod
    def from_tables(cls, tables: Mapping[str, NDArray]) -> Positions:
        """Return the positions whose `tables` these are.

        Raises:
            ValueError: the tables are of other shapes or types.
        """
        positions = cls()
        for name, own in positions.tables().items():
            if tables[name].shape != own.shape or tables[name].dtype != own.dtype:
                raise ValueError(f"{name} is {tables[name].dtype} of shape {tables[name].shape}")
            own[...] = tables[name]
        return positions

    def merge(self, other: Positions) -> None:
        """Add the sums of another evaluation."""
        self.pixels += other.pixels
        self._error_m += other._error_m
        self._covered += other._covered

    def mean_error_m(self) -> Floats:
        """Return the `GRID` mean absolute errors, metres; NaN in cells with too few pixels."""
        return self._per_pixel(self._error_m)

    def coverage(self, law: str, level: float) -> Floats:
        """Return the `GRID` coverage of the interval of a level; NaN as in `mean_error_m`."""
        return self._per_pixel(self._covered[LAWS.index(law), INTERVAL_LEVELS.index(level)])

    def _per_pixel(self, sums: NDArray) -> Floats:
        enough = self.pixels >= MIN_PIXELS
        return np.where(enough, sums / np.maximum(self.pixels, 1), np.nan)
