# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plots of ensembles and MC-dropout for depth completion.

Gustafsson et al. 2020, figures 1, 6, 7 and 22 to 27.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.completion_models import ENSEMBLE, MC_DROPOUT
from experiments.figures import COLORS, panels
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS
from uncertainty_depth.metrics.sparsification_variants import GUSTAFSSON
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS

Scores = Mapping[str, Any]
METHOD_STYLES = {ENSEMBLE: ("ensemble", COLORS[0]), MC_DROPOUT: ("MC-dropout", COLORS[1])}
SMOOTH = 98
"""Percentile at the upper end of a map's colours."""
METRICS = {"ause": "AUSE", "auce": "AUCE", "rmse": "RMSE (m)"}


def all_figures(shifted: Mapping[str, Scores], sizes: Sequence[str]) -> dict[str, Figure]:
    """Return file name to plot."""
    return {
        "metrics": metrics_figure(shifted),
        "sparsification": curves_figure(shifted, sizes, _draw_sparsification, "RMSE / first"),
        "sparsification_error": curves_figure(shifted, sizes, _draw_error, "above the oracle"),
        "calibration": curves_figure(shifted, sizes, _draw_calibration, "fraction covered"),
    }


def examples_figure(examples: Mapping[str, tuple[Frame, DepthPrediction]]) -> Figure:
    """Plot a frame of each test set: image, true and predicted depth, error, sigma (figure 1).

    Given pixels are dots in the image; error and sigma share their colours.
    """
    figure, axes = panels(len(examples), 5, 2.6, 2.1)
    for row, (name, (frame, prediction)) in zip(axes, examples.items(), strict=True):
        truth = frame.need_ground_truth()
        error = np.abs(prediction.depth_m - truth)
        far = float(np.nanpercentile(truth, SMOOTH))
        large = float(np.nanpercentile(error, SMOOTH))
        row[0].imshow(frame.need_image())
        if frame.sparse_m is not None:
            rows, columns = np.nonzero(np.isfinite(frame.sparse_m))
            row[0].plot(columns, rows, ".", color="yellow", markersize=0.5)
        row[0].set_title(name, fontsize=9)
        _draw_map(row[1], truth, far, DEPTH_COLORS, "withheld depth (m)")
        _draw_map(row[2], prediction.depth_m, far, DEPTH_COLORS, "depth (m)")
        _draw_map(row[3], error, large, SIGMA_COLORS, "error (m)")
        _draw_map(row[4], prediction.sigma_m, large, SIGMA_COLORS, "sigma (m)")
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
    return figure


def _draw_map(
    panel: Axes, values: NDArray[np.floating], maximum: float, colors: str, title: str
) -> None:
    image = panel.imshow(values, cmap=colors, vmin=0, vmax=maximum, interpolation="nearest")
    panel.figure.colorbar(image, ax=panel, shrink=0.7)
    panel.set_title(title, fontsize=9)


def metrics_figure(shifted: Mapping[str, Scores]) -> Figure:
    """Plot the three metrics by the number of members or passes (figure 6)."""
    figure, axes = panels(len(shifted), len(METRICS), 3.4, 2.6)
    for row, (name, of_methods) in zip(axes, shifted.items(), strict=True):
        for panel, (key, title) in zip(row, METRICS.items(), strict=True):
            for method, (label, color) in METHOD_STYLES.items():
                _draw_metric(panel, of_methods[method], key, label, color)
            panel.set(xscale="log", xlabel="M", ylabel=title, title=name)
            sizes = [int(size) for size in of_methods[ENSEMBLE]]
            panel.set_xticks(sizes, [str(size) for size in sizes], minor=False)
            panel.set_xticks([], minor=True)
    axes[0, 0].legend()
    return figure


def _draw_metric(panel: Axes, by_size: Scores, key: str, label: str, color: str) -> None:
    values = [list(map(itemgetter(key), sets)) for sets in by_size.values()]
    means = [np.mean(of_size) for of_size in values]
    deviations = [np.std(of_size) for of_size in values]
    sizes = [int(size) for size in by_size]
    panel.errorbar(sizes, means, deviations, color=color, label=label, marker="o", capsize=3)


def curves_figure(
    shifted: Mapping[str, Scores], sizes: Sequence[str], draw: Any, title: str
) -> Figure:
    """Plot a curve of every set: a row for each test set, a column for each number M."""
    figure, axes = panels(len(shifted), len(sizes), 2.6, 2.4, sharex=True, sharey="row")
    for row, (name, of_methods) in zip(axes, shifted.items(), strict=True):
        for panel, size in zip(row, sizes, strict=True):
            for method, (label, color) in METHOD_STYLES.items():
                draw(panel, of_methods[method][size], label, color)
            panel.set_title(f"{name}, M = {size}", fontsize=9)
        row[0].set_ylabel(title)
    axes[0, 0].legend(fontsize=7)
    return figure


def _draw_sparsification(panel: Axes, sets: Sequence[Scores], label: str, color: str) -> None:
    """Draw the first set, an example as in figures 22 and 23, and its oracle."""
    panel.plot(GUSTAFSSON.fractions, sets[0]["sparsification"], color=color, label=label)
    panel.plot(GUSTAFSSON.fractions, sets[0]["oracle"], color=color, linestyle=":")


def _draw_error(panel: Axes, sets: Sequence[Scores], label: str, color: str) -> None:
    """Draw the sparsification error of every set (figures 24 and 25)."""
    for number, scores in enumerate(sets):
        error = np.subtract(scores["sparsification"], scores["oracle"])
        panel.plot(
            GUSTAFSSON.fractions, error, color=color, alpha=0.5, label=None if number else label
        )


def _draw_calibration(panel: Axes, sets: Sequence[Scores], label: str, color: str) -> None:
    """Draw coverage against the level for every set (figures 7, 26 and 27)."""
    for number, scores in enumerate(sets):
        covered = scores["covered"]
        panel.plot(
            CONFIDENCE_LEVELS, covered, color=color, alpha=0.5, label=None if number else label
        )
    panel.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle="--")
