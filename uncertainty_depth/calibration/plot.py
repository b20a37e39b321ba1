# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plot a calibration: its map, and reliability before and after on frames not used for fitting."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uncertainty_depth.calibration.run import Calibration
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS

STYLES: dict[str, dict[str, Any]] = {
    "before": {"color": "#D55E00", "linestyle": "--"},
    "after": {"color": "#0072B2"},
}


def plot(calibration: Calibration) -> Figure:
    """Return the two plots side by side."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    _plot_reliability(left, calibration)
    _plot_map(right, calibration)
    for axes in (left, right):
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return figure


def _plot_reliability(axes: Axes, calibration: Calibration) -> None:
    """Plot the mean over the trials, and each of several trials as a thin line."""
    axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
    coverage = np.stack([trial.reliability for trial in calibration.trials])
    scores = calibration.scores()
    for index, (name, style) in enumerate(STYLES.items()):
        mean = coverage[:, index].mean(axis=0)
        label = f"{name}, AUCE {scores[index]['auce']:.3f}"
        axes.plot(100 * CONFIDENCE_LEVELS, 100 * mean, linewidth=2, label=label, **style)
        if len(coverage) > 1:
            axes.plot(
                100 * CONFIDENCE_LEVELS,
                100 * coverage[:, index].T,
                linewidth=0.7,
                alpha=0.6,
                **style,
            )
    axes.set_title("Reliability on frames not used", fontsize=10)
    axes.set(
        xlabel=f"confidence level p (%), {calibration.distribution} intervals",
        ylabel="errors inside the interval (%)",
        xlim=(0, 100),
        ylim=(0, 100),
    )


def _plot_map(axes: Axes, calibration: Calibration) -> None:
    sigma_map = calibration.choice.sigma_map
    raw = np.linspace(0, calibration.raw_range_m, 500)
    axes.plot(raw, raw, color="#666666", linewidth=0.8, label="raw")
    axes.plot(raw, sigma_map(raw), color="#0072B2", linewidth=2, label=sigma_map.name)
    axes.set_title("The map", fontsize=10)
    axes.set(
        xlabel="raw sigma (m)", ylabel="calibrated sigma (m)", xlim=(0, raw[-1]), ylim=(0, None)
    )
