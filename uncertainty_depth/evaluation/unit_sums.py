# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sums over the pixels of a frame that the verdict is computed from.

What `OnlineMetrics` computes of a frame already is taken from its metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.evaluation.frame_pixels import (
    CELLS,
    INTERVAL_LEVELS,
    LAWS,
    FramePixels,
)
from uncertainty_depth.evaluation.log_bins import LogBins
from uncertainty_depth.metrics.arrays import inner
from uncertainty_depth.metrics.calibration import log_sum, power_sum
from uncertainty_depth.metrics.depth import A1_FACTOR, PER_KM
from uncertainty_depth.metrics.distributions import GAUSSIAN, LAPLACE
from uncertainty_depth.metrics.merci import error_ratio
from uncertainty_depth.metrics.sparsification_variants import POGGI

DEPTH_BINS = LogBins(0.05, 250.0, math.log(A1_FACTOR) / 8)
CELL_BINS = LogBins(0.1, 120.0, math.log(A1_FACTOR) / 2)
ERROR_BINS = LogBins(2.0**-12, 2.0**8, math.log(2) / 16)
RATIO_BINS = LogBins(2.0**-10, 2.0**16, math.log(2) / 16)
COARSE_ERRORS = LogBins(ERROR_BINS.low, ERROR_BINS.high, 8 * ERROR_BINS.width)
COARSE_RATIOS = LogBins(RATIO_BINS.low, RATIO_BINS.high, 4 * RATIO_BINS.width)
"""Bins of the joint histogram of errors and ratios, whole numbers of the finer bins."""
COMPARED = ("method", "constant", "proportional_to_depth")
LARGEST_RATIO = 1e12
LARGEST_SUM = 1e200
"""In place of an infinite sum, which could not be resampled; the metric itself stays infinite."""

SCALARS = (
    "frames",  # with a scored pixel
    "ground_truth",  # pixels with ground truth within the limits of the evaluation
    "pixels",  # those that also have a prediction: the scored ones
    "depth",  # sums over the scored pixels: ground truth and its square, m and m^2
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
    "abs_rel",  # sums of the errors of the depth that `metrics.depth.depth_sums` names
    "sq_rel",
    "squared_log",
    "inverse",
    "squared_inverse",
    "accurate2",
    "accurate3",
    "crps",  # sums of the scores of sigma, m
    "crps_laplace",
    "interval_score_95",
    "interval_score_95_laplace",
)
SCORES = SCALARS[-4:]
LAYOUT: dict[str, tuple[tuple[int, ...], str]] = {
    "scalars": ((len(SCALARS),), "float64"),
    "ause": ((len(COMPARED), len(POGGI.errors)), "float64"),
    "aurg": ((len(POGGI.errors),), "float64"),
    "covered": ((len(LAWS), len(INTERVAL_LEVELS)), "float64"),
    "depth_bins": ((DEPTH_BINS.number,), "float64"),
    "error_bins": ((ERROR_BINS.number,), "float64"),
    "ratio_bins": ((RATIO_BINS.number,), "float64"),
    "depth_ratio_bins": ((ERROR_BINS.number,), "float64"),
    "cell_depth": ((CELLS,), "float64"),
    "cell_squared_depth": ((CELLS,), "float64"),
    "cell_bins": ((CELLS, CELL_BINS.number), "int32"),
    "sigma_by_error": ((COARSE_ERRORS.number,), "float64"),
    "error_by_error": ((COARSE_ERRORS.number,), "float64"),
    "joint_bins": ((COARSE_ERRORS.number, COARSE_RATIOS.number), "int32"),
}
"""Shape and dtype of the sums of a frame.

`depth_bins` counts all ground truth, the others the scored pixels; the rows of `cell_...` are the
cells of `GRID`, those of `joint_bins` errors and its columns ratios.
"""


def frame_sums(pixels: FramePixels, metrics: Mapping[str, Any] | None) -> dict[str, NDArray]:
    """Return the sums of one frame, as `LAYOUT` describes them.

    Args:
        pixels: of the frame.
        metrics: its metrics as `OnlineMetrics.update` returns them; None without a scored pixel.
    """
    if metrics is None:
        return _unscored_sums(pixels)
    cells = pixels.cells
    truth = pixels.ground_truth
    depth_ratio = _ratio_to_positive_depth(pixels)
    error_bin = ERROR_BINS.index(pixels.error)
    ratio_bin = RATIO_BINS.index(pixels.ratio)
    coarse_error = ERROR_BINS.coarse(error_bin, 8)
    coarse_ratio = RATIO_BINS.coarse(ratio_bin, 4)
    return {
        "scalars": _scalars(pixels, depth_ratio, metrics),
        "ause": _areas(metrics),
        "aurg": _by_statistic(metrics["uncertainty"]["aurg"]),
        "covered": _covered(metrics),
        "depth_bins": DEPTH_BINS.counts(pixels.valid_truth),
        "error_bins": np.bincount(error_bin, minlength=ERROR_BINS.number),
        "ratio_bins": np.bincount(ratio_bin, minlength=RATIO_BINS.number),
        "depth_ratio_bins": ERROR_BINS.counts(depth_ratio),
        "cell_depth": np.bincount(cells, truth, CELLS),
        "cell_squared_depth": np.bincount(cells, truth * truth, CELLS),
        "cell_bins": _counts(cells, CELL_BINS.index(truth), "cell_bins"),
        "sigma_by_error": np.bincount(coarse_error, pixels.sigma, COARSE_ERRORS.number),
        "error_by_error": np.bincount(coarse_error, pixels.error, COARSE_ERRORS.number),
        "joint_bins": _counts(coarse_error, coarse_ratio, "joint_bins"),
    }


def _unscored_sums(pixels: FramePixels) -> dict[str, NDArray]:
    """Return the sums of a frame without a scored pixel, of which the ground truth is counted."""
    sums = {name: np.zeros(shape, dtype) for name, (shape, dtype) in LAYOUT.items()}
    sums["scalars"][SCALARS.index("ground_truth")] = len(pixels.valid_truth)
    sums["depth_bins"] = DEPTH_BINS.counts(pixels.valid_truth)
    return sums


def _ratio_to_positive_depth(pixels: FramePixels) -> NDArray:
    positive = pixels.depth > 0
    if positive.all():
        return error_ratio(pixels.error, pixels.depth)
    return error_ratio(pixels.error[positive], pixels.depth[positive])


def _counts(rows: NDArray, columns: NDArray, name: str) -> NDArray:
    """Return how many pixels fall into each row and column of a table of `LAYOUT`."""
    shape = LAYOUT[name][0]
    return np.bincount(rows * shape[1] + columns, minlength=math.prod(shape)).reshape(shape)


def _scalars(pixels: FramePixels, depth_ratio: NDArray, metrics: Mapping[str, Any]) -> NDArray:
    number = len(pixels.cells)
    sums = {
        "ground_truth": len(pixels.valid_truth),
        **_sums_of_metrics(metrics["depth"], number),
        **{name: metrics["uncertainty"][name] * number for name in SCORES},
        **_sums_of_sigma(pixels),
        **_sums_of_depth_as_sigma(pixels, depth_ratio),
    }
    return np.array([sums[name] for name in SCALARS], dtype=np.float64)


def _sums_of_metrics(depth_metrics: Mapping[str, float], pixels: int) -> dict[str, float]:
    sums = {
        "frames": 1,
        "pixels": pixels,
        "error": depth_metrics["mae"] * pixels,
        "squared_error": depth_metrics["rmse"] ** 2 * pixels,
        "accurate": round(depth_metrics["a1"] * pixels),
        "accurate2": round(depth_metrics["a2"] * pixels),
        "accurate3": round(depth_metrics["a3"] * pixels),
        "abs_rel": depth_metrics["abs_rel"] * pixels,
        "sq_rel": depth_metrics["sq_rel"] * pixels,
        "squared_log": depth_metrics["rmse_log"] ** 2 * pixels,
        "inverse": depth_metrics["imae"] / PER_KM * pixels,
        "squared_inverse": (depth_metrics["irmse"] / PER_KM) ** 2 * pixels,
    }
    return {name: min(value, LARGEST_SUM) for name, value in sums.items()}


def _sums_of_sigma(pixels: FramePixels) -> dict[str, float]:
    certain_errors = np.isinf(pixels.ratio)
    number_certain = int(np.count_nonzero(certain_errors))
    finite = pixels.ratio[~certain_errors] if number_certain else pixels.ratio
    ratio = np.minimum(finite, LARGEST_RATIO)
    return {
        "depth": pixels.ground_truth.sum(),
        "squared_depth": inner(pixels.ground_truth, pixels.ground_truth),
        "sigma": pixels.sigma.sum(),
        "log_sigma": _positive_log_sum(pixels.sigma),
        "ratio": power_sum(ratio, LAPLACE),
        "squared_ratio": power_sum(ratio, GAUSSIAN),
        "certain_errors": number_certain,
    }


def _sums_of_depth_as_sigma(pixels: FramePixels, depth_ratio: NDArray) -> dict[str, float]:
    ratio = np.minimum(depth_ratio, LARGEST_RATIO)
    return {
        "log_predicted": _positive_log_sum(pixels.depth),
        "depth_ratio": power_sum(ratio, LAPLACE),
        "squared_depth_ratio": power_sum(ratio, GAUSSIAN),
        "positive": len(ratio),
    }


def _positive_log_sum(values: NDArray) -> float:
    """Return the sum of the logarithms of the positive values."""
    return log_sum(values if values.min() > 0 else values[values > 0])


def _areas(metrics: Mapping[str, Any]) -> NDArray:
    """Return the (candidates, statistics) AUSE of the frame."""
    by_candidate = {"method": metrics["uncertainty"], **metrics["baselines"]}
    return np.stack([_by_statistic(by_candidate[name]["ause"]) for name in COMPARED])


def _by_statistic(areas: Mapping[str, float]) -> NDArray:
    """Return the (statistics,) areas in the order of the tables."""
    return np.array([areas[statistic] for statistic in POGGI.errors])


def _covered(metrics: Mapping[str, Any]) -> NDArray:
    """Return the (laws, levels) number of errors within their interval."""
    covered = np.zeros(LAYOUT["covered"][0])
    for row, law in enumerate(LAWS):
        suffix = "" if law == "gaussian" else f"_{law}"
        for column, level in enumerate(INTERVAL_LEVELS):
            name = f"coverage_{100 * level:.0f}{suffix}"
            fraction = metrics["uncertainty"][name]
            covered[row, column] = round(fraction * metrics["pixels"])
    return covered
