# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Errors and coverage by position in the image."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.calibration import DISTRIBUTIONS
from uncertainty_depth.metrics.frame import CELLS, GRID, ScoredPixels
from uncertainty_depth.metrics.registry import COVERAGE_LEVELS

MIN_PIXELS = 20
"""With fewer a cell has no mean."""
INTERVAL_LEVELS = tuple(percent / 100 for percent in COVERAGE_LEVELS)
LAWS = tuple(DISTRIBUTIONS)
LEVEL_WIDTHS = {law: DISTRIBUTIONS[law].half_widths(INTERVAL_LEVELS) for law in LAWS}
"""Half widths, in sigmas, of the intervals whose coverage is counted."""


def covered_by_cell(cells: NDArray[np.intp], ratio: Floats, widths: Floats) -> NDArray[np.int64]:
    """Return the (K, CELLS) pixels whose ratio is within each of K widths.

    One histogram serves all widths: it counts how many of them cover a pixel's ratio.
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

    def add(self, pixels: ScoredPixels) -> None:
        """Add the scored pixels of a frame."""
        cells = pixels.cells
        if cells is None:
            return
        self.pixels += np.bincount(cells, minlength=CELLS).reshape(GRID)
        self._error_m += np.bincount(cells, pixels.error, CELLS).reshape(GRID)
        widths = np.concatenate([LEVEL_WIDTHS[law] for law in LAWS])
        self._covered += covered_by_cell(cells, pixels.ratio, widths).reshape(self._covered.shape)

    def arrays(self) -> dict[str, NDArray]:
        """Return the sums by name; they are the sums themselves, not copies."""
        arrays = {"pixels": self.pixels, "error_m": self._error_m, "covered": self._covered}
        return {f"positions/{name}": array for name, array in arrays.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray]) -> Positions:
        """Return the positions from the result of `arrays`."""
        positions = cls()
        for name, own in positions.arrays().items():
            own[...] = arrays[name]
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
