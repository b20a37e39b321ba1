# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Reliability of deep uncertainties on problems with a known answer.

Schmähling et al. 2022, "A framework for benchmarking uncertainty in deep regression". Problems
whose function is linear in its coefficients have an exact answer, Bayesian linear regression with
the reference prior: the anchor. Its uncertainty covers the true function at its nominal rate. Deep
methods on the same data are compared by deviation from the true function, uncertainty (both root
mean squares, in units of the noise) and coverage within 1.96 sigma, inside and outside the
training box, over repeated data sets. Problem families, methods and the shape of the network are
the paper's. The numbers that could not be looked up (see `anchor_problems` and
`anchor_methods.Settings`) were chosen here, so only the tendencies can be compared with the paper.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray

from uncertainty_depth import atomic, strict_json
from uncertainty_depth.experiments import anchor_methods, figures, tables
from uncertainty_depth.experiments.anchor_methods import METHODS, Settings
from uncertainty_depth.experiments.anchor_problems import (
    PROBLEMS,
    QUICK_PROBLEMS,
    RegressionProblem,
    bayesian_linear_regression,
)
from uncertainty_depth.experiments.runner import resume

TITLES = {"anchor": "anchor (exact)", **METHODS}
QUANTITIES = {
    "coverage": "fraction within 1.96 sigma",
    "deviation": "deviation / noise",
    "uncertainty": "uncertainty / noise",
}
REGIONS = {"in": "in distribution", "out": "out of distribution"}
ANCHOR_REPETITIONS = 500
TEST_POINTS = 200
Results = dict[tuple[str, str], Any]
"""(problem, method) to region to quantity to one value per repetition."""


def assess(mean: NDArray, sigma: NDArray, truth: NDArray, noise: float) -> dict[str, NDArray]:
    """Return the quantities of each repetition, (R,), from (R, P) predictions and truth."""
    error = np.abs(mean - truth)
    return {
        "coverage": (error <= 1.96 * sigma).mean(1),
        "deviation": np.sqrt(np.square(error).mean(1)) / noise,
        "uncertainty": np.sqrt(np.square(sigma).mean(1)) / noise,
    }


def draw(
    problem: RegressionProblem, repetitions: int
) -> list[tuple[NDArray, NDArray, dict[str, NDArray]]]:
    """Draw training inputs, targets and test points; each repetition has its own seed."""
    data = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, PROBLEMS.index(problem)])
        x, y = problem.draw(rng)
        data.append((x, y, problem.test_points(rng, TEST_POINTS)))
    return data


def anchor_predictions(
    problem: RegressionProblem, data: list
) -> dict[str, tuple[NDArray, NDArray]]:
    """Return region to (R, P) mean and standard deviation of the exact answer."""
    predictions = {}
    for region in REGIONS:
        means = []
        sigmas = []
        for x, y, points in data:
            at = problem.basis(points[region])
            mean, sigma = bayesian_linear_regression(problem.basis(x), y, at)
            means.append(mean)
            sigmas.append(sigma)
        predictions[region] = (np.stack(means), np.stack(sigmas))
    return predictions


def deep_predictions(
    problem: RegressionProblem, method: str, settings: Settings, data: list
) -> dict[str, tuple[NDArray, NDArray]]:
    """Return region to (R, P) mean and standard deviation in the units of the problem.

    The network is given scaled inputs and standardised targets.
    """
    x = np.stack([inputs for inputs, _, _ in data])
    y = np.stack([targets for _, targets, _ in data])
    at = np.stack([np.concatenate([points["in"], points["out"]]) for _, _, points in data])
    shift = y.mean(1, keepdims=True)
    scale = y.std(1, keepdims=True)
    outputs, deviations = anchor_methods.predict(
        method,
        settings,
        0,
        torch.from_numpy(x / problem.limit).float(),
        torch.from_numpy((y - shift) / scale).float()[..., None],
        torch.from_numpy(problem.noise / scale[:, 0]).float(),
        torch.from_numpy(at / problem.limit).float(),
    )
    mean = outputs.numpy().astype(np.float64) * scale + shift
    sigma = deviations.numpy().astype(np.float64) * scale
    return {
        "in": (mean[:, :TEST_POINTS], sigma[:, :TEST_POINTS]),
        "out": (mean[:, TEST_POINTS:], sigma[:, TEST_POINTS:]),
    }


def compute(name: str, settings: Settings, seeds: int) -> dict[str, Any]:
    """Return region to quantity to one value per repetition, of one problem and method."""
    index, method = name.split("_", 1)
    problem = PROBLEMS[int(index)]
    data = draw(problem, ANCHOR_REPETITIONS if method == "anchor" else seeds)
    if method == "anchor":
        predictions = anchor_predictions(problem, data)
    else:
        predictions = deep_predictions(problem, method, settings, data)
    quantities = {}
    for region, (mean, sigma) in predictions.items():
        truth = np.stack([problem.function(points[region]) for _, _, points in data])
        quantities[region] = assess(mean, sigma, truth, problem.noise)
    return quantities


def plot_family(results: Results, problems: list[RegressionProblem]) -> figures.Figure:
    """Plot mean and standard deviation over repetitions against the problems of a family.

    One column per quantity, one row per region.
    """
    figure, axes = figures.panels(len(REGIONS), len(QUANTITIES), width=4.2, height=3.0)
    for row, (region, place) in zip(axes, REGIONS.items(), strict=True):
        for axis, (quantity, title) in zip(row, QUANTITIES.items(), strict=True):
            _plot_methods(axis, results, problems, region, quantity)
            axis.set(
                title=f"{title}, {place}",
                xlabel=problems[0].name.split("=")[0],
                yscale="linear" if quantity == "coverage" else "log",
            )
            axis.set_xticks([problem.level for problem in problems] if len(problems) > 1 else [])
            if quantity == "coverage":
                axis.axhline(0.95, color="0.6", linestyle=":", linewidth=1)
    axes[0, 0].legend(fontsize=6)
    return figure


def _plot_methods(
    axis: Axes, results: Results, problems: list[RegressionProblem], region: str, quantity: str
) -> None:
    for number, (method, color) in enumerate(zip(TITLES, figures.COLORS, strict=False)):
        values = [
            np.array(results[problem.name, method][region][quantity]) for problem in problems
        ]
        axis.errorbar(
            [problem.level + 0.06 * (number - 3) for problem in problems],
            [value.mean() for value in values],
            [value.std(ddof=1) for value in values],
            color=color,
            label=TITLES[method],
            marker="o",
            markersize=3,
            capsize=2,
            linewidth=1,
        )


def summarise(results: Results) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of mean and standard deviation over the repetitions.

    One row per problem, region and method.
    """
    header = ["problem", "points", "method", *QUANTITIES.values()]
    rows = []
    for region, place in REGIONS.items():
        for (problem, method), values in results.items():
            cells = [tables.mean_and_deviation(values[region][name], 2) for name in QUANTITIES]
            rows.append([problem, place, TITLES[method], *cells])
    return header, rows


def run(output: Path, seeds: int, quick: bool) -> None:
    """Write tables, summary.json and plots, from `seeds` data sets per problem (the anchor: 500).

    The files: table.md, table.csv, summary.json, e1.png, e2.png and e3.png.
    """
    settings = Settings(steps=200, members=3, passes=20) if quick else Settings()
    problems = QUICK_PROBLEMS if quick else PROBLEMS
    names = {}
    for problem in problems:
        for method in TITLES:
            names[f"{PROBLEMS.index(problem)}_{method}"] = (problem.name, method)
    pieces = resume(
        output / "results",
        names,
        {**asdict(settings), "seeds": seeds},
        lambda name: compute(name, settings, seeds),
        "anchor",
    )
    results = dict(zip(names.values(), pieces, strict=True))
    header, rows = summarise(results)
    intro = (
        f"{seeds} repetitions ({ANCHOR_REPETITIONS} of the anchor); mean ± standard deviation. "
        f"Quick run: {'yes' if quick else 'no'}.\n\n"
    )
    atomic.write_text(output / "table.md", intro + tables.markdown(header, rows))
    tables.write_table(output / "table.csv", header, rows)
    values: dict[str, dict[str, Any]] = {}
    for (problem_name, method), piece in results.items():
        values.setdefault(problem_name, {})[method] = piece
    strict_json.write(
        output / "summary.json",
        {"settings": asdict(settings), "seeds": seeds, "quick": quick, "results": values},
    )
    for family in ("E.1", "E.2", "E.3"):
        members = [problem for problem in problems if problem.name.startswith(family)]
        path = output / f"{family.lower().replace('.', '')}.png"
        figures.save(plot_family(results, members), path)
