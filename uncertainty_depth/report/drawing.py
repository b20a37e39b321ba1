# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Draw all images of a report from an evaluation, those over time and over positions here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from uncertainty_depth.figure_bytes import encoded, encoded_pixels
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, COVERAGE_LEVELS
from uncertainty_depth.report import plots
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.examples import Example
from uncertainty_depth.report.frame_plots import frame_plot
from uncertainty_depth.report.images import MISSING_COLOR, SIGMA_COLORS
from uncertainty_depth.report.overlay import lidar_overlay
from uncertainty_depth.report.page import FrameImage, Images
from uncertainty_depth.report.plots import LINES, SIZE, style
from uncertainty_depth.report.positions import Positions

PLOT_DPI = 110
FRAME_DPI = 160
SIZED_PLOTS = ("reliability", "timeline", "positions")
"""Plots that compare the size of sigma with the errors."""
ERROR_COLOR = "#D55E00"
SIGMA_COLOR = LINES["method"]["color"]
LEVEL_COLORS = ("#56B4E9", "#0072B2")
COVERAGE_COLORS = "RdBu"


def draw(evaluation: Evaluation, law: str) -> Images:
    """Return the images of a report; none if no frame was scored.

    Args:
        evaluation: of the frames.
        law: distribution of the error, "gaussian" or "laplace", for the intervals of sigma.
    """
    if not evaluation.evaluated:
        return Images({})
    figures = plots.figures(evaluation.metrics.curves(), law)
    figures["timeline"] = timeline_plot(evaluation.metrics, law)
    figures["positions"] = positions_plot(evaluation.positions, law)
    if evaluation.without_size:
        figures = {name: plot for name, plot in figures.items() if name not in SIZED_PLOTS}
    scales = evaluation.table.rows().column("scale")
    if len(scales) > 1 and not np.isnan(scales).all():
        figures["scale"] = scale_plot(scales)
    images = {name: encoded(figure, PLOT_DPI) for name, figure in figures.items()}
    worst = evaluation.examples.worst()
    typical = evaluation.examples.typical()
    return Images(images, _overlay([*typical, *worst]), _frames(worst), _frames(typical))


def _overlay(examples: Sequence[Example]) -> bytes | None:
    """Return the JPEG of the first example with a registered image; None without one."""
    for example in examples:
        if example.image is not None and example.is_registered:
            overlay = lidar_overlay(example.image, example.ground_truth_m)
            return encoded_pixels(overlay, "jpeg")
    return None


def _frames(examples: Sequence[Example]) -> list[FrameImage]:
    return [
        FrameImage(example.name, example.metrics, encoded(frame_plot(example), FRAME_DPI, "jpeg"))
        for example in examples
    ]


def scale_plot(scales: Sequence[float]) -> Figure:
    """Return the plot of the scale of each frame: what its depth lacks as a factor."""
    figure = Figure(figsize=(1.4 * SIZE[0], 0.7 * SIZE[1]), layout="constrained")
    axes = figure.subplots()
    axes.plot(scales, color=ERROR_COLOR, linewidth=1, marker=".", markersize=3)
    axes.axhline(float(np.nanmedian(scales)), color=SIGMA_COLOR, linewidth=0.8)
    axes.set(ylabel="ground truth / depth", xlabel="frame")
    axes.set_yscale("log")
    style(axes, "Scale of each frame before alignment, and the median")
    return figure


def timeline_plot(metrics: OnlineMetrics, law: str) -> Figure:
    """Return the plot of mean error, mean sigma and coverage per block of frames."""
    figure = Figure(figsize=(1.4 * SIZE[0], 1.2 * SIZE[1]), layout="constrained")
    metres, fraction = figure.subplots(2, 1, sharex=True)
    sums = metrics.each_block()
    per_point = metrics.blocks.frames_per_block
    start = np.arange(len(metrics.blocks)) * per_point
    suffix = "_laplace" if law == "laplace" else ""
    with np.errstate(invalid="ignore"):
        error = sums["error"] / sums["pixels"]
        sigma = sums["sigma"] / sums["pixels"]
    metres.plot(start, error, color=ERROR_COLOR, label="mean error", marker=".", markersize=4)
    metres.plot(start, sigma, label="mean sigma", color=SIGMA_COLOR, marker=".", markersize=4)
    metres.set(ylabel="metres", ylim=(0, None))
    for level, color in zip(COVERAGE_LEVELS, LEVEL_COLORS, strict=True):
        covered = BY_NAME[f"uncertainty.coverage_{level}{suffix}"].values(sums)
        fraction.plot(start, 100 * covered, color=color, marker=".", markersize=4)
        fraction.axhline(level, color=color, linewidth=0.8, linestyle=(0, (4, 3)))
        place = {"color": color, "transform": fraction.transAxes, "va": "center"}
        fraction.text(1.005, level / 100, f"{level} %", **place)
    fraction.set(ylabel=f"coverage (%), {law}", ylim=(0, 102), xlabel="frame")
    style(metres, "Over time" + (f", {per_point} frames a point" if per_point > 1 else ""))
    style(fraction, "")
    metres.legend(frameon=False, fontsize=8)
    return figure


def positions_plot(positions: Positions, law: str) -> Figure:
    """Return the plot of mean error and coverage at 95 % by position in the image."""
    figure = Figure(figsize=(1.4 * SIZE[0], 1.4 * SIZE[1]), layout="constrained")
    upper, lower = figure.subplots(2, 1)
    error = positions.mean_error_m()
    coverage = 100 * positions.coverage(law, 0.95)
    max_error = float(np.nanmax(error)) if np.isfinite(error).any() else 1.0
    _draw(figure, upper, error, "Mean error by position (m)", (SIGMA_COLORS, 0, max_error))
    title = f"Coverage of the 95 % interval (%), {law}"
    _draw(figure, lower, coverage, title, (COVERAGE_COLORS, 90, 100))
    return figure


def _draw(
    figure: Figure, axes: Axes, values: NDArray, title: str, scale: tuple[str, float, float]
) -> None:
    colors, low, high = scale
    image = axes.imshow(values, cmap=colors, vmin=low, vmax=high, aspect="auto")
    axes.set_facecolor(MISSING_COLOR)
    axes.set_title(title, fontsize=10)
    axes.set(xticks=[], yticks=[], xlabel="image width", ylabel="image height")
    figure.colorbar(image, ax=axes, extend="min" if low else "neither")
