# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The figures of the anchor benchmark: predictions, quantities by complexity, and maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from experiments import figures
from experiments.anchor_problems import (
    MAP_GRID,
    TRAINING_LIMIT,
    RegressionProblem,
)

QUANTITIES = ("deviation", "uncertainty", "coverage")
IN_PREDICTIONS = ("anchor", "bernoulli", "variational", "once")
"""The methods of figures 1, 2, 4, 5 and 7."""
Results = Mapping[tuple[str, str], dict[str, Any]]


def quantities(
    results: Results, problems: list[RegressionProblem], titles: Mapping[str, str]
) -> Figure:
    """Plot the three quantities against the complexity, one row per input (figures 3 and 6)."""
    inputs = list(problems[0].inputs)
    figure, axes = figures.panels(len(inputs), len(QUANTITIES), width=4.2, height=3.0)
    for row, name in zip(axes, inputs, strict=True):
        for axis, quantity in zip(row, QUANTITIES, strict=True):
            _plot_methods(axis, results, problems, name, quantity, titles)
            axis.set(title=f"{quantity}, {name}", xlabel=problems[0].name.split("=")[0])
            axis.set_xticks([problem.level for problem in problems])
            if quantity == "coverage":
                axis.axhline(0.95, color="0.6", linestyle=":", linewidth=1)
            else:
                axis.set_yscale("log")
    axes[0, 0].legend(fontsize=6)
    return figure


def _plot_methods(
    axis: Axes,
    results: Results,
    problems: list[RegressionProblem],
    name: str,
    quantity: str,
    titles: Mapping[str, str],
) -> None:
    for number, (method, title) in enumerate(titles.items()):
        values = []
        errors = []
        for problem in problems:
            result = results[problem.name, method]
            index = problem.inputs[name]
            value = result[quantity][index]
            values.append(value)
            if quantity == "coverage":
                errors.append(np.sqrt(value * (1 - value) / result["repetitions"]))
            else:
                errors.append(result[f"{quantity}_error"][index])
        axis.errorbar(
            [problem.level + 0.06 * (number - 3) for problem in problems],
            values,
            errors,
            color=figures.COLORS[number],
            label=title,
            marker="o",
            markersize=3,
            capsize=2,
            linewidth=1,
        )


def members(
    results: Results, problems: list[RegressionProblem], titles: Mapping[str, str]
) -> Figure:
    """Plot coverage in distribution against the number of members, a panel for each problem."""
    rows = -(-len(problems) // 4)
    figure, axes = figures.panels(rows, min(len(problems), 4), width=3.4, height=2.8)
    for axis, problem in zip(axes.flat, problems, strict=False):
        for number, (method, title) in enumerate(titles.items()):
            by_members = results[problem.name, method].get("by_members", {})
            if not by_members:
                continue
            values = np.array(list(by_members.values()))
            axis.errorbar(
                [int(count) for count in by_members],
                values.mean(1),
                values.std(1, ddof=1) / np.sqrt(values.shape[1]),
                color=figures.COLORS[number],
                label=title,
                marker="o",
                markersize=3,
                capsize=2,
                linewidth=1,
            )
        axis.axhline(0.95, color="0.6", linestyle=":", linewidth=1)
        axis.set(title=problem.name, xlabel="members", ylim=(0, 1.02))
    axes[0, 0].set_ylabel("coverage in distribution")
    axes[0, 0].legend(fontsize=6)
    for axis in axes.flat[len(problems) :]:
        axis.remove()
    return figure


def predictions(results: Results, problem: RegressionProblem, titles: Mapping[str, str]) -> Figure:
    """Plot prediction, 1.96 uncertainties, truth and training points (figures 1, 2, 4, 5)."""
    figure, axes = figures.panels(2, 2, width=6.0, height=3.2)
    place = problem.at[:, 0]
    truth = problem.function(problem.at)
    for axis, method in zip(axes.flat, IN_PREDICTIONS, strict=True):
        result = results[problem.name, method]
        mean = np.array(result["prediction"])
        half = 1.96 * np.array(result["sigma"])
        axis.fill_between(place, mean - half, mean + half, alpha=0.3, linewidth=0)
        axis.plot(place, mean, linewidth=1)
        axis.plot(place, truth, color="red", linestyle="--", linewidth=0.8)
        if problem.dimension == 1:
            inputs = problem.training_inputs()[:, 0]
            axis.plot(inputs, problem.targets(1)[0], "k.", markersize=3)
        axis.axvspan(-TRAINING_LIMIT, TRAINING_LIMIT, color="0.9", zorder=-1)
        margin = 0.3 * np.ptp(truth)
        axis.set_ylim(truth.min() - margin, truth.max() + margin)
        axis.set_title(f"{problem.name}, {titles[method]}", fontsize=9)
    return figure


def maps(results: Results, problem: RegressionProblem, titles: Mapping[str, str]) -> Figure:
    """Plot log10 deviation, log10 uncertainty and coverage over the two inputs (figure 7)."""
    figure, axes = figures.panels(len(IN_PREDICTIONS), 3, width=3.2, height=2.8)
    limits = [float(problem.at.min()), float(problem.at.max())] * 2
    for row, method in zip(axes, IN_PREDICTIONS, strict=True):
        for axis, quantity in zip(row, QUANTITIES, strict=True):
            values = np.array(results[problem.name, method][quantity]).reshape(MAP_GRID, MAP_GRID)
            is_coverage = quantity == "coverage"
            color_values = values if is_coverage else np.log10(np.maximum(values, 1e-6))
            image = axis.imshow(
                color_values,
                origin="lower",
                extent=limits,
                vmin=0 if is_coverage else -2,
                vmax=1,
            )
            figure.colorbar(image, ax=axis)
            corner = (-TRAINING_LIMIT, -TRAINING_LIMIT)
            side = 2 * TRAINING_LIMIT
            axis.add_patch(Rectangle(corner, side, side, fill=False, color="white"))
            label = quantity if is_coverage else f"log10 {quantity}"
            axis.set_title(f"{titles[method]}: {label}", fontsize=6)
    return figure
