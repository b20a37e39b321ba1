# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Conditional coverage in one number: can anything predict where the interval fails?

An interval that covers 95 % of all errors may cover all at a wall and half of those in a
corner. The excess risk of the target coverage (Braun et al., "Conditional coverage diagnostics for
conformal prediction", arXiv 2512.11779, 2025) lets a classifier predict from what is known beside
the error whether it is covered, on frames that it has not learned from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.calibration import NOMINAL_LEVEL, NOMINAL_WIDTHS
from uncertainty_depth.metrics.frame import ScoredPixels
from uncertainty_depth.metrics.merci import error_ratio
from uncertainty_depth.metrics.state import BLOCK_GRID

PIXELS_PER_FRAME = 100
MAX_FRAMES = 128
FOLDS = 5
"""Parts of the run, each with consecutive frames: neighbours in time are alike."""


class PixelSample:
    """Some pixels from every k-th frame, in bounded memory; k doubles beyond `MAX_FRAMES`."""

    def __init__(self) -> None:
        self._frames: list[NDArray[np.float32]] = []
        self._stride = 1
        self._offers = 0

    def add(self, pixels: ScoredPixels) -> None:
        """Keep some of a frame's pixels: sigma, depth, row, column, and error / sigma."""
        index = self._offers
        self._offers += 1
        if index % self._stride or pixels.sigma is None or pixels.cells is None:
            return
        chosen = np.random.default_rng(index).integers(0, len(pixels), PIXELS_PER_FRAME)
        sigma, depth = pixels.sigma[chosen], pixels.depth[chosen]
        row, column = np.divmod(pixels.cells[chosen], BLOCK_GRID[1])
        ratio = error_ratio(pixels.error[chosen], sigma)
        with np.errstate(over="ignore"):
            self._frames.append(np.stack([sigma, depth, row, column, ratio]).astype(np.float32))
        if len(self._frames) > MAX_FRAMES:
            self._frames = self._frames[::2]
            self._stride *= 2

    def frames(self) -> NDArray[np.float32]:
        """Return (frames, 5, PIXELS_PER_FRAME) in the run's order."""
        return np.stack(self._frames) if self._frames else np.empty((0, 5, 0), np.float32)


def excess_risk(frames: NDArray[np.float32], distribution: str) -> float:
    """Return the excess risk of the 95 % coverage, as L1.

    It is the mean of sign(p - 0.95) (covered - 0.95), where p is the coverage that is predicted
    for a pixel from its sigma, depth and place in the image by trees that learned from other parts
    of the run. In the mean that is at most E|P(covered | pixel) - 0.95|, and 0 if nothing tells
    where the interval fails; by chance, or if the run drifts, it may be below.

    Args:
        frames: as `PixelSample.frames` returns them, at least `FOLDS`.
        distribution: the error's, "gaussian" or "laplace".
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import GroupKFold, cross_val_predict

    count, _, each = frames.shape
    features = frames[:, :4].transpose(0, 2, 1).reshape(-1, 4)
    covered = (frames[:, 4] <= NOMINAL_WIDTHS[distribution]).reshape(-1).astype(np.float64)
    part = np.repeat(np.arange(count) * FOLDS // count, each)
    # Least squares: the Brier score, a proper loss, which takes a part where all are covered.
    trees = HistGradientBoostingRegressor(
        max_iter=50, max_leaf_nodes=8, min_samples_leaf=2 * each, random_state=0
    )
    predicted = cross_val_predict(trees, features, covered, groups=part, cv=GroupKFold(FOLDS))
    signs = np.sign(predicted - NOMINAL_LEVEL)
    return float((signs * (covered - NOMINAL_LEVEL)).mean())
