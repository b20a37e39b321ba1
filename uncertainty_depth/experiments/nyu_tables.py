# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The tables of the NYU experiment: the methods, what they gain over sigma = depth, and the recipes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.experiments.nyu_ideal import Ideal
from uncertainty_depth.experiments.nyu_methods import ROWS
from uncertainty_depth.experiments.nyu_recipes import Question
from uncertainty_depth.experiments.nyu_scores import Scores
from uncertainty_depth.experiments.nyu_search import Found
from uncertainty_depth.experiments.tables import finite, mean_and_deviation

Table = tuple[list[str], list[list[str]]]
DEPTH = {"MAE (m)": "mae", "abs_rel": "abs_rel", "rmse (m)": "rmse"}
N_MERCI = {"n-MeRCI": "n_merci", "n-MeRCI withdrawn": "n_merci_withdrawn"}
AUSE = {
    f"AUSE {title}": f"ause.{name}"
    for title, name in (("abs_rel", "abs_rel"), ("rmse", "rmse"), ("1 - a1", "a1"))
}
AURG = {
    title.replace("AUSE", "AURG"): name.replace("ause", "aurg") for title, name in AUSE.items()
}
SIZED = {
    "AUCE": "auce",
    "AUCE (Laplace)": "auce_laplace",
    "coverage at 95 %": "coverage_95",
    "coverage at 95 % (Laplace)": "coverage_95_laplace",
    "NLL": "nll",
    "NLL (Laplace)": "nll_laplace",
}
FIGURES = {**AUSE, **SIZED, **N_MERCI, "Spearman": "spearman", **AURG}
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
"""Recipes whose AUSE differ by less than this fraction of the baseline's are told apart by AUCE."""


def main_table(scores: Scores, seconds: Mapping[str, Mapping[str, float]]) -> Table:
    """Each row with the two trivial baselines on its own depth."""
    header = [
        "method",
        "seeds",
        *DEPTH,
        "greatest depth (m)",
        *FIGURES,
        "s / frame",
        "of one pass",
    ]
    rows = []
    for name, row in ROWS.items():
        flat = [flatten(one["summary"]) for one in scores[name]]
        taken = seconds[name]
        depth = [
            *(_over_seeds(flat, f"depth.{key}") for key in DEPTH.values()),
            over_seeds([one["greatest_depth_m"] for one in scores[name]]),
        ]
        times = [f"{taken['seconds']:.4f}", f"{taken['of_one_pass']:.2f}"]
        rows.append([row.title, str(len(flat)), *depth, *_figures(flat, "uncertainty"), *times])
        rows += [
            [title, "", *[""] * len(depth), *_figures(flat, f"baselines.{key}"), "", ""]
            for title, key in BASELINES.items()
        ]
    return header, rows


def _figures(flat: Sequence[Mapping[str, float]], prefix: str) -> list[str]:
    return [_over_seeds(flat, f"{prefix}.{key}") for key in FIGURES.values()]


def _over_seeds(flat: Sequence[Mapping[str, float]], key: str) -> str:
    return over_seeds([one[key] for one in flat])


def over_seeds(values: Sequence[float | None]) -> str:
    """Mean and standard deviation, or the one value; seeds whose value is missing or infinite (None in JSON) are left out and counted."""
    known, left_out = finite(values)
    if not known.size:
        return "–"
    digits = 3 if np.abs(known).max() < 100 else 0
    return (
        mean_and_deviation(known, digits) if known.size > 1 else f"{known[0]:.{digits}f}"
    ) + left_out


def change_table(scores: Scores) -> Table:
    """Change of each metric against the better baseline on the same depth, percent.

    Mean and standard deviation over the seeds; below 0 is better.
    """
    rows = []
    for name, row in ROWS.items():
        summaries = [flatten(one["summary"]) for one in scores[name]]
        changes = [_percent(*(ratio(one, key) for one in summaries)) for key in RELATIVE.values()]
        rows.append([row.title, *changes])
    return ["method", *RELATIVE], rows


def ratio(flat: Mapping[str, float | None], key: str) -> float:
    """A metric of the method over that of the better baseline; NaN where one is not known."""
    of_method = flat[f"uncertainty.{key}"]
    of_baselines = [flat[f"baselines.{name}.{key}"] for name in COMPARED]
    known = [value for value in of_baselines if value]
    return of_method / min(known) if of_method is not None and known else math.nan


def order_ratio(flat: Mapping[str, float | None]) -> float:
    """The mean over the three AUSE of the ratio to the better baseline: below 1 it has an order."""
    return float(np.mean([ratio(flat, key) for key in AUSE.values()]))


def _percent(*of_baseline: float) -> str:
    change, left_out = finite(100 * (np.array(of_baseline) - 1))
    if not change.size:
        return "–"
    return (
        f"{change.mean():+.0f}"
        + (f" ± {change.std(ddof=1):.0f} %" if change.size > 1 else " %")
        + left_out
    )


def interval_table(scores: Scores) -> Table:
    """The figure that the paper gives in brackets: the mean over the depth intervals with enough pixels."""
    header = [
        "method",
        "n-MeRCI, mean over intervals",
        "n-MeRCI withdrawn, mean over intervals",
        "intervals with enough pixels",
    ]
    rows = []
    for name, row in ROWS.items():
        intervals = [one["intervals"] for one in scores[name]]
        means = [
            over_seeds([one[key] for one in intervals]) for key in ("mean_plain", "mean_withdrawn")
        ]
        rows.append(
            [
                row.title,
                *means,
                f"{intervals[0]['intervals_with_enough']} of {len(intervals[0]['pixels'])}",
            ]
        )
    return header, rows


def ranking(scores: Scores) -> list[tuple[str, int, float]]:
    """Rows by `order_ratio` on the test split, then by AUCE; what is not finite is last.

    Returns:
        Name, its middle seed, and that seed's ratio.
    """
    found = []
    for name in ROWS:
        flat = [flatten(one["summary"]) for one in scores[name]]
        seed, value = middle_seed([_infinite_if_unknown(order_ratio(one)) for one in flat])
        rank = _rank(value, flat[seed]["uncertainty.auce"])
        found.append((rank, (name, seed, value)))
    return [entry for _, entry in sorted(found, key=lambda ranked: ranked[0])]


def _rank(order: float, auce: float | None) -> tuple[float, float]:
    """What rows and recipes are sorted by: AUSE in steps of `SAME_ORDER`, then AUCE."""
    step = round(order / SAME_ORDER) if math.isfinite(order) else math.inf
    return step, math.inf if auce is None else auce


def _infinite_if_unknown(value: float) -> float:
    return math.inf if math.isnan(value) else value


def middle_seed(values: Sequence[float]) -> tuple[int, float]:
    """The seed of the median, the lower one of two, and its value."""
    seed = sorted(range(len(values)), key=values.__getitem__)[(len(values) - 1) // 2]
    return seed, values[seed]


def search_table(questions: Sequence[Question], found: Found) -> Table:
    """Every answer to every question: held-out frames, which decide, and the test split beside."""
    shown = {
        "abs_rel": "depth.abs_rel",
        "n-MeRCI": "uncertainty.n_merci",
        "AUCE": "uncertainty.auce",
        "Spearman": "uncertainty.spearman",
    }
    columns = [f"{part}: {title}" for part in ("held out", "test") for title in RECIPE_COLUMNS]
    rows = []
    for question in questions:
        seeds = common_seeds(question, found)
        for answer, recipe in question.answers.items():
            held_out = [flatten(one["validation"]) for one in found[recipe.key][:seeds]]
            test = [flatten(one["test"]) for one in found[recipe.key][:seeds]]
            rest = [_over_seeds(test, key) for key in shown.values()]
            judged = [*_judged(held_out), *_judged(test)]
            rows.append([question.title, answer, str(len(test)), *judged, *rest])
    return ["question", "answer", "seeds", *columns, *(f"test: {name}" for name in shown)], rows


def common_seeds(question: Question, found: Found) -> int:
    """How many seeds, from 0 on, all answers were trained with: like is compared with like."""
    return min(len(found[recipe.key]) for recipe in question.answers.values())


def _judged(flat: Sequence[Mapping[str, float]]) -> list[str]:
    """Cells of `RECIPE_COLUMNS`."""
    changes = [_percent(*(ratio(one, key) for one in flat)) for key in AUSE.values()]
    return [
        *changes,
        _percent(*(order_ratio(one) for one in flat)),
        _over_seeds(flat, "uncertainty.auce"),
    ]


def calibration_table(questions: Sequence[Question], found: Found) -> Table:
    """Maps of sigma that were fitted on the held-out frames, scored on the test split."""
    shown = {"AUSE rmse": "ause.rmse", **SIZED, **N_MERCI, "Spearman": "spearman"}
    rows = []
    for question in questions:
        for answer, recipe in question.answers.items() if question.calibrated else ():
            for kind, summaries in _maps(found[recipe.key]).items():
                flat = [flatten(summary["uncertainty"]) for summary in summaries]
                rows.append(
                    [
                        answer,
                        kind,
                        str(len(flat)),
                        *(_over_seeds(flat, key) for key in shown.values()),
                    ]
                )
    return ["sigma", "map", "seeds", *shown], rows


def _maps(scores: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Kind of map to the summaries of all seeds; what was chosen is named, once per seed."""
    maps = {kind: [one["calibrated"][kind] for one in scores] for kind in scores[0]["calibrated"]}
    chosen = ", ".join(one["chosen_kind"] for one in scores)
    return {
        "none": [one["test"] for one in scores],
        **{
            f"chosen ({chosen})" if kind == "chosen" else kind: each for kind, each in maps.items()
        },
    }


def ideal_table(found: Ideal) -> Table:
    """Change against the better baseline, of the measured truth and of one drawn from sigma."""
    keys = RELATIVE
    rows = []
    for title, scores in found.items():
        for truth in scores[0]:
            flat = [flatten(one[truth]) for one in scores]
            rows.append(
                [
                    title,
                    truth,
                    str(len(flat)),
                    *(_percent(*(ratio(one, key) for one in flat)) for key in keys.values()),
                ]
            )
    return ["sigma", "truth", "seeds", *keys], rows


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


def winner(questions: Sequence[Question], found: Found) -> Winner:
    """The recipe with the smallest AUSE against the better baseline, then the smallest AUCE.

    On the held-out frames: AUSE is the mean of its three statistics and over the seeds.
    """
    answers = [
        (question.title, answer, recipe.key)
        for question in questions
        for answer, recipe in question.answers.items()
    ]
    held_out = {key: mean_judgement(scores, "validation") for key, scores in found.items()}
    known = [one for one in answers if all(map(math.isfinite, held_out[one[2]].values()))]
    title, answer, key = min(known, key=lambda one: _rank(*held_out[one[2]].values()))
    test = mean_judgement(found[key], "test")
    return Winner(title, answer, len(found[key]), held_out[key], test)


def mean_judgement(scores: Sequence[Mapping[str, Any]], part: str) -> dict[str, float]:
    """What recipes are ranked by, the mean over the seeds; NaN where a seed has none."""
    flat = [flatten(one[part]) for one in scores]
    auces = [one["uncertainty.auce"] for one in flat]
    return {
        "mean AUSE": float(np.mean([order_ratio(one) for one in flat])),
        "AUCE": float(np.mean([math.nan if auce is None else auce for auce in auces])),
    }
