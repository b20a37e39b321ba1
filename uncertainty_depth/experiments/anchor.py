# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Are deep uncertainties reliable where the right answer is known? (Schmähling et al. 2022, "A framework for benchmarking uncertainty in
deep regression").

Problems whose function is linear in its coefficients have an exact answer, Bayesian linear regression with the reference prior: the
anchor. Its uncertainty covers the true function at its nominal rate. Deep methods on the same data are compared by deviation from the true function,
uncertainty (both root mean squares, in units of the noise) and the share of points within 1.96 sigma, inside and outside the training
box, over repeated data sets. Problem families, methods and the network's shape are the paper's; the numbers that could not be looked up
(see `anchor_problems` and `anchor_methods.Settings`) were chosen here, so only the tendencies can be held against the paper.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
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
    "coverage": "share within 1.96 sigma",
    "deviation": "deviation / noise",
    "uncertainty": "uncertainty / noise",
}
REGIONS = {"in": "in distribution", "out": "out of distribution"}
ANCHOR_REPETITIONS = 500
TEST_POINTS = 200


def assess(mean: NDArray, sigma: NDArray, truth: NDArray, noise: float) -> dict[str, NDArray]:
    """The quantities of each repetition (R,), from (R, P) predictions and true values."""
    error = np.abs(mean - truth)
    return {
        "coverage": (error <= 1.96 * sigma).mean(1),
        "deviation": np.sqrt(np.square(error).mean(1)) / noise,
        "uncertainty": np.sqrt(np.square(sigma).mean(1)) / noise,
    }


def draw(
    problem: RegressionProblem, repetitions: int
) -> list[tuple[NDArray, NDArray, dict[str, NDArray]]]:
    """Training inputs, targets and test points of each repetition; the first of them do not depend on how many follow."""
    drawn = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, PROBLEMS.index(problem)])
        drawn.append((*problem.draw(rng), problem.test_points(rng, TEST_POINTS)))
    return drawn


def anchor_predictions(
    problem: RegressionProblem, x: NDArray, y: NDArray, at: NDArray
) -> tuple[NDArray, NDArray]:
    """(P,) mean and standard deviation of the exact answer."""
    return bayesian_linear_regression(problem.basis(x), y, problem.basis(at))


def deep_predictions(
    problem: RegressionProblem, method: str, settings: Settings, data: list
) -> dict[str, tuple[NDArray, NDArray]]:
    """Region to (R, P) mean and standard deviation in the problem's units; the network sees scaled inputs and standardised targets."""
    x, y = (np.stack(part) for part in zip(*[(x, y) for x, y, _ in data], strict=True))
    at = np.stack([np.concatenate([points["in"], points["out"]]) for _, _, points in data])
    shift = y.mean(1, keepdims=True)
    scale = y.std(1, keepdims=True)
    standard = (y - shift) / scale
    tensors = [
        torch.from_numpy(part).float()
        for part in (
            x / problem.limit,
            standard[..., None],
            problem.noise / scale[:, 0],
            at / problem.limit,
        )
    ]
    mean, sigma = (
        part.numpy().astype(np.float64) * scale
        for part in anchor_methods.predict(method, settings, 0, *tensors)
    )
    mean += shift
    return {
        "in": (mean[:, :TEST_POINTS], sigma[:, :TEST_POINTS]),
        "out": (mean[:, TEST_POINTS:], sigma[:, TEST_POINTS:]),
    }


def compute(name: str, settings: Settings, seeds: int) -> dict[str, Any]:
    """One problem and method: region to quantity to one value per repetition."""
    index, method = name.split("_", 1)
    problem = PROBLEMS[int(index)]
    data = draw(problem, ANCHOR_REPETITIONS if method == "anchor" else seeds)
    if method == "anchor":
        found = {
            region: _stack(
                anchor_predictions(problem, x, y, points[region]) for x, y, points in data
            )
            for region in REGIONS
        }
    else:
        found = deep_predictions(problem, method, settings, data)
    truth = {
        region: np.stack([problem.function(points[region]) for *_, points in data])
        for region in REGIONS
    }
    return {region: assess(*found[region], truth[region], problem.noise) for region in REGIONS}


def _stack(pairs: Any) -> tuple[NDArray, NDArray]:
    means, sigmas = zip(*pairs, strict=True)
    return np.stack(means), np.stack(sigmas)


def family_figure(found: dict, problems: list[RegressionProblem]) -> figures.Figure:
    """One column per quantity, one row per region; a family's problems along the axis, mean and standard deviation over repetitions."""
    figure, axes = figures.panels(len(REGIONS), len(QUANTITIES), width=4.2, height=3.0)
    for row, (region, place) in zip(axes, REGIONS.items(), strict=True):
        for axis, (quantity, title) in zip(row, QUANTITIES.items(), strict=True):
            for number, (method, color) in enumerate(zip(TITLES, figures.COLORS, strict=False)):
                values = [
                    np.array(found[problem.name, method][region][quantity]) for problem in problems
                ]
                at = [problem.level + 0.06 * (number - 3) for problem in problems]
                mean = [value.mean() for value in values]
                deviation = [value.std() for value in values]
                axis.errorbar(
                    at,
                    mean,
                    deviation,
                    color=color,
                    label=TITLES[method],
                    marker="o",
                    markersize=3,
                    capsize=2,
                    linewidth=1,
                )
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


def summarise(found: dict) -> tuple[list[str], list[list[str]]]:
    """Mean and standard deviation over the repetitions, one row per problem, region and method."""
    header = ["problem", "points", "method", *QUANTITIES.values()]
    rows = [
        [
            problem,
            REGIONS[region],
            TITLES[method],
            *(tables.mean_and_deviation(values[region][quantity], 2) for quantity in QUANTITIES),
        ]
        for region in REGIONS
        for (problem, method), values in found.items()
    ]
    return header, rows


def run(output: Path, seeds: int, quick: bool) -> None:
    """Write table.md, table.csv, summary.json, e1.png, e2.png, e3.png from `seeds` data sets per problem (the anchor: 500)."""
    settings = Settings(steps=200, members=3, passes=20) if quick else Settings()
    chosen = QUICK_PROBLEMS if quick else PROBLEMS
    names = [f"{PROBLEMS.index(problem)}_{method}" for problem in chosen for method in TITLES]
    results = resume(
        output / "results",
        names,
        {**asdict(settings), "seeds": seeds},
        lambda name: compute(name, settings, seeds),
        "anchor",
    )
    found = {
        (PROBLEMS[int(name.split("_")[0])].name, name.split("_", 1)[1]): result
        for name, result in zip(names, results, strict=True)
    }
    header, rows = summarise(found)
    intro = f"{seeds} repetitions ({ANCHOR_REPETITIONS} of the anchor); mean ± standard deviation. Quick run: {'yes' if quick else 'no'}.\n\n"
    atomic.write_text(output / "table.md", intro + tables.markdown(header, rows))
    tables.write_table(output / "table.csv", header, rows)
    values = {
        problem: {method: found[problem, method] for method in TITLES} for problem, _ in found
    }
    strict_json.write(
        output / "summary.json",
        {"settings": asdict(settings), "seeds": seeds, "quick": quick, "results": values},
    )
    for family in ("E.1", "E.2", "E.3"):
        problems = [problem for problem in chosen if problem.name.startswith(family)]
        figures.save(
            family_figure(found, problems), output / f"{family.lower().replace('.', '')}.png"
        )
