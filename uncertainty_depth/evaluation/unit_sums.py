"""The sums that the verdict needs of a frame: added up over units of frames, they are its state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.evaluation.log_bins import LogBins
from uncertainty_depth.metrics.depth import A1_FACTOR
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS
from uncertainty_depth.metrics.sparsification import POGGI
from uncertainty_depth.records import DepthPrediction

GRID = (16, 20)
"""Rows and columns of the cells that an image is divided into, as those of a model's median depth."""
CELLS = GRID[0] * GRID[1]
DEPTH_BINS = LogBins(0.05, 250.0, math.log(A1_FACTOR) / 8)
CELL_BINS = LogBins(0.1, 120.0, math.log(A1_FACTOR) / 2)
ERROR_BINS = LogBins(2.0**-12, 2.0**8, math.log(2) / 16)
RATIO_BINS = LogBins(2.0**-10, 2.0**16, math.log(2) / 16)
CANDIDATES = ("method", "constant", "proportional_to_depth")
LEVELS = (0.68, 0.95)
LAWS = ("gaussian", "laplace")
LARGEST_RATIO = 1e12

SCALARS = (
    "frames",  # those with a pixel scored
    "ground_truth",  # pixels with ground truth within the limits of the evaluation
    "pixels",  # those of them that have a prediction
    "depth",  # sums over the pixels: ground truth and its square, m and m^2
    "squared_depth",
    "error",
    "squared_error",
    "accurate",  # pixels within a factor of 1.25
    "sigma",
    "log_sigma",
    "ratio",  # error / sigma
    "squared_ratio",
    "certain_errors",  # pixels in error with a sigma of 0
    "log_predicted",  # the predicted depth as a sigma, where it is positive
    "depth_ratio",
    "squared_depth_ratio",
    "positive",
)
LAYOUT: dict[str, tuple[tuple[int, ...], str]] = {
    "scalars": ((len(SCALARS),), "float64"),
    "ause": ((len(CANDIDATES), len(POGGI.errors)), "float64"),
    "covered": ((len(LAWS), len(LEVELS)), "float64"),
    "depth_bins": ((DEPTH_BINS.number,), "float64"),
    "error_bins": ((ERROR_BINS.number,), "float64"),
    "ratio_bins": ((RATIO_BINS.number,), "float64"),
    "depth_ratio_bins": ((ERROR_BINS.number,), "float64"),
    "cell_depth": ((CELLS,), "float64"),
    "cell_squared_depth": ((CELLS,), "float64"),
    "cell_bins": ((CELLS, CELL_BINS.number), "int32"),
}
"""Shape and dtype of the sums of a frame: `depth_bins` is over all ground truth, the others over
the pixels scored; `cell_...` are keyed by the cell of `GRID` that a pixel lies in."""


LEVEL_WIDTHS = {law: DISTRIBUTIONS[law].half_widths(LEVELS) for law in LAWS}


@lru_cache(maxsize=4)
def cell_map(height: int, width: int) -> NDArray[np.intp]:
    """Cell of `GRID`, row by row, that each pixel of an image lies in, flat."""
    rows = np.arange(height) * GRID[0] // height
    columns = np.arange(width) * GRID[1] // width
    return (rows[:, None] * GRID[1] + columns).reshape(-1)


class FramePixels:
    """The pixels of a frame with ground truth within the limits, and those of them scored.

    Attributes:
        known: flat indices of the pixels with ground truth.
        cells: the cell of `GRID` of each pixel that has a prediction too; the arrays below are
            theirs as well.
        depth, sigma, ground_truth, error, ratio: (N,) float64, metres; error / sigma without unit.
    """

    def __init__(
        self, prediction: DepthPrediction, ground_truth_m: NDArray, config: EvaluationConfig
    ) -> None:
        truth = ground_truth_m.reshape(-1)
        least = np.nextafter(0, 1) if config.min_depth == 0 else config.min_depth
        self.known = np.flatnonzero((truth >= least) & (truth <= config.max_depth))
        self.known_depth = truth[self.known].astype(np.float64)
        depth = prediction.depth_m.reshape(-1)[self.known].astype(np.float64)
        sigma = prediction.sigma_m.reshape(-1)[self.known].astype(np.float64)
        scored = np.isfinite(depth) & np.isfinite(sigma) & (sigma >= 0)
        self.cells = cell_map(*ground_truth_m.shape)[self.known[scored]]
        self.depth = depth[scored]
        self.sigma = sigma[scored]
        self.ground_truth = self.known_depth[scored]
        self.error = np.abs(self.depth - self.ground_truth)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = self.error / self.sigma
        self.ratio = np.where(self.error == 0, 0.0, ratio)


def frame_sums(pixels: FramePixels, metrics: Mapping[str, Any] | None) -> dict[str, NDArray]:
    """The sums of one frame, as `LAYOUT` has them.

    Args:
        pixels: of the frame.
        metrics: its metrics as `OnlineMetrics.update` returns them; None without a pixel scored.
    """
    cells = pixels.cells
    truth = pixels.ground_truth
    positive = pixels.depth > 0
    cell_bin = cells * CELL_BINS.number + CELL_BINS.index(truth)
    widths = np.array([LEVEL_WIDTHS[law] for law in LAWS])
    depth_ratio = pixels.error[positive] / pixels.depth[positive]
    return {
        "scalars": _scalars(pixels, positive, depth_ratio, frames=int(metrics is not None)),
        "ause": _areas(metrics),
        "covered": (pixels.ratio <= widths[..., None]).sum(axis=-1),
        "depth_bins": DEPTH_BINS.counts(pixels.known_depth),
        "error_bins": ERROR_BINS.counts(pixels.error),
        "ratio_bins": RATIO_BINS.counts(pixels.ratio),
        "depth_ratio_bins": ERROR_BINS.counts(depth_ratio),
        "cell_depth": np.bincount(cells, truth, CELLS),
        "cell_squared_depth": np.bincount(cells, truth * truth, CELLS),
        "cell_bins": np.bincount(cell_bin, minlength=CELLS * CELL_BINS.number).reshape(CELLS, -1),
    }


def _scalars(pixels: FramePixels, positive: NDArray, depth_ratio: NDArray, frames: int) -> NDArray:
    truth = pixels.ground_truth
    sigma = pixels.sigma[pixels.sigma > 0]
    ratio = np.minimum(pixels.ratio[np.isfinite(pixels.ratio)], LARGEST_RATIO)
    depth_ratio = np.minimum(depth_ratio, LARGEST_RATIO)
    accurate = (pixels.depth < A1_FACTOR * truth) & (truth < A1_FACTOR * pixels.depth)
    sums = {
        "frames": frames,
        "ground_truth": len(pixels.known),
        "pixels": len(pixels.cells),
        "depth": truth.sum(),
        "squared_depth": truth @ truth,
        "error": pixels.error.sum(),
        "squared_error": pixels.error @ pixels.error,
        "accurate": accurate.sum(),
        "sigma": pixels.sigma.sum(),
        "log_sigma": np.log(sigma).sum(),
        "ratio": ratio.sum(),
        "squared_ratio": ratio @ ratio,
        "certain_errors": np.isinf(pixels.ratio).sum(),
        "log_predicted": np.log(pixels.depth[positive]).sum(),
        "depth_ratio": depth_ratio.sum(),
        "squared_depth_ratio": depth_ratio @ depth_ratio,
        "positive": positive.sum(),
    }
    return np.array([sums[name] for name in SCALARS], dtype=np.float64)


def _areas(metrics: Mapping[str, Any] | None) -> NDArray:
    """(candidates, statistics) AUSE of the frame; 0 where nothing was scored."""
    if metrics is None:
        return np.zeros(LAYOUT["ause"][0])
    scored = {"method": metrics["uncertainty"], **metrics["baselines"]}
    return np.array(
        [[scored[name]["ause"][statistic] for statistic in POGGI.errors] for name in CANDIDATES]
    )
