"""Plots of a whole evaluation at a glance: over time, and over the image."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from uncertainty_depth.evaluation.images import MISSING_RGB, SIGMA_COLORS
from uncertainty_depth.evaluation.plots import LINES, SIZE, style
from uncertainty_depth.evaluation.positions import Positions
from uncertainty_depth.evaluation.unit_sums import LAWS, LEVELS, SCALARS
from uncertainty_depth.evaluation.units import Units

ERROR_COLOR = "#D55E00"
COVERAGE_COLORS = "RdBu"


def timeline_plot(units: Units, law: str) -> Figure:
    """Mean error, mean sigma and coverage of each frame, or of each few frames of a long run."""
    figure = Figure(figsize=(1.4 * SIZE[0], 1.2 * SIZE[1]), layout="constrained")
    metres, fraction = figure.subplots(2, 1, sharex=True)
    tables = units.tables()
    scalars = dict(zip(SCALARS, tables["scalars"].T, strict=True))
    start = np.arange(len(units)) * units.frames_per_unit
    with np.errstate(invalid="ignore"):
        error = scalars["error"] / scalars["pixels"]
        sigma = scalars["sigma"] / scalars["pixels"]
        covered = tables["covered"][:, LAWS.index(law)] / scalars["pixels"][:, None]
    metres.plot(start, error, color=ERROR_COLOR, label="mean error", marker=".", markersize=4)
    metres.plot(start, sigma, label="mean sigma", marker=".", markersize=4, **_line("method"))
    metres.set(ylabel="metres", ylim=(0, None))
    for place, level in enumerate(LEVELS):
        color = ("#56B4E9", "#0072B2")[place]
        fraction.plot(start, 100 * covered[:, place], color=color, marker=".", markersize=4)
        fraction.axhline(100 * level, color=color, linewidth=0.8, linestyle=(0, (4, 3)))
        fraction.text(
            1.005, level, f"{level:.0%}", color=color, transform=fraction.transAxes, va="center"
        )
    fraction.set(ylabel=f"errors held (%), {law}", ylim=(0, 102), xlabel="frame")
    per_point = units.frames_per_unit
    style(metres, "Over time" + (f", {per_point} frames a point" if per_point > 1 else ""))
    style(fraction, "")
    metres.legend(frameon=False, fontsize=8)
    return figure


def positions_plot(positions: Positions, law: str) -> Figure:
    """Mean error and coverage at 95 % by position in the image."""
    figure = Figure(figsize=(1.4 * SIZE[0], 1.4 * SIZE[1]), layout="constrained")
    upper, lower = figure.subplots(2, 1)
    error = positions.mean_error_m()
    coverage = 100 * positions.coverage(law, 0.95)
    largest = float(np.nanmax(error)) if np.isfinite(error).any() else 1.0
    _draw(figure, upper, error, "Mean error by position (m)", (SIGMA_COLORS, 0, largest))
    title = f"Errors held by the 95 % interval (%), {law}"
    _draw(figure, lower, coverage, title, (COVERAGE_COLORS, 90, 100))
    return figure


def _draw(
    figure: Figure, axes, values: NDArray, title: str, scale: tuple[str, float, float]
) -> None:
    colors, low, high = scale
    drawn = axes.imshow(values, cmap=colors, vmin=low, vmax=high, aspect="auto")
    axes.set_facecolor(np.array(MISSING_RGB) / 255)
    axes.set_title(title, fontsize=10)
    axes.set(xticks=[], yticks=[], xlabel="image width", ylabel="image height")
    figure.colorbar(drawn, ax=axes, extend="min" if low else "neither")


def _line(name: str) -> dict[str, object]:
    return {"color": LINES[name]["color"], "linewidth": 1.5}
