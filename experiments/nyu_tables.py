# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables of the methods in the NYU experiment, and their changes against the baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from experiments.nyu_methods import ROWS
from experiments.nyu_scores import Scores
from experiments.tables import finite, mean_and_deviation
from uncertainty_depth.metrics.registry import flatten

Table = tuple[list[str], list[list[str]]]
DEPTH = {"MAE (m)": "mae", "abs_rel": "abs_rel", "rmse (m)": "rmse"}
N_MERCI = {"n-MeRCI": "n_merci"}
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
BASELINE_KEYS = {
    "– constant sigma": "constant",
    "– sigma = depth": "proportional_to_depth",
}
COMPARED = ("constant", "proportional_to_depth")
"""A gain is quoted against the better of these."""
RELATIVE = {**AUSE, **N_MERCI}
"""Metrics that do not depend on the size of sigma."""
SAME_ORDER = 0.01
"""Rows whose AUSE differ by less than this fraction of the baseline's are ranked by AUCE."""


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
        depth = [metric_over_seeds(flat, f"depth.{key}") for key in DEPTH.values()]
        depth.append(over_seeds([score["greatest_depth_m"] for score in scores[name]]))
        times = [f"{seconds[name]['seconds']:.4f}", f"{seconds[name]['of_one_pass']:.2f}"]
        rows.append([row.title, str(len(flat)), *depth, *_metrics(flat, "uncertainty"), *times])
        for title, key in BASELINE_KEYS.items():
            cells = _metrics(flat, f"baselines.{key}")
            rows.append([title, "", *[""] * len(depth), *cells, "", ""])
    return header, rows


def _metrics(flat: Sequence[Mapping[str, float]], prefix: str) -> list[str]:
    return [metric_over_seeds(flat, f"{prefix}.{key}") for key in METRICS.values()]


def metric_over_seeds(flat: Sequence[Mapping[str, float]], key: str) -> str:
    """Return a metric's mean and deviation over the seeds; see `over_seeds`."""
    return over_seeds([seed[key] for seed in flat])


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
        rows.append([row.title, *changes(flat, RELATIVE)])
    return ["method", *RELATIVE], rows


def changes(flat: Sequence[Mapping[str, float | None]], metrics: Mapping[str, str]) -> list[str]:
    """Return the change of each metric over the seeds against the better baseline."""
    cells = []
    for key in metrics.values():
        cells.append(percent([ratio(seed, key) for seed in flat]))
    return cells


def ratio(flat: Mapping[str, float | None], key: str) -> float:
    """Return a metric over that of the better baseline; NaN if one is not known."""
    of_method = flat[f"uncertainty.{key}"]
    of_baselines = [flat[f"baselines.{name}.{key}"] for name in COMPARED]
    numbers = [value for value in of_baselines if value]
    return of_method / min(numbers) if of_method is not None and numbers else math.nan


def order_ratio(flat: Mapping[str, float | None]) -> float:
    """Return the mean over the three AUSE of `ratio`; below 1 sigma beats the baselines."""
    return float(np.mean([ratio(flat, key) for key in AUSE.values()]))


def percent(ratios: Sequence[float]) -> str:
    """Return the mean change and its deviation over the seeds, in percent."""
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
        "intervals with enough pixels",
        "n-MeRCI by depth: rank correlation",
        "MAE of 95 % by depth: rank correlation",
    ]
    rows = []
    for name, of_seeds in scores.items():
        intervals = [score["intervals"] for score in of_seeds]
        plain = over_seeds([interval["mean_plain"] for interval in intervals])
        mae = over_seeds([_mean_mae(interval) for interval in intervals])
        number = intervals[0]["intervals_with_enough"]
        enough = f"{number} of {len(intervals[0]['pixels'])}"
        trends = []
        for metric in ("plain", "mae_kept"):
            trends.append(
                over_seeds([_rank_correlation(interval, metric) for interval in intervals])
            )
        rows.append([ROWS[name].title, mae, plain, enough, *trends])
    return header, rows


def _mean_mae(intervals: Mapping[str, Any]) -> float:
    mae = np.array(intervals["mae_kept"], dtype=float)
    return float(np.nanmean(mae[np.array(intervals["pixels"]) >= intervals["enough"]]))


def _rank_correlation(intervals: Mapping[str, Any], metric: str) -> float:
    """Return Spearman's rank correlation of a metric with depth; NaN for one interval."""
    values = np.array(intervals[metric], dtype=float)
    is_scored = (np.array(intervals["pixels"]) >= intervals["enough"]) & np.isfinite(values)
    if is_scored.sum() < 2:
        return math.nan
    return float(spearmanr(np.flatnonzero(is_scored), values[is_scored]).statistic)


def ranking(scores: Scores) -> list[tuple[str, int, float]]:
    """Return the rows by `order_ratio` on the test split, then by AUCE, the best first.

    Returns:
        Name, its middle seed, and the ratio of that seed; rows without a finite ratio are last.
    """
    ranked = []
    for name in ROWS:
        flat = [flatten(score["summary"]) for score in scores[name]]
        ratios = [order_ratio(seed) for seed in flat]
        seed, value = middle_seed([math.inf if math.isnan(order) else order for order in ratios])
        sort_key = rank(value, flat[seed]["uncertainty.auce"])
        ranked.append((sort_key, (name, seed, value)))
    return [entry for _, entry in sorted(ranked, key=lambda row: row[0])]


def rank(order: float, auce: float | None) -> tuple[float, float]:
    """Return the sort key of rows: AUSE in steps of `SAME_ORDER`, then AUCE."""
    step = round(order / SAME_ORDER) if math.isfinite(order) else math.inf
    return step, math.inf if auce is None else auce


def middle_seed(values: Sequence[float]) -> tuple[int, float]:
    """Return the seed of the median, the lower one of two, and its value."""
    seed = sorted(range(len(values)), key=values.__getitem__)[(len(values) - 1) // 2]
    return seed, values[seed]
