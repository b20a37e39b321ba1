# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Reliability of deep uncertainties on problems with a known answer.

Schmähling et al. 2021, "A framework for benchmarking uncertainty in deep regression". Problems
whose function is linear in its coefficients have an exact answer, Bayesian linear regression: the
anchor. For each test input, over training sets that differ in the noise alone: the deviation from
the true function, the uncertainty, and the coverage, the fraction of the repetitions in which the
deviation is smaller than 1.96 times the uncertainty. What the text leaves open and how it was
decided stands in experiments/docs/anchor.md.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from experiments import anchor_figures, anchor_methods, figures, tables
from experiments.anchor_methods import METHOD_TITLES, Settings
from experiments.anchor_problems import (
    PROBLEMS,
    QUICK_PROBLEMS,
    TRAINING_LIMIT,
    WITHOUT_2_PI,
    RegressionProblem,
    bayesian_linear_regression,
)
from experiments.runner import resume
from uncertainty_depth.core import atomic, strict

TITLES = {"anchor": "anchor (BLR)", **METHOD_TITLES}
ANCHOR_REPETITIONS = 500
FACTOR = 1.96
MEMBER_COUNTS = (2, 3, 5, 8, 10, 15, 20, 30)
"""Numbers of members whose coverage is stored: the first ones of those that were trained."""
Results = dict[tuple[str, str], dict[str, Any]]
"""(problem, method) to what `assess` returns."""


def assess(mean: NDArray, sigma: NDArray, truth: NDArray) -> dict[str, Any]:
    """Return the three quantities of each test input over the repetitions.

    Args:
        mean: (R, P) predictions.
        sigma: (R, P) uncertainties.
        truth: (P,) the true function.

    Returns:
        For each of the P inputs: mean and standard error of `deviation` and `uncertainty`,
        `coverage`, and `rmse` over the repetitions; `prediction` and `sigma` of the first
        repetition; `repetitions`.
    """
    deviation = np.abs(mean - truth)
    root = np.sqrt(len(mean))
    return {
        "deviation": deviation.mean(0),
        "deviation_error": deviation.std(0, ddof=1) / root,
        "uncertainty": sigma.mean(0),
        "uncertainty_error": sigma.std(0, ddof=1) / root,
        "coverage": (deviation < FACTOR * sigma).mean(0),
        "rmse": np.sqrt(np.square(deviation).mean(0)),
        "prediction": mean[0],
        "sigma": sigma[0],
        "repetitions": len(mean),
    }


def anchor_predictions(problem: RegressionProblem, repetitions: int) -> tuple[NDArray, NDArray]:
    """Return (R, P) mean and standard deviation of the exact answer."""
    mean, sigma = bayesian_linear_regression(
        problem.basis(problem.training_inputs()),
        problem.targets(repetitions),
        problem.basis(problem.at),
        problem.noise,
    )
    return mean, np.broadcast_to(sigma, mean.shape)


def deep_predictions(
    problem: RegressionProblem, method: str, settings: Settings, repetitions: int
) -> NDArray:
    """Return the predictions (R, M, P) of M members or passes; nothing is scaled for them."""
    predictions = anchor_methods.predict(
        method,
        settings,
        torch.from_numpy(problem.training_inputs()).float(),
        torch.from_numpy(problem.targets(repetitions)).float(),
        problem.noise,
        torch.from_numpy(problem.at).float(),
        settings.epochs * problem.level,
        2 * TRAINING_LIMIT,
    )
    return predictions.double().numpy()


def compute(name: str, settings: Settings, seeds: int) -> dict[str, Any]:
    """Return the assessment of one problem and method, from `seeds` repetitions.

    A costly problem has its share of them and of the members, at least two and three. Beside what
    `assess` returns: `members`, 1 of a dropout; and `by_members`, of an ensemble, the fraction of
    the inputs in distribution that each repetition covers, by the number of members.
    """
    problem_name, method = name.rsplit(" ", 1)
    problem = next(problem for problem in PROBLEMS if problem.name == problem_name)
    truth = problem.function(problem.at)
    if method == "anchor":
        return assess(*anchor_predictions(problem, ANCHOR_REPETITIONS), truth)
    own = replace(settings, members=max(settings.members // problem.share, 3))
    predictions = deep_predictions(problem, method, own, max(seeds // problem.share, 2))
    values = assess(predictions.mean(1), predictions.std(1, ddof=1), truth)
    values["members"] = anchor_methods.members(method, own)
    if values["members"] > 1:
        values["by_members"] = _by_members(predictions, truth, problem.is_inside())
    return values


def _by_members(
    predictions: NDArray, truth: NDArray, mask: NDArray[np.bool_]
) -> dict[str, NDArray]:
    coverages = {}
    for count in MEMBER_COUNTS:
        if count <= predictions.shape[1]:
            first = predictions[:, :count, mask]
            deviation = np.abs(first.mean(1) - truth[mask])
            coverages[str(count)] = (deviation < FACTOR * first.std(1, ddof=1)).mean(1)
    return coverages


def binomial_error(coverage: float, repetitions: int) -> float:
    """Return the standard error of a coverage, sqrt(p (1 - p) / k), as the paper has it."""
    return float(np.sqrt(coverage * (1 - coverage) / repetitions))


def per_input(
    results: Results, problems: list[RegressionProblem]
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: the paper's inputs (figures 3 and 6), one row per method."""
    header = ["problem", "input", "method", "deviation", "uncertainty", "coverage"]
    rows = []
    for problem in problems:
        for name, index in problem.inputs.items():
            for method, title in TITLES.items():
                values = results[problem.name, method]
                rows.append([problem.name, name, title, *_cells(values, index)])
    return header, rows


def _cells(values: dict[str, Any], index: int) -> list[str]:
    cells = []
    for quantity in ("deviation", "uncertainty"):
        mean = values[quantity][index]
        cells.append(f"{mean:.2f} ± {values[f'{quantity}_error'][index]:.2f}")
    coverage = values["coverage"][index]
    error = binomial_error(coverage, values["repetitions"])
    return [*cells, f"{coverage:.2f} ± {error:.2f}"]


def over_inputs(
    results: Results, problems: list[RegressionProblem]
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: means over all test inputs in and out of distribution.

    The last column tests Lemma 1: among the inputs at which a method's mean uncertainty is below
    the anchor's, the fraction at which it is also below the method's root mean squared error.
    """
    header = ["problem", "inputs", "method", "deviation", "uncertainty", "coverage"]
    header += ["uncertainty below the anchor's", "of these, below the method's rmse"]
    rows = []
    for problem in problems:
        inside = problem.is_inside()
        anchor = np.array(results[problem.name, "anchor"]["uncertainty"])
        for place, mask in (("in distribution", inside), ("out of distribution", ~inside)):
            for method, title in TITLES.items():
                values = results[problem.name, method]
                row = [f"{np.array(values[name])[mask].mean():.2f}" for name in header[3:6]]
                lemma = _lemma(values, anchor, mask) if method != "anchor" else ["", ""]
                rows.append([problem.name, place, title, *row, *lemma])
    return header, rows


def _lemma(values: dict[str, Any], anchor: NDArray, mask: NDArray[np.bool_]) -> list[str]:
    uncertainty = np.array(values["uncertainty"])
    is_below = mask & (uncertainty < anchor)
    if not is_below.any():
        return ["0.00", ""]
    is_too_small = uncertainty[is_below] < np.array(values["rmse"])[is_below]
    return [f"{is_below[mask].mean():.2f}", f"{is_too_small.mean():.2f}"]


def coverage_by_members(
    results: Results, problems: list[RegressionProblem]
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: coverage in distribution by the number of members.

    Mean over the repetitions and its standard error.
    """
    header = ["problem", "method", "repetitions", *map(str, MEMBER_COUNTS)]
    rows = []
    for problem in problems:
        for method, title in METHOD_TITLES.items():
            values = results[problem.name, method]
            if by_members := values.get("by_members"):
                cells = [
                    _mean_and_error(by_members[str(count)]) if str(count) in by_members else ""
                    for count in MEMBER_COUNTS
                ]
                rows.append([problem.name, title, str(values["repetitions"]), *cells])
    return header, rows


def _mean_and_error(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}"


def run(output: Path, seeds: int, quick: bool) -> None:
    """Write tables, summary.json and plots, from `seeds` training sets (the anchor: 500).

    The files: table.md, table.csv, inputs.csv, members.csv, summary.json, e1.png, e1_without.png
    and e2.png (the quantities against the complexity), members.png, predictions_*.png, and
    maps.png. They are written anew after each problem, from all that are finished.
    """
    settings = Settings(members=4, passes=20, epochs=100) if quick else Settings()
    results: Results = {}
    finished: list[RegressionProblem] = []
    for problem in QUICK_PROBLEMS if quick else PROBLEMS:
        pieces = resume(
            output / "results",
            [f"{problem.name} {method}" for method in TITLES],
            {**asdict(settings), "seeds": seeds},
            lambda name: compute(name, settings, seeds),
            problem.name,
        )
        results |= {
            (problem.name, method): piece for method, piece in zip(TITLES, pieces, strict=True)
        }
        finished = sorted([*finished, problem], key=lambda each: each.name)
        _write_tables(output, results, finished, settings, quick)
        _write_figures(output, results, finished)


def _write_figures(output: Path, results: Results, problems: list[RegressionProblem]) -> None:
    for family, members in groupby(problems, lambda problem: problem.name.rpartition(" ")[0]):
        own = list(members)
        if family:  # not E.3, whose inputs are a map
            name = {WITHOUT_2_PI: "e1_without"}.get(family, family.lower().replace(".", ""))
            figures.save(anchor_figures.quantities(results, own, TITLES), output / f"{name}.png")
            path = output / f"predictions_{name}_{own[0].level}.png"
            figures.save(anchor_figures.predictions(results, own[0], TITLES), path)
        else:
            figures.save(anchor_figures.maps(results, own[0], TITLES), output / "maps.png")
    figures.save(anchor_figures.members(results, problems, TITLES), output / "members.png")


def _write_tables(
    output: Path,
    results: Results,
    problems: list[RegressionProblem],
    settings: Settings,
    quick: bool,
) -> None:
    header, rows = over_inputs(results, problems)
    input_header, input_rows = per_input(results, problems)
    member_header, member_rows = coverage_by_members(results, problems)
    counts = {}
    for problem in problems:
        largest = results[problem.name, "ensemble"]
        counts[problem.name] = {key: largest[key] for key in ("repetitions", "members")}
    intro = (
        f"Sizes: {counts} ({ANCHOR_REPETITIONS} repetitions of the anchor). Quick run: {quick}."
    )
    parts = [
        intro,
        tables.markdown(header, rows),
        tables.markdown(input_header, input_rows),
        tables.markdown(member_header, member_rows),
    ]
    atomic.write_text(output / "table.md", "\n\n".join(parts))
    tables.write_table(output / "members.csv", member_header, member_rows)
    tables.write_table(output / "table.csv", header, rows)
    tables.write_table(output / "inputs.csv", input_header, input_rows)
    values: dict[str, dict[str, Any]] = {}
    for (problem_name, method), piece in results.items():
        values.setdefault(problem_name, {})[method] = piece
    strict.write_json(
        output / "summary.json",
        {"settings": asdict(settings), "sizes": counts, "quick": quick, "results": values},
    )
