# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables of the recipes in the NYU experiment, their calibrations, and the best of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.nyu_ideal import Ideal
from experiments.nyu_recipes import Question
from experiments.nyu_search import RecipeScores
from experiments.nyu_tables import (
    AUSE,
    N_MERCI,
    RELATIVE,
    SIZED,
    Table,
    changes,
    metric_over_seeds,
    order_ratio,
    percent,
    rank,
)
from uncertainty_depth.metrics.registry import flatten

COLUMNS = (*(f"{title}, change" for title in AUSE), "mean AUSE, change", "AUCE")


def search_table(questions: Sequence[Question], scores: RecipeScores) -> Table:
    """Return all answers to all questions: held-out frames, which decide, and the test split."""
    test_metrics = {
        "abs_rel": "depth.abs_rel",
        "n-MeRCI": "uncertainty.n_merci",
        "AUCE": "uncertainty.auce",
        "Spearman": "uncertainty.spearman",
    }
    columns = [f"held out: {title}" for title in COLUMNS]
    columns += [f"test: {title}" for title in COLUMNS]
    rows = []
    for question in questions:
        seeds = common_seeds(question, scores)
        for answer, recipe in question.answers.items():
            held_out = [flatten(score["validation"]) for score in scores[recipe.key][:seeds]]
            test = [flatten(score["test"]) for score in scores[recipe.key][:seeds]]
            cells = [*_recipe_cells(held_out), *_recipe_cells(test)]
            cells += [metric_over_seeds(test, key) for key in test_metrics.values()]
            rows.append([question.title, answer, str(len(test)), *cells])
    columns += [f"test: {name}" for name in test_metrics]
    return ["question", "answer", "seeds", *columns], rows


def common_seeds(question: Question, scores: RecipeScores) -> int:
    """Return how many seeds, from 0 on, all answers to the question were trained with."""
    return min(len(scores[recipe.key]) for recipe in question.answers.values())


def _recipe_cells(flat: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the cells of `COLUMNS`."""
    mean_change = percent([order_ratio(seed) for seed in flat])
    return [*changes(flat, AUSE), mean_change, metric_over_seeds(flat, "uncertainty.auce")]


def calibration_table(questions: Sequence[Question], scores: RecipeScores) -> Table:
    """Return the scores on the test split of maps fitted on the held-out frames."""
    metrics = {"AUSE rmse": "ause.rmse", **SIZED, **N_MERCI, "Spearman": "spearman"}
    rows = []
    for question in questions:
        for answer, recipe in question.answers.items() if question.calibrated else ():
            for name, summaries in _maps(scores[recipe.key]).items():
                flat = [flatten(summary["uncertainty"]) for summary in summaries]
                cells = [metric_over_seeds(flat, key) for key in metrics.values()]
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
            rows.append([title, truth, str(len(flat)), *changes(flat, RELATIVE)])
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
    return min(
        candidates, key=lambda winner: rank(winner.held_out["mean AUSE"], winner.held_out["AUCE"])
    )


def mean_judgement(scores: Sequence[Mapping[str, Any]], part: str) -> dict[str, float]:
    """Return what recipes are ranked by, the mean over the seeds; NaN where a seed has none."""
    flat = [flatten(score[part]) for score in scores]
    auces = [seed["uncertainty.auce"] for seed in flat]
    return {
        "mean AUSE": float(np.mean([order_ratio(seed) for seed in flat])),
        "AUCE": float(np.mean([math.nan if auce is None else auce for auce in auces])),
    }
