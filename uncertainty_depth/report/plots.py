# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plots of the curves, without global state of matplotlib.

Every function takes what `OnlineMetrics.curves` returns. Colours are those of Okabe and Ito, which
colour-blind readers can tell apart; dashes differ too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

LINES: dict[str, dict[str, Any]] = {
    "method": {"color": "#0072B2", "linewidth": 2.0, "label": "predicted sigma", "zorder": 4},
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
PLOTTED = ("method", "proportional_to_depth", "constant")
SIZE = (5.2, 3.6)
ENOUGH_PIXELS = 100
MARKED_LEVELS = (0.68, 0.95)


def figures(curves: dict[str, Any], law: str = "gaussian") -> dict[str, Figure]:
    """Return all plots by file name; empty without a pixel."""
    if not curves["pixels"]:
        return {}
    sparsification_figures = {
        f"sparsification_{statistic}": sparsification_figure(curves, statistic)
        for statistic in curves["sparsification"]
    }
    return {
        **sparsification_figures,
        "n_merci": n_merci_figure(curves),
        "reliability": reliability_figure(curves, law),
        "by_distance": distance_figure(curves, law),
    }


def sparsification_figure(curves: dict[str, Any], statistic: str = "rmse") -> Figure:
    """Return the plot of the error of the remaining pixels against the fraction removed.

    The area between method and oracle is the AUSE.

    Args:
        curves: from `OnlineMetrics.curves`.
        statistic: "abs_rel", "rmse" or "a1".
    """
    figure, axes = _figure(f"Sparsification, {curves['variant']}, mean over the images")
    if not curves["pixels"]:
        return figure
    curve = curves["sparsification"][statistic]
    drawn = some_left(curve)
    removed = 100 * curve["fractions"][drawn]
    axes.fill_between(
        removed,
        curve["oracle"][drawn],
        curve["method"][drawn],
        color=LINES["method"]["color"],
        alpha=0.12,
        linewidth=0,
    )
    for name in ("random", "proportional_to_depth", "method", "oracle"):
        ause = f", AUSE {curve['ause'][name]:.3g}" if name in curve["ause"] else ""
        label = LINES[name]["label"] + ause
        axes.plot(removed, curve[name][drawn], **{**LINES[name], "label": label})
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
    drawn = some_left(curve)
    removed = 100 * curve["fractions"][drawn]
    for name in ("random", "oracle", "method"):
        axes.plot(removed, curve[name][drawn], color=LINES[name]["color"], linewidth=3)
    axes.set_title(f"{statistic} (m), AUSE {curve['ause']['method']:.3g}", fontsize=14)
    axes.set(xlim=(0, 100), ylim=(0, None), xticks=(0, 50, 100), xticklabels=("0", "50", "100 %"))
    axes.locator_params("y", nbins=3)
    return figure


def some_left(curve: dict[str, Any]) -> NDArray[np.bool_]:
    """Return which points of a sparsification curve to draw.

    The last, where no pixel is left, is 0: a vertical stroke that tells nothing.
    """
    drawn: NDArray[np.bool_] = curve["fractions"] < 1
    return drawn


def n_merci_figure(curves: dict[str, Any]) -> Figure:
    """Return the plot of n-MeRCI against alpha; below 1 beats a constant sigma.

    It is plotted where the largest covered error is above the mean error: there its denominator is
    zero (a pole), and negative below. Negative values are left out.
    """
    figure, axes = _figure("n-MeRCI over all pixels (Moukari et al. 2019)")
    curve = curves["n_merci"]
    values = {}
    for name in PLOTTED:
        with np.errstate(invalid="ignore"):
            is_defined = curve["tail"] & (curve[name] >= 0)
        values[name] = np.where(is_defined, curve[name], np.nan)
        axes.plot(100 * curve["alphas"], values[name], **LINES[name], marker=".", markersize=4)
    axes.axvline(100 * curves["alpha"], color="#BBBBBB", linewidth=0.8, zorder=0)
    axes.set(
        xlabel="alpha: fraction of the pixels covered (%)",
        ylabel="n-MeRCI (0 best, 1 no information)",
        xlim=(0, 100),
        ylim=(0, _upper_limit(values)),
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _upper_limit(curves: dict[str, np.ndarray]) -> float:
    """Return an upper limit that is robust against values next to a pole."""
    values = np.concatenate(list(curves.values()))
    values = values[np.isfinite(values)]
    return max(1.2, min(1.2 * float(np.percentile(values, 85)), 5.0)) if values.size else 1.2


def reliability_figure(curves: dict[str, Any], law: str = "gaussian") -> Figure:
    """Return the plot of coverage against the confidence level.

    Above the diagonal sigma is too large, below it too small; 68 and 95 % are marked.
    """
    figure, axes = _figure(f"Reliability of {law.title()} intervals (Gustafsson et al. 2020)")
    curve = curves["reliability_laplace" if law == "laplace" else "reliability"]
    for level in MARKED_LEVELS:
        _mark_coverage(axes, level, float(np.interp(level, curve["levels"], curve["method"])))
    axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
    levels = 100 * curve["levels"]
    color = LINES["method"]["color"]
    axes.fill_between(levels, levels, 100 * curve["method"], color=color, alpha=0.12, linewidth=0)
    for name in PLOTTED:
        fitted = "" if name == "method" else ", scale fitted"
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


def _mark_coverage(axes: Axes, level: float, covered: float) -> None:
    """Mark the fraction that the interval of a level covers."""
    axes.axvline(100 * level, color="#BBBBBB", linewidth=0.8, zorder=0)
    axes.plot(100 * level, 100 * covered, "o", color=LINES["method"]["color"], zorder=5)
    axes.annotate(
        f"{100 * covered:.1f} % at {100 * level:.0f} %",
        (100 * level, 100 * covered),
        (0, -16 if covered > 0.5 else 7),
        textcoords="offset points",
        ha="right" if level > 0.9 else "center",
        fontsize=8,
    )


def distance_figure(curves: dict[str, Any], law: str = "gaussian") -> Figure:
    """Return the plot of error, sigma, bias, coverage and n-MeRCI against the true distance."""
    figure = Figure(figsize=(SIZE[0], SIZE[1] * 1.5), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1, 1))
    curve = curves["by_distance"]
    middle, enough = distances(curve)
    style(panels[0], f"By distance, where there are {ENOUGH_PIXELS} pixels")
    lines = {
        "mae": {"color": "#D55E00", "label": "mean error"},
        "sigma": {"color": LINES["method"]["color"], "label": "mean sigma"},
        "bias": {"color": "#009E73", "label": "bias", "linestyle": (0, (5, 1.5))},
    }
    for name, line in lines.items():
        panels[0].plot(middle, np.where(enough, curve[name], np.nan), **line, marker=".")
    panels[0].axhline(0, color="#666666", linewidth=0.8)
    panels[0].set(ylabel="metres")
    panels[0].legend(frameon=False, fontsize=8)
    coverage = curve["coverage_95_laplace" if law == "laplace" else "coverage_95"]
    color = LINES["method"]["color"]
    panels[1].plot(middle, np.where(enough, 100 * coverage, np.nan), color=color, marker=".")
    panels[1].axhline(95, color="#666666", linewidth=0.8, linestyle=(0, (4, 3)))
    panels[1].set(ylabel=f"coverage of 95 %\n({law})", ylim=(None, 102))
    panels[2].plot(middle, np.where(enough, curve["n_merci"], np.nan), color=color, marker=".")
    panels[2].axhline(1, **{**LINES["constant"], "label": None})
    panels[2].set(ylabel="n-MeRCI", ylim=(0, None), xlabel="true depth (m)")
    if enough.any():  # an axis without data has no logarithmic scale
        panels[2].set_xscale("log")
    for axes in panels[1:]:
        style(axes, "")
    return figure


def distances(curve: dict[str, Any]) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return the middle of each interval of distance, metres, and whether it has enough pixels."""
    edges = curve["edges"]
    limits = np.concatenate((edges[1:2] / 1.5, edges[1:-1], edges[-2:-1] * 1.5))
    return np.sqrt(limits[:-1] * limits[1:]), curve["pixels"] >= ENOUGH_PIXELS


def _figure(title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    style(axes, title)
    return figure, axes


def style(axes: Axes, title: str) -> None:
    """Set title, grid and font sizes of axes."""
    axes.set_title(title, fontsize=10)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
