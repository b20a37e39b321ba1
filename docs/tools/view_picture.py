# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plot what `uncertainty-depth view` shows, where there is no screen for rerun.

    python docs/tools/view_picture.py docs/images/view.png

The same frames, scores, limits and color scales, by the package's own code and matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot as plt

from uncertainty_depth.config import EvaluationConfig, PredictorConfig, SourceConfig
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.gating.products import SigmaProducts
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.images import SIGMA_COLORS, thicken
from uncertainty_depth.report.model_facts import law_of
from uncertainty_depth.viewing.config import ViewConfig
from uncertainty_depth.viewing.recorder import NOMINAL, SCORES
from uncertainty_depth.viewing.sources import predicted_frames

SIZE_INCHES = (13, 7)
MAX_DEPTH_COLORS = "viridis"
POINT_STEP = 7


def main() -> None:
    """Predict the frames of a source and plot the middle one with all scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--source", default="synthetic:worlds=1,frames=24,seed=5")
    parser.add_argument("--model", default="demo")
    arguments = parser.parse_args()
    predictor = Predictor(arguments.model, PredictorConfig())
    source = open_source(arguments.source, SourceConfig())
    evaluation = Evaluation(EvaluationConfig())
    law = law_of(predictor.describe())
    frames = list(predicted_frames(source, predictor, evaluation, law))
    figure = plt.figure(figsize=SIZE_INCHES, layout="constrained")
    grid = figure.add_gridspec(3, 4)
    frame = frames[len(frames) // 2]
    plot_maps([figure.add_subplot(grid[0, column]) for column in range(4)], frame)
    plot_points(figure.add_subplot(grid[1:, :2], projection="3d"), frame)
    plot_scores(figure.add_subplot(grid[1, 2:]), frames, tuple(NOMINAL), "coverage")
    plot_scores(figure.add_subplot(grid[2, 2:]), frames, SCORES, "scores of each frame")
    figure.savefig(arguments.output, dpi=75)


def plot_maps(axes, frame) -> None:
    """Plot image, depth, sigma and error on the fixed scales of the viewer."""
    config = ViewConfig()
    error = thicken(np.abs(frame.depth_m - frame.ground_truth_m))
    maps = {
        f"depth, 0 to {config.color_max_depth:g} m": (frame.depth_m, config.color_max_depth),
        f"sigma, 0 to {config.color_max_sigma:g} m": (frame.sigma_m, config.color_max_sigma),
        f"error, 0 to {config.color_max_sigma:g} m": (error, config.color_max_sigma),
    }
    axes[0].imshow(frame.image)
    axes[0].set_title("image")
    for axis, (title, (values, maximum)) in zip(axes[1:], maps.items(), strict=True):
        colors = MAX_DEPTH_COLORS if title.startswith("depth") else SIGMA_COLORS
        axis.imshow(values, vmin=0, vmax=maximum, cmap=colors)
        axis.set_title(title)
    for axis in axes:
        axis.set_axis_off()


def plot_points(axis, frame) -> None:
    """Plot the trusted points in the colors of the camera."""
    products = SigmaProducts(
        frame.depth_m, frame.sigma_m, ViewConfig(), 1.0, frame.camera, frame.image
    )
    points = products.confident_points[::POINT_STEP]
    packed = np.ascontiguousarray(points["rgb"]).view(np.uint32)
    colors = np.stack([packed >> 16 & 255, packed >> 8 & 255, packed & 255], axis=-1) / 255
    axis.scatter(points["x"], points["z"], -points["y"], c=colors, s=2)
    axis.set_title("trusted points")
    axis.set_aspect("equal")
    axis.view_init(elev=25, azim=-110)


def plot_scores(axis, frames, names, title) -> None:
    """Plot scores over the frames; of coverage its nominal values too."""
    for name in names:
        line = axis.plot([frame.scores.get(name, np.nan) for frame in frames], label=name)[0]
        if name in NOMINAL:
            axis.axhline(NOMINAL[name], color=line.get_color(), linestyle=":")
    axis.set_title(title)
    axis.set_xlabel("frame")
    axis.legend(loc="best", fontsize="small")


if __name__ == "__main__":
    main()
