# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables of the NYU experiment: methods, changes against the baselines, and recipes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.experiments.nyu_ideal import Ideal
from uncertainty_depth.experiments.nyu_methods import ROWS
from uncertainty_depth.experiments.nyu_recipes import Question
from uncertainty_depth.experiments.nyu_scores import Scores
from uncertainty_depth.experiments.nyu_search import RecipeScores
from uncertainty_depth.experiments.tables import finite, mean_and_deviation

Table = tuple[list[str], list[list[str]]]
DEPTH = {"MAE (m)": "mae", "abs_rel": "abs_rel", "rmse (m)": "rmse"}
N_MERCI = {"n-MeRCI": "n_merci", "n-MeRCI withdrawn": "n_merci_withdrawn"}
AUSE = {"AUSE abs_rel": "ause.abs_rel", "AUSE rmse": "ause.rmse", "AUSE 1 - a1": "ause.a1"}
AURG = {"AURG abs_rel": "aurg.abs_rel", "AURG rmse": "aurg.rmse", "AURG 1 - a1": "aurg.a1"}
SIZED = {
    "AUCE": "auce",
    "AUCE (Laplace)": "auce_laplace",
    "coverage at 95 %": "coverage_95",
    "coverage at 95 % (Laplace)": "coverage_95_laplace",
    "NLL": "nll",
    "NLL (Laplace)": "nll_laplace",
}
METRICS = {**AUSE, **SIZED, **N_MERCI, "Spearman": "spearman", **AURG}
BASELINES = {
    "– constant sigma": "constant",
    "– sigma = depth": "proportional_to_depth",
    "– sigma = depth x noise": "proportional_to_depth_noisy",
}
COMPARED = ("constant", "proportional_to_depth")
"""A gain is quoted against the better of these."""
RELATIVE = {**AUSE, **N_MERCI}
"""Metrics that do not depend on the size of sigma."""
RECIPE_COLUMNS = (*(f"{title}, change" for title in AUSE), "mean AUSE, change", "AUCE")
SAME_ORDER = 0.01
"""Recipes whose AUSE differ by less than this fraction of the baseline's are ranked by AUCE."""


def main_table(scores: Scores, seconds: Mapping[str, Mapping[str, float]]) -> Table:
    """Return each row with the trivial baselines on its own depth."""
    header = [
        "method",
        "seeds",
        *DEPTH,
        "max depth (m)",
        *METRICS,
        "s / frame",
        "of one pass",
    ]
    rows = []
    for name, row in ROWS.items():
        flat = [flatten(score["summary"]) for score in scores[name]]
        depth = [_over_seeds(flat, f"depth.{key}") for key in DEPTH.values()]
        depth.append(over_seeds([score["greatest_depth_m"] for score in scores[name]]))
        times = [f"{seconds[name]['seconds']:.4f}", f"{seconds[name]['of_one_pass']:.2f}"]
        rows.append([row.title, str(len(flat)), *depth, *_metrics(flat, "uncertainty"), *times])
        for title, key in BASELINES.items():
            cells = _metrics(flat, f"baselines.{key}")
            rows.append([title, "", *[""] * len(depth), *cells, "", ""])
    return header, rows


def _metrics(flat: Sequence[Mapping[str, float]], prefix: str) -> list[str]:
    return [_over_seeds(flat, f"{prefix}.{key}") for key in METRICS.values()]


def _over_seeds(flat: Sequence[Mapping[str, float]], key: str) -> str:
    return over_seeds([one[key] for one in flat])


def over_seeds(values: Sequence[float | None]) -> str:
    """Return mean and sample standard deviation, or the only value.

    Seeds whose value is missing or infinite (None in JSON) are left out and counted.
    """
    numbers, left_out = finite(values)
    if not numbers.size:
        return "–"
    digits = 3 if np.abs(numbers).max() < 100 else 0
    return mean_and_deviation(numbers, digits) + left_out


def change_table(scores: Scores) -> Table:
    """Return the change of each metric against the better baseline on the same depth, percent.

    Mean and sample standard deviation over the seeds; below 0 is better.
    """
    rows = []
    for name, row in ROWS.items():
        flat = [flatten(score["summary"]) for score in scores[name]]
        rows.append([row.title, *_changes(flat, RELATIVE)])
    return ["method", *RELATIVE], rows


def _changes(flat: Sequence[Mapping[str, float | None]], metrics: Mapping[str, str]) -> list[str]:
    """Return the change of each metric over the seeds against the better baseline."""
    cells = []
    for key in metrics.values():
        cells.append(_percent([ratio(seed, key) for seed in flat]))
    return cells


def ratio(flat: Mapping[str, float | None], key: str) -> float:
    """Return a metric over that of the better baseline; NaN where one is not known."""
    of_method = flat[f"uncertainty.{key}"]
    of_baselines = [flat[f"baselines.{name}.{key}"] for name in COMPARED]
    numbers = [value for value in of_baselines if value]
    return of_method / min(numbers) if of_method is not None and numbers else math.nan


def order_ratio(flat: Mapping[str, float | None]) -> float:
    """Return the mean over the three AUSE of `ratio`; below 1 sigma beats the baselines."""
    return float(np.mean([ratio(flat, key) for key in AUSE.values()]))


def _percent(ratios: Sequence[float]) -> str:
    change, left_out = finite(100 * (np.array(ratios) - 1))
    if not change.size:
        return "–"
    deviation = f" ± {change.std(ddof=1):.0f}" if change.size > 1 else ""
    return f"{change.mean():+.0f}{deviation} %{left_out}"


def interval_table(scores: Scores) -> Table:
    """Return means over depth intervals with enough pixels, the paper's brackets.

    And the rank correlation of n-MeRCI and of the MAE with depth, over these intervals: the paper
    says that both worsen with depth, which is a positive one.
    """
    header = [
        "method",
        "MAE of 95 % of the pixels (m), mean over intervals",
        "n-MeRCI, mean over intervals",
        "n-MeRCI withdrawn, mean over intervals",
        "intervals with enough pixels",
        "n-MeRCI by depth: rank correlation",
        "MAE of 95 % by depth: rank correlation",
    ]
    rows = []
    for name, of_seeds in scores.items():
        intervals = [score["intervals"] for score in of_seeds]
        plain = over_seeds([one["mean_plain"] for one in intervals])
        withdrawn = over_seeds([one["mean_withdrawn"] for one in intervals])
        kept = over_seeds([_mean_kept(one) for one in intervals])
        number = intervals[0]["intervals_with_enough"]
        enough = f"{number} of {len(intervals[0]['pixels'])}"
        trends = []
        for metric in ("plain", "mae_kept"):
            trends.append(over_seeds([_rank_correlation(one, metric) for one in intervals]))
        rows.append([ROWS[name].title, kept, plain, withdrawn, enough, *trends])
    return header, rows


def _mean_kept(intervals: Mapping[str, Any]) -> float:
    kept = np.array(intervals["mae_kept"], dtype=float)
    return float(np.nanmean(kept[np.array(intervals["pixels"]) >= intervals["enough"]]))


def _rank_correlation(intervals: Mapping[str, Any], metric: str) -> float:
    """Return Spearman's rank correlation of a metric with depth; NaN for one interval."""
    values = np.array(intervals[metric], dtype=float)
    chosen = (np.array(intervals["pixels"]) >= intervals["enough"]) & np.isfinite(values)
    if chosen.sum() < 2:
        return math.nan
    return float(spearmanr(np.flatnonzero(chosen), values[chosen]).statistic)


def ranking(scores: Scores) -> list[tuple[str, int, float]]:
    """Return the rows by `order_ratio` on the test split, then by AUCE, the best first.

    Returns:
        Name, its middle seed, and the ratio of that seed; rows without a finite ratio are last.
    """
    ranked = []
    for name in ROWS:
        flat = [flatten(score["summary"]) for score in scores[name]]
        ratios = [order_ratio(seed) for seed in flat]
        seed, value = middle_seed([math.inf if math.isnan(one) else one for one in ratios])
        rank = _rank(value, flat[seed]["uncertainty.auce"])
        ranked.append((rank, (name, seed, value)))
    return [entry for _, entry in sorted(ranked, key=lambda row: row[0])]


def _rank(order: float, auce: float | None) -> tuple[float, float]:
    """Return the sort key of rows and recipes: AUSE in steps of `SAME_ORDER`, then AUCE."""
    step = round(order / SAME_ORDER) if math.isfinite(order) else math.inf
    return step, math.inf if auce is None else auce


def middle_seed(values: Sequence[float]) -> tuple[int, float]:
    """Return the seed of the median, the lower one of two, and its value."""
    seed = sorted(range(len(values)), key=values.__getitem__)[(len(values) - 1) // 2]
    return seed, values[seed]


def search_table(questions: Sequence[Question], scores: RecipeScores) -> Table:
    """Return all answers to all questions: held-out frames, which decide, and the test split."""
    test_metrics = {
        "abs_rel": "depth.abs_rel",
        "n-MeRCI": "uncertainty.n_merci",
        "AUCE": "uncertainty.auce",
        "Spearman": "uncertainty.spearman",
    }
    columns = [f"held out: {title}" for title in RECIPE_COLUMNS]
    columns += [f"test: {title}" for title in RECIPE_COLUMNS]
    rows = []
    for question in questions:
        seeds = common_seeds(question, scores)
        for answer, recipe in question.answers.items():
            held_out = [flatten(score["validation"]) for score in scores[recipe.key][:seeds]]
            test = [flatten(score["test"]) for score in scores[recipe.key][:seeds]]
            cells = [*_recipe_cells(held_out), *_recipe_cells(test)]
            cells += [_over_seeds(test, key) for key in test_metrics.values()]
            rows.append([question.title, answer, str(len(test)), *cells])
    columns += [f"test: {name}" for name in test_metrics]
    return ["question", "answer", "seeds", *columns], rows


def common_seeds(question: Question, scores: RecipeScores) -> int:
    """Return how many seeds, from 0 on, all answers to the question were trained with."""
    return min(len(scores[recipe.key]) for recipe in question.answers.values())


def _recipe_cells(flat: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the cells of `RECIPE_COLUMNS`."""
    mean_change = _percent([order_ratio(seed) for seed in flat])
    return [*_changes(flat, AUSE), mean_change, _over_seeds(flat, "uncertainty.auce")]


def calibration_table(questions: Sequence[Question], scores: RecipeScores) -> Table:
    """Return the scores on the test split of maps fitted on the held-out frames."""
    metrics = {"AUSE rmse": "ause.rmse", **SIZED, **N_MERCI, "Spearman": "spearman"}
    rows = []
    for question in questions:
        for answer, recipe in question.answers.items() if question.calibrated else ():
            for name, summaries in _maps(scores[recipe.key]).items():
                flat = [flatten(summary["uncertainty"]) for summary in summaries]
                cells = [_over_seeds(flat, key) for key in metrics.values()]
                rows.append([answer, name, str(len(flat)), *cells])
    return ["sigma", "map", "seeds", *metrics], rows


def _maps(scores: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return map to the summaries of all seeds; the chosen map is named, once per seed."""
    names = ", ".join(score["chosen_kind"] for score in scores)
    summaries = {"none": [score["test"] for score in scores]}
    for name in scores[0]["calibrated"]:
        title = f"chosen ({names})" if name == "chosen" else name
        summaries[title] = [score["calibrated"][name] for score in scores]
    return summaries


def ideal_table(scores: Ideal) -> Table:
    """Return the change against the better baseline, with measured and with drawn truth."""
    rows = []
    for title, of_seeds in scores.items():
        for truth in of_seeds[0]:
            flat = [flatten(score[truth]) for score in of_seeds]
            rows.append([title, truth, str(len(flat)), *_changes(flat, RELATIVE)])
    return ["sigma", "truth", "seeds", *RELATIVE], rows


class Winner(NamedTuple):
    """The best recipe, by the held-out frames alone.

    Attributes:
        question: that it answers.
        answer: its name there.
        seeds: that it was trained with.
        held_out: mean over the seeds of `order_ratio` and of AUCE.
        test: the same on the test split.
    """

    question: str
    answer: str
    seeds: int
    held_out: dict[str, float]
    test: dict[str, float]


def winner(questions: Sequence[Question], scores: RecipeScores) -> Winner:
    """Return the recipe with the smallest AUSE against the better baseline, then smallest AUCE.

    On the held-out frames: AUSE is the mean of its three statistics and over the seeds.
    """
    candidates = []
    for question in questions:
        for answer, recipe in question.answers.items():
            held_out = mean_judgement(scores[recipe.key], "validation")
            if all(math.isfinite(value) for value in held_out.values()):
                test = mean_judgement(scores[recipe.key], "test")
                seeds = len(scores[recipe.key])
                candidates.append(Winner(question.title, answer, seeds, held_out, test))
    return min(candidates, key=lambda one: _rank(one.held_out["mean AUSE"], one.held_out["AUCE"]))


def mean_judgement(scores: Sequence[Mapping[str, Any]], part: str) -> dict[str, float]:
    """Return what recipes are ranked by, the mean over the seeds; NaN where a seed has none."""
    flat = [flatten(score[part]) for score in scores]
    auces = [seed["uncertainty.auce"] for seed in flat]
    return {
        "mean AUSE": float(np.mean([order_ratio(seed) for seed in flat])),
        "AUCE": float(np.mean([math.nan if auce is None else auce for auce in auces])),
    }
