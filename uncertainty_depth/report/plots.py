# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All images in a report, without matplotlib's global state.

Okabe and Ito's colours are used, which colour-blind readers can distinguish; dashes differ too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS, of_distribution
from uncertainty_depth.metrics.from_sums import covered_shares
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, COVERAGE_LEVELS
from uncertainty_depth.metrics.sparsification import FRACTIONS, STATISTICS
from uncertainty_depth.metrics.state import (
    BLOCK_GRID,
    DISTANCE,
    PLOTTED_FRACTIONS,
    SIGMA_NAMES,
    Sums,
)
from uncertainty_depth.report.frame_plots import frame_plot, lidar_overlay, number_axis
from uncertainty_depth.report.images import MISSING_COLOR, SIGMA_COLORS, encoded, encoded_pixels
from uncertainty_depth.report.page import MIN_PIXELS, FrameImage, Images
from uncertainty_depth.report.scores import Scores

LINES: dict[str, dict[str, Any]] = {
    "predicted": {"color": "#0072B2", "linewidth": 2.0, "label": "predicted sigma", "zorder": 4},
    "proportional_to_depth": {
        "color": "#D55E00",
        "linestyle": (0, (5, 1.5)),
        "label": "sigma ~ depth",
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
ERROR_COLOR = "#D55E00"
SIGMA_COLOR = LINES["predicted"]["color"]
MIN_PIXELS_BY_POSITION = 20
LEVEL_COLORS = ("#56B4E9", "#0072B2")
COVERAGE_COLORS = "RdBu"


def draw(evaluation: Scores, distribution: str) -> Images:
    """Return a report's images; none if no frame was scored. The distribution gives intervals."""
    if not evaluation.evaluated:
        return Images({})
    kind = evaluation.sigma_kind
    total = evaluation.metrics.total()
    named = {}
    if kind is not SigmaKind.NONE:
        named = {
            f"sparsification_{statistic}": sparsification_figure(total, statistic)
            for statistic in ERROR_LABELS
        }
    named["by_distance"] = distance_figure(total, distribution, kind)
    if kind is SigmaKind.METRES:
        named["reliability"] = reliability_figure(total, distribution)
        named["timeline"] = timeline_plot(evaluation.metrics, distribution)
        named["positions"] = positions_plot(total, distribution)
    if total["scales"][0] > 1:
        named["scale"] = scale_plot(evaluation.metrics)
    images = {name: encoded(figure, PLOT_DPI) for name, figure in named.items()}
    worst = evaluation.examples.worst()
    typical = evaluation.examples.typical()
    overlay = None
    for example in (*typical, *worst):
        frame = example.frame
        if frame.image is not None and frame.is_registered:
            left_out = None if frame.left_out is None else frame.left_out.mask
            pixels = lidar_overlay(frame.image, frame.need_ground_truth(), left_out)
            overlay = encoded_pixels(pixels, "jpeg")
            break
    shown = [
        [
            FrameImage(
                example.frame.name,
                example.metrics,
                encoded(frame_plot(example.frame, kind is SigmaKind.METRES), FRAME_DPI, "jpeg"),
            )
            for example in examples
        ]
        for examples in (worst, typical)
    ]
    return Images(images, overlay, *shown)


def removal_curves(sums: Sums, statistic: str) -> dict[str, Floats]:
    """Return the abs_rel, rmse or a1 that is left when "percent" of the pixels are removed.

    The most uncertain ones by a sigma, the "oracle"'s by true error, or "random" ones, which
    changes nothing; means over the images, (K,) each.
    """
    row = STATISTICS.index(statistic)
    frames = sums["frames"][0]
    oracle: Floats = sums["oracle"][0, row] / frames
    predicted, by_depth = sums["removal"][0, :, row] / frames
    return {
        "percent": 100 * FRACTIONS[PLOTTED_FRACTIONS],
        "predicted": predicted,
        "proportional_to_depth": by_depth,
        "oracle": oracle,
        "random": np.full_like(oracle, oracle[0]),
    }


def sparsification_figure(sums: Sums, statistic: str) -> Figure:
    """Return the plot of the remaining pixels' abs_rel, rmse or a1 against the fraction removed.

    The area between the predicted sigma and the oracle is the AUSE.
    """
    figure, axes = one_plot("Sparsification, Poggi et al. 2020, mean over the images")
    curve = removal_curves(sums, statistic)
    color = LINES["predicted"]["color"]
    area = {"color": color, "alpha": 0.12, "linewidth": 0}
    axes.fill_between(curve["percent"], curve["oracle"], curve["predicted"], **area)
    ause = BY_NAME[f"uncertainty.ause.{statistic}"]
    for name in ("random", "proportional_to_depth", "predicted", "oracle"):
        label = LINES[name]["label"]
        if name in SIGMA_NAMES:
            label += f", AUSE {ause.values(sums.of(name))[0]:.3g}"
        axes.plot(curve["percent"], curve[name], **{**LINES[name], "label": label})
    axes.set(
        xlabel="most uncertain pixels removed (%)",
        ylabel=ERROR_LABELS[statistic],
        xlim=(0, 100),
        ylim=(0, None),
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


SMALL_LABELS = {"random": "at random", "predicted": "by sigma", "oracle": "by error"}
"""Each curve's label: how pixels are removed."""


def small_sparsification_figure(sums: Sums) -> Figure:
    """Return the plot of rmse against the fraction removed, for a dock 200 pixels wide."""
    figure = Figure(figsize=(3.2, 2.4), dpi=100, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=11)
    curve = removal_curves(sums, "rmse")
    for name, label in SMALL_LABELS.items():
        color = LINES[name]["color"]
        axes.plot(curve["percent"], curve[name], color=color, linewidth=3, label=label)
    ause = BY_NAME["uncertainty.ause.rmse"].values(sums)[0]
    axes.set_title(f"AUSE {ause:.3g} m", fontsize=13)
    axes.set(xlim=(0, 100), ylim=(0, None), xticks=(0, 50, 100))
    axes.set_xlabel("pixels removed (%)", fontsize=11)
    axes.set_ylabel("rmse (m)", fontsize=11)
    axes.locator_params("y", nbins=3)
    axes.legend(frameon=False, fontsize=10, labelspacing=0.2, handlelength=1)
    return figure


def reliability_figure(sums: Sums, distribution: str) -> Figure:
    """Return the plot of coverage against confidence level; 68 and 95 % are marked."""
    figure, axes = one_plot("")
    title = f"Do the intervals hold what they promise? ({distribution.title()})"
    axes.set_title(title, fontsize=10, pad=28)  # above the two coverages
    levels = 100 * CONFIDENCE_LEVELS
    curve = {name: 100 * covered_shares(distribution, sums.of(name))[0] for name in SIGMA_NAMES}
    color = LINES["predicted"]["color"]
    place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center"}
    for percent in COVERAGE_LEVELS:
        covered = float(np.interp(percent, levels, curve["predicted"]))
        axes.axvline(percent, color="#BBBBBB", linewidth=0.8, zorder=0)
        axes.plot(percent, covered, "o", color=color, zorder=5)
        text = f"{covered:.1f} %\nin {percent} %"
        axes.text(percent, 1.01, text, color=color, fontsize=8, va="bottom", **place)
    axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
    axes.fill_between(levels, levels, curve["predicted"], color=color, alpha=0.12, linewidth=0)
    for name in ("predicted", "proportional_to_depth", "constant"):
        fitted = "" if name == "predicted" else ", scale fitted"
        line = {**LINES[name], "label": LINES[name]["label"] + fitted}
        axes.plot(levels, curve[name], **line)
    axes.set(
        xlabel="confidence level p (%)",
        ylabel="errors inside the interval (%)",
        xlim=(0, 100),
        ylim=(0, 100),
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def distance_figure(sums: Sums, distribution: str, kind: SigmaKind) -> Figure:
    """Return the plot of error, sigma, bias, coverage and n-MeRCI against the true distance."""
    has_size = kind is SigmaKind.METRES
    heights = {SigmaKind.METRES: (2, 1, 1), SigmaKind.RANK: (2, 1), SigmaKind.NONE: (2,)}[kind]
    figure = Figure(figsize=(SIZE[0], SIZE[1] * (0.5 + sum(heights) / 4)), layout="constrained")
    options: dict[str, Any] = {"sharex": True, "height_ratios": heights, "squeeze": False}
    panels = figure.subplots(len(heights), 1, **options)[:, 0]
    middle, _ = by_distance(sums, "pixels")
    style(panels[0], f"By distance (bins with at least {MIN_PIXELS} pixels)")
    lines = {
        "mae": {"color": "#D55E00", "label": "mean error"},
        "sigma": {"color": LINES["predicted"]["color"], "label": "mean sigma"},
        "bias": {"color": "#009E73", "label": "bias", "linestyle": (0, (5, 1.5))},
    }
    if not has_size:
        del lines["sigma"]
    for name, line in lines.items():
        panels[0].plot(*by_distance(sums, name), **line, marker=".")
    panels[0].axhline(0, color="#666666", linewidth=0.8)
    panels[0].set(ylabel="metres")
    panels[0].legend(frameon=False, fontsize=8)
    color = LINES["predicted"]["color"]
    if has_size:
        _, coverage = by_distance(sums, of_distribution("coverage_95", distribution))
        panels[1].plot(middle, 100 * coverage, color=color, marker=".")
        panels[1].axhline(95, color="#666666", linewidth=0.8, linestyle=(0, (4, 3)))
        panels[1].set(ylabel=f"coverage of 95 %\n({distribution.title()})", ylim=(None, 102))
    last = panels[-1]
    if kind is not SigmaKind.NONE:
        last.plot(*by_distance(sums, "n_merci"), color=color, marker=".")
        last.axhline(1, **{**LINES["constant"], "label": None})
        last.set(ylabel="n-MeRCI", ylim=(0, None))
    last.set(xlabel="true depth (m)")
    if np.isfinite(
        by_distance(sums, "mae")[1]
    ).any():  # an axis without data has no logarithmic scale
        last.set_xscale("log")
        number_axis(last.xaxis, LOG_STEPS)
    for axes in panels[1:]:
        style(axes, "")
    return figure


def by_distance(sums: Sums, name: str) -> tuple[Floats, Floats]:
    """Return each distance interval's middle, metres, and a metric; NaN below `MIN_PIXELS`."""
    edges = DISTANCE.edges
    limits = np.concatenate((edges[1:2] / 1.5, edges[1:-1], edges[-2:-1] * 1.5))
    values = BY_NAME[f"by_distance.{name}"].values(sums)[0]
    enough = sums["distance.pixels"][0] >= MIN_PIXELS
    return np.sqrt(limits[:-1] * limits[1:]), np.where(enough, values, np.nan)


def scale_plot(metrics: OnlineMetrics) -> Figure:
    """Return the plot of the scale per block: the depth's missing factor in its frames."""
    figure = Figure(figsize=(1.4 * SIZE[0], 0.7 * SIZE[1]), layout="constrained")
    axes = figure.subplots()
    start, per_point = _frames_of(metrics)
    scales = BY_NAME["scale.mean_factor"].values(metrics.each_block())
    axes.plot(start, scales, color=ERROR_COLOR, linewidth=1, marker=".", markersize=3)
    axes.axhline(float(np.nanmedian(scales)), color=SIGMA_COLOR, linewidth=0.8)
    axes.set(ylabel="ground truth / depth", xlabel="frame")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.9), max(high, 1.1))  # else 0.998 and 1.002 are the whole axis
    number_axis(axes.yaxis, LOG_STEPS)
    style(axes, f"Scale over time, and its median{per_point}")
    return figure


def _frames_of(metrics: OnlineMetrics) -> tuple[NDArray[np.int64], str]:
    """Return each block's first frame, and how many frames each has, in words."""
    number = metrics.blocks.frames_per_block
    words = f", {number} frames a point" if number > 1 else ""
    return np.arange(len(metrics.blocks)) * number, words


def timeline_plot(metrics: OnlineMetrics, distribution: str) -> Figure:
    """Return the plot of mean error, mean sigma and coverage per block."""
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
        covered = BY_NAME[of_distribution(f"uncertainty.coverage_{level}", distribution)].values(
            sums
        )
        fraction.plot(start, 100 * covered, color=color, marker=".", markersize=4)
        fraction.axhline(level, color=color, linewidth=0.8, linestyle=(0, (4, 3)))
        place = {"color": color, "transform": fraction.transAxes, "va": "center"}
        fraction.text(1.005, level / 100, f"{level} %", **place)
    fraction.set(ylabel=f"coverage (%), {distribution.title()}", ylim=(0, 102), xlabel="frame")
    fraction.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    style(metres, f"Over time{per_point}")
    style(fraction, "")
    metres.legend(frameon=False, fontsize=8)
    return figure


def positions_plot(sums: Sums, distribution: str) -> Figure:
    """Return the plot of mean error and coverage at 95 % by position in the image."""
    figure = Figure(figsize=(1.4 * SIZE[0], 1.4 * SIZE[1]), layout="constrained")
    pixels = np.where(sums["cell.pixels"] < MIN_PIXELS_BY_POSITION, np.nan, sums["cell.pixels"])
    error = (sums["cell.error"] / pixels).reshape(BLOCK_GRID)
    coverage = 100 * (sums[of_distribution("cell.covered", distribution)] / pixels).reshape(
        BLOCK_GRID
    )
    max_error = float(np.nanmax(error)) if np.isfinite(error).any() else 1.0
    maps = (
        ("Mean error by position (m)", error, SIGMA_COLORS, 0, max_error),
        (
            f"Coverage of the 95 % interval (%), {distribution.title()}",
            coverage,
            COVERAGE_COLORS,
            90,
            100,
        ),
    )
    for axes, (title, values, colors, low, high) in zip(figure.subplots(2, 1), maps, strict=True):
        image = axes.imshow(values, cmap=colors, vmin=low, vmax=high, aspect="auto")
        axes.set_facecolor(MISSING_COLOR)
        axes.set_title(title, fontsize=10)
        axes.set(xticks=[], yticks=[], xlabel="image width", ylabel="image height")
        figure.colorbar(image, ax=axes, extend="min" if low else "neither")
    return figure


def one_plot(title: str, size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """Return a figure with one plot, by its size in inches."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    style(axes, title)
    return figure, axes


def style(axes: Axes, title: str) -> None:
    """Set the axes' title, grid and font sizes."""
    axes.set_title(title, fontsize=10)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
