# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write the README's picture: a frame of a real drive, without and with the camera's motion.

    python docs/tools/teaser.py rgbd:hololens docs/images/teaser.png

The frame is not picked by eye: of 50, its two errors are the nearest to their medians.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.report.images import (
    DEPTH_COLORS,
    MISSING_COLOR,
    SIGMA_COLORS,
    encoded,
)
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.stream import Stream

FRAMES = 50
MAX_ERROR_M = 1.5
WIDTH_IN = 12.0
HEIGHT_IN = 5.9
DPI = 100
FONT_SIZE = 18
MEASUREMENTS = ("", "motion")


class Sight(NamedTuple):
    """One frame of the drive, predicted in one way."""

    frame: Frame
    prediction: DepthPrediction
    scored_m: NDArray[np.float32]
    """Ground truth of the pixels that are scored, NaN elsewhere; (H, W) metres."""

    def mean_error_m(self, scored_m: NDArray[np.float32]) -> float:
        """Return the mean absolute error of these pixels."""
        return float(np.nanmean(np.abs(self.prediction.depth_m - scored_m)))


def main() -> None:
    """Predict the drive in both ways and draw the median frame."""
    source, output = sys.argv[1:]
    alone, moved = (sights(source, measurements) for measurements in MEASUREMENTS)
    common = sorted(alone.keys() & moved.keys())
    errors = np.array(
        [[way[key].mean_error_m(moved[key].scored_m) for way in (alone, moved)] for key in common]
    )
    medians = np.median(errors, axis=0)
    index = int(np.abs(np.log(errors / medians)).sum(axis=1).argmin())
    key = common[index]
    figure = drawn(alone[key], moved[key], errors[index])
    Path(output).write_bytes(encoded(figure, DPI))
    print(f"{output}: frame {key}; MAE {errors[index]} m, medians {medians} m of {len(common)}")


def sights(source: str, measurements: str) -> dict[str, Sight]:
    """Return the frames of a drive with their predictions, by name."""
    config = PredictorConfig(samples=8, measurements=measurements)
    job = Job(sources=(source,), model="indoor", max_frames=FRAMES, predictor=config)
    found = {}
    for frame in Stream.open(job):
        if isinstance(frame, Frame):
            found[frame.name] = Sight(frame, frame.need_prediction(), frame.need_ground_truth())
    return found


def drawn(alone: Sight, moved: Sight, errors_m: NDArray[np.float64]) -> Figure:
    """Return image and true depth, then depth, sigma and error of both ways, a row each."""
    truth_m = alone.frame.need_ground_truth()
    depths = Normalize(0, float(np.nanpercentile(truth_m, 98)))
    deviations = Normalize(0, MAX_ERROR_M)
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    axes = figure.subplots(2, 4)
    axes[0, 0].imshow(alone.frame.image)
    axes[0, 0].set_title("camera image", fontsize=FONT_SIZE)
    axes[1, 0].imshow(truth_m, cmap=DEPTH_COLORS, norm=depths, interpolation="nearest")
    axes[1, 0].set_title("measured depth", fontsize=FONT_SIZE)
    for row, sight, name, error_m in zip(
        axes, (alone, moved), ("image alone", "with odometry"), errors_m, strict=True
    ):
        depth_m, sigma_m = sight.prediction.depth_m, sight.prediction.sigma_m
        off_m = np.abs(depth_m - truth_m)
        mean_m = float(np.nanmean(sigma_m[np.isfinite(sight.scored_m)]))
        maps = (
            (depth_m, f"depth, {name}", DEPTH_COLORS, depths),
            (sigma_m, f"sigma, {mean_m:.2f} m", SIGMA_COLORS, deviations),
            (off_m, f"true error, {error_m:.2f} m", SIGMA_COLORS, deviations),
        )
        for axis, (values, title, colors, scale) in zip(row[1:], maps, strict=True):
            axis.imshow(values, cmap=colors, norm=scale, interpolation="nearest")
            axis.set_title(title, fontsize=FONT_SIZE)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[], facecolor=MISSING_COLOR)
    for columns, colors, scale, label in (
        (axes[:, :2], DEPTH_COLORS, depths, "depth, m"),
        (axes[:, 2:], SIGMA_COLORS, deviations, "sigma and error, m"),
    ):
        bar = figure.colorbar(
            ScalarMappable(scale, colors), ax=columns, location="bottom", aspect=40, shrink=0.9
        )
        bar.ax.tick_params(labelsize=FONT_SIZE - 2)
        bar.set_label(label, fontsize=FONT_SIZE)
    return figure


if __name__ == "__main__":
    main()
