# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All images of a report, without global state of matplotlib.

Okabe and Ito's colours are used, which colour-blind readers can distinguish; dashes differ too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from uncertainty_depth.figure_bytes import encoded, encoded_pixels
from uncertainty_depth.metrics.calibration import of_law
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, COVERAGE_LEVELS
from uncertainty_depth.metrics.state import BLOCK_GRID, Sums
from uncertainty_depth.report.examples import Example
from uncertainty_depth.report.frame_plots import frame_plot, lidar_overlay, number_axis
from uncertainty_depth.report.images import MISSING_COLOR, SIGMA_COLORS
from uncertainty_depth.report.page import MIN_PIXELS, FrameImage, Images

if TYPE_CHECKING:
    from uncertainty_depth.report.evaluation import Evaluation

LINES: dict[str, dict[str, Any]] = {
    "predicted": {"color": "#0072B2", "linewidth": 2.0, "label": "predicted sigma", "zorder": 4},
    "proportional_to_depth": {
        "color": "#D55E00",
        "linestyle": (0, (5, 1.5)),
        "label": "sigma proportional to depth",
    },
    "constant": {"color": "#E69F00", "linestyle": (0, (1, 1)), "label": "constant sigma"},
    "oracle": {
        "color": "#009E73",
        "linestyle": (0, (6, 1.5, 1, 1.5)),
        "label": "oracle (true error)",
    },
    "random": {
        "color": "#666666",
        "linestyle": (0, (2, 2)),
        "linewidth": 1.0,
        "label": "random removal",
    },
}
ERROR_LABELS = {
    "abs_rel": "abs_rel of the remaining pixels",
    "rmse": "rmse of the remaining pixels (m)",
    "a1": "1 - a1 of the remaining pixels",
}
SIZE = (5.2, 3.6)
LOG_STEPS = (1, 1.5, 2, 3, 5, 7)
PLOT_DPI = 110
FRAME_DPI = 160
SIZED_PLOTS = ("reliability", "timeline", "positions")
"""Plots that compare the size of sigma with the errors."""
ERROR_COLOR = "#D55E00"
SIGMA_COLOR = LINES["predicted"]["color"]
MIN_PIXELS_BY_POSITION = 20
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
    has_size = not evaluation.without_size
    named = figures(evaluation.metrics.curves(), law, has_size)
    named["timeline"] = timeline_plot(evaluation.metrics, law)
    total = evaluation.metrics.total()
    named["positions"] = positions_plot(total, law)
    if not has_size:
        named = {name: plot for name, plot in named.items() if name not in SIZED_PLOTS}
    if total["scales"][0] > 1:
        named["scale"] = scale_plot(evaluation.metrics)
    images = {name: encoded(figure, PLOT_DPI) for name, figure in named.items()}
    worst = evaluation.examples.worst()
    typical = evaluation.examples.typical()
    overlay = None
    for example in (*typical, *worst):
        if example.image is not None and example.is_registered:
            pixels = lidar_overlay(example.image, example.ground_truth_m)
            overlay = encoded_pixels(pixels, "jpeg")
            break
    return Images(images, overlay, _frames(worst, has_size), _frames(typical, has_size))


def _frames(examples: Sequence[Example], has_size: bool) -> list[FrameImage]:
    frames = []
    for example in examples:
        plot = encoded(frame_plot(example, has_size), FRAME_DPI, "jpeg")
        frames.append(FrameImage(example.name, example.metrics, plot))
    return frames


def figures(
    curves: dict[str, Any], law: str = "gaussian", has_size: bool = True
) -> dict[str, Figure]:
    """Return the plots of `OnlineMetrics.curves` by file name; empty without a pixel.

    Args:
        curves: from `OnlineMetrics.curves`.
        law: distribution of the error, "gaussian" or "laplace", for the intervals of sigma.
        has_size: whether sigma is in metres; else it ranks the pixels, and has no coverage.
    """
    if not curves["pixels"]:
        return {}
    return {
        **{
            f"sparsification_{statistic}": sparsification_figure(curves, statistic)
            for statistic in curves["sparsification"]
        },
        "reliability": reliability_figure(curves, law),
        "by_distance": distance_figure(curves, law, has_size),
    }


def sparsification_figure(curves: dict[str, Any], statistic: str = "rmse") -> Figure:
    """Return the plot of the error of the remaining pixels against the fraction removed.

    The area between the predicted sigma and the oracle is the AUSE.

    Args:
        curves: from `OnlineMetrics.curves`.
        statistic: "abs_rel", "rmse" or "a1".
    """
    figure, axes = one_plot(f"Sparsification, {curves['variant']}, mean over the images")
    if not curves["pixels"]:
        return figure
    curve = curves["sparsification"][statistic]
    removed = 100 * curve["fractions"]
    color = LINES["predicted"]["color"]
    area = {"color": color, "alpha": 0.12, "linewidth": 0}
    axes.fill_between(removed, curve["oracle"], curve["predicted"], **area)
    for name in ("random", "proportional_to_depth", "predicted", "oracle"):
        ause = f", AUSE {curve['ause'][name]:.3g}" if name in curve["ause"] else ""
        label = LINES[name]["label"] + ause
        axes.plot(removed, curve[name], **{**LINES[name], "label": label})
    axes.set(
        xlabel="most uncertain pixels removed (%)",
        ylabel=ERROR_LABELS[statistic],
        xlim=(0, 100),
        ylim=(0, None),
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def small_sparsification_figure(curves: dict[str, Any], statistic: str = "rmse") -> Figure:
    """Return the plot of the error against the fraction removed, for a dock of 200 pixels.

    Three thick lines and the two numbers that count: sigma's own, and its area above the oracle.
    """
    figure = Figure(figsize=(3.2, 2.4), dpi=100, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=12)
    if not curves["pixels"]:
        return figure
    curve = curves["sparsification"][statistic]
    removed = 100 * curve["fractions"]
    for name in ("random", "oracle", "predicted"):
        axes.plot(removed, curve[name], color=LINES[name]["color"], linewidth=3)
    axes.set_title(f"{statistic} (m), AUSE {curve['ause']['predicted']:.3g}", fontsize=14)
    axes.set(xlim=(0, 100), ylim=(0, None), xticks=(0, 50, 100), xticklabels=("0", "50", "100%"))
    axes.locator_params("y", nbins=3)
    return figure


def reliability_figure(curves: dict[str, Any], law: str = "gaussian") -> Figure:
    """Return the plot of coverage against the confidence level.

    Above the diagonal sigma is too large, below it too small; 68 and 95 % are marked.
    """
    figure, axes = one_plot("")
    title = f"Reliability of {law.title()} intervals (Gustafsson et al. 2020)"
    axes.set_title(title, fontsize=10, pad=28)  # above the two coverages
    curve = curves[of_law("reliability", law)]
    levels = 100 * curve["levels"]
    color = LINES["predicted"]["color"]
    place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center"}
    for percent in COVERAGE_LEVELS:
        covered = 100 * float(np.interp(percent / 100, curve["levels"], curve["predicted"]))
        axes.axvline(percent, color="#BBBBBB", linewidth=0.8, zorder=0)
        axes.plot(percent, covered, "o", color=color, zorder=5)
        text = f"{covered:.1f}%\nin {percent}%"
        axes.text(percent, 1.01, text, color=color, fontsize=8, va="bottom", **place)
    axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
    axes.fill_between(
        levels, levels, 100 * curve["predicted"], color=color, alpha=0.12, linewidth=0
    )
    for name in ("predicted", "proportional_to_depth", "constant"):
        fitted = "" if name == "predicted" else ", scale fitted"
        line = {**LINES[name], "label": LINES[name]["label"] + fitted}
        axes.plot(levels, 100 * curve[name], **line)
    axes.set(
        xlabel="confidence level p (%)",
        ylabel="errors inside the interval (%)",
        xlim=(0, 100),
        ylim=(0, 100),
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def distance_figure(
    curves: dict[str, Any], law: str = "gaussian", has_size: bool = True
) -> Figure:
    """Return the plot of error, sigma, bias, coverage and n-MeRCI against the true distance."""
    figure = Figure(figsize=(SIZE[0], SIZE[1] * 1.5), layout="constrained")
    heights = (2, 1, 1) if has_size else (2, 1)
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    curve = curves["by_distance"]
    middle, enough = distances(curve)
    style(panels[0], f"By distance, of {MIN_PIXELS} pixels or more")
    lines = {
        "mae": {"color": "#D55E00", "label": "mean error"},
        "sigma": {"color": LINES["predicted"]["color"], "label": "mean sigma"},
        "bias": {"color": "#009E73", "label": "bias", "linestyle": (0, (5, 1.5))},
    }
    if not has_size:
        del lines["sigma"]
    for name, line in lines.items():
        panels[0].plot(middle, np.where(enough, curve[name], np.nan), **line, marker=".")
    panels[0].axhline(0, color="#666666", linewidth=0.8)
    panels[0].set(ylabel="metres")
    panels[0].legend(frameon=False, fontsize=8)
    coverage = curve[of_law("coverage_95", law)]
    color = LINES["predicted"]["color"]
    if has_size:
        panels[1].plot(middle, np.where(enough, 100 * coverage, np.nan), color=color, marker=".")
        panels[1].axhline(95, color="#666666", linewidth=0.8, linestyle=(0, (4, 3)))
        panels[1].set(ylabel=f"coverage of 95%\n({law.title()})", ylim=(None, 102))
    last = panels[-1]
    last.plot(middle, np.where(enough, curve["n_merci"], np.nan), color=color, marker=".")
    last.axhline(1, **{**LINES["constant"], "label": None})
    last.set(ylabel="n-MeRCI", ylim=(0, None), xlabel="true depth (m)")
    if enough.any():  # an axis without data has no logarithmic scale
        last.set_xscale("log")
        number_axis(last.xaxis, LOG_STEPS)
    for axes in panels[1:]:
        style(axes, "")
    return figure


def distances(curve: dict[str, Any]) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return the middle of each interval of distance, metres, and whether it has enough pixels."""
    edges = curve["edges"]
    limits = np.concatenate((edges[1:2] / 1.5, edges[1:-1], edges[-2:-1] * 1.5))
    return np.sqrt(limits[:-1] * limits[1:]), curve["pixels"] >= MIN_PIXELS


def scale_plot(metrics: OnlineMetrics) -> Figure:
    """Return the plot of the scale per block of frames: their depth's missing factor."""
    figure = Figure(figsize=(1.4 * SIZE[0], 0.7 * SIZE[1]), layout="constrained")
    axes = figure.subplots()
    start, per_point = _frames_of(metrics)
    scales = BY_NAME["scale.scale"].values(metrics.each_block())
    axes.plot(start, scales, color=ERROR_COLOR, linewidth=1, marker=".", markersize=3)
    axes.axhline(float(np.nanmedian(scales)), color=SIGMA_COLOR, linewidth=0.8)
    axes.set(ylabel="ground truth / depth", xlabel="frame")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.9), max(high, 1.1))  # else 0.998 and 1.002 are the whole axis
    number_axis(axes.yaxis, LOG_STEPS)
    style(axes, f"Scale of each frame, and their median{per_point}")
    return figure


def _frames_of(metrics: OnlineMetrics) -> tuple[NDArray[np.int64], str]:
    """Return the first frame of each block, and how many frames each has, in words."""
    number = metrics.blocks.frames_per_block
    words = f", {number} frames a point" if number > 1 else ""
    return np.arange(len(metrics.blocks)) * number, words


def timeline_plot(metrics: OnlineMetrics, law: str) -> Figure:
    """Return the plot of mean error, mean sigma and coverage per block of frames."""
    figure = Figure(figsize=(1.4 * SIZE[0], 1.2 * SIZE[1]), layout="constrained")
    metres, fraction = figure.subplots(2, 1, sharex=True)
    sums = metrics.each_block()
    start, per_point = _frames_of(metrics)
    with np.errstate(invalid="ignore"):
        error = sums["error"] / sums["pixels"]
        sigma = sums["sigma"] / sums["pixels"]
    metres.plot(start, error, color=ERROR_COLOR, label="mean error", marker=".", markersize=4)
    metres.plot(start, sigma, label="mean sigma", color=SIGMA_COLOR, marker=".", markersize=4)
    metres.set(ylabel="metres", ylim=(0, None))
    for level, color in zip(COVERAGE_LEVELS, LEVEL_COLORS, strict=True):
        covered = BY_NAME[of_law(f"uncertainty.coverage_{level}", law)].values(sums)
        fraction.plot(start, 100 * covered, color=color, marker=".", markersize=4)
        fraction.axhline(level, color=color, linewidth=0.8, linestyle=(0, (4, 3)))
        place = {"color": color, "transform": fraction.transAxes, "va": "center"}
        fraction.text(1.005, level / 100, f"{level}%", **place)
    fraction.set(ylabel=f"coverage (%), {law.title()}", ylim=(0, 102), xlabel="frame")
    fraction.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    style(metres, f"Over time{per_point}")
    style(fraction, "")
    metres.legend(frameon=False, fontsize=8)
    return figure


def positions_plot(sums: Sums, law: str) -> Figure:
    """Return the plot of mean error and coverage at 95 % by position in the image."""
    figure = Figure(figsize=(1.4 * SIZE[0], 1.4 * SIZE[1]), layout="constrained")
    pixels = np.where(sums["cell.pixels"] < MIN_PIXELS_BY_POSITION, np.nan, sums["cell.pixels"])
    error = (sums["cell.error"] / pixels).reshape(BLOCK_GRID)
    coverage = 100 * (sums[of_law("cell.covered", law)] / pixels).reshape(BLOCK_GRID)
    max_error = float(np.nanmax(error)) if np.isfinite(error).any() else 1.0
    maps = (
        ("Mean error by position (m)", error, SIGMA_COLORS, 0, max_error),
        (f"Coverage of the 95% interval (%), {law.title()}", coverage, COVERAGE_COLORS, 90, 100),
    )
    for axes, (title, values, colors, low, high) in zip(figure.subplots(2, 1), maps, strict=True):
        image = axes.imshow(values, cmap=colors, vmin=low, vmax=high, aspect="auto")
        axes.set_facecolor(MISSING_COLOR)
        axes.set_title(title, fontsize=10)
        axes.set(xticks=[], yticks=[], xlabel="image width", ylabel="image height")
        figure.colorbar(image, ax=axes, extend="min" if low else "neither")
    return figure


def one_plot(title: str, size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """Return a figure of one plot, of a size in inches."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    style(axes, title)
    return figure, axes


def style(axes: Axes, title: str) -> None:
    """Set title, grid and font sizes of axes."""
    axes.set_title(title, fontsize=10)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
