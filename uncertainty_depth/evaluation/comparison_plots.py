# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Curves of several reports over each other, and their error over the common frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uncertainty_depth.evaluation.comparison import WORST_BY, Comparison
from uncertainty_depth.evaluation.plots import ERROR_LABELS, SIZE, distances, style

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of Okabe and Ito; colour-blind readers can tell them apart."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (1, 1)))
ORACLE_ALPHA = 0.45


def figures(comparison: Comparison) -> dict[str, Figure]:
    """Return the plots by file name. Curves are of all frames of a report, not the common ones."""
    curves = [report.evaluation.metrics.curves() for report in comparison.reports]
    return {
        "sparsification": _sparsification(curves, comparison.names),
        "reliability": _reliability(curves, comparison.names),
        "by_distance": _by_distance(curves, comparison.names),
        "frames": _frames(comparison),
    }


def _lines(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "color": COLORS[index % len(COLORS)],
            "linestyle": DASHES[index // len(COLORS) % len(DASHES)],
            "label": name,
        }
        for index, name in enumerate(names)
    ]


def _panels(columns: int, titles: Sequence[str]) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(SIZE[0] * 0.8 * columns, SIZE[1]), layout="constrained")
    panels = figure.subplots(1, columns, squeeze=False)[0]
    for axes, title in zip(panels, titles, strict=True):
        style(axes, title)
    return figure, panels


def _sparsification(curves: Sequence[dict[str, Any]], names: Sequence[str]) -> Figure:
    figure, panels = _panels(3, ["Sparsification, mean over images", "dim: oracle", ""])
    for axes, (statistic, label) in zip(panels, ERROR_LABELS.items(), strict=True):
        for curve, line in zip(curves, _lines(names), strict=True):
            values = curve["sparsification"][statistic]
            removed = 100 * values["fractions"]
            axes.plot(removed, values["method"], **line)
            dim = {**line, "label": None, "alpha": ORACLE_ALPHA, "linewidth": 0.9}
            axes.plot(removed, values["oracle"], **dim)
        axes.set(xlabel="most uncertain pixels removed (%)", ylabel=label)
        axes.set(xlim=(0, 100), ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _reliability(curves: Sequence[dict[str, Any]], names: Sequence[str]) -> Figure:
    keys = {"reliability": "Gaussian intervals", "reliability_laplace": "Laplace intervals"}
    figure, panels = _panels(2, list(keys.values()))
    for axes, key in zip(panels, keys, strict=True):
        axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
        for curve, line in zip(curves, _lines(names), strict=True):
            axes.plot(100 * curve[key]["levels"], 100 * curve[key]["method"], **line)
        axes.set(xlabel="confidence level p (%)", ylabel="errors inside the interval (%)")
        axes.set(xlim=(0, 100), ylim=(0, 100))
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _by_distance(curves: Sequence[dict[str, Any]], names: Sequence[str]) -> Figure:
    figure, panels = _panels(2, ["MAE by true distance", "n-MeRCI by true distance"])
    for axes, key in zip(panels, ("mae", "n_merci"), strict=True):
        for curve, line in zip(curves, _lines(names), strict=True):
            middle, enough = distances(curve["by_distance"])
            axes.plot(middle, np.where(enough, curve["by_distance"][key], np.nan), **line)
        axes.set(xlabel="true depth (m)", xscale="log", ylim=(0, None))
    panels[0].set(ylabel="MAE (m)")
    panels[1].set(ylabel="n-MeRCI (0 best, 1 no information)")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _frames(comparison: Comparison) -> Figure:
    figure = Figure(figsize=(2 * SIZE[0] * 0.8, SIZE[1] * 0.8), layout="constrained")
    axes = figure.subplots()
    style(axes, "Each common frame")
    for values, line in zip(comparison.series, _lines(comparison.names), strict=True):
        axes.plot(np.arange(len(values)), values, marker=".", markersize=3, linewidth=0.8, **line)
    axes.set(xlabel="common frame, in the order of the first report", ylabel=WORST_BY)
    axes.set(ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
    return figure
