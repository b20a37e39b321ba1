"""The tables of the NYU experiment: the methods, what they gain over sigma = depth, and the recipes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from uncertainty_depth.evaluate import flatten
from uncertainty_depth.experiments.nyu_methods import ROWS
from uncertainty_depth.experiments.nyu_recipes import Question
from uncertainty_depth.experiments.nyu_scores import Scores
from uncertainty_depth.experiments.tables import mean_and_deviation

Table = tuple[list[str], list[list[str]]]
DEPTH = {"MAE (m)": "mae", "abs_rel": "abs_rel", "rmse (m)": "rmse"}
RANKED = {"n-MeRCI trimmed": "n_merci_trimmed", "n-MeRCI": "n_merci"}
AUSE = {f"AUSE {title}": f"ause.{name}" for title, name in (("abs_rel", "abs_rel"), ("rmse", "rmse"), ("1 - a1", "a1"))}
AURG = {title.replace("AUSE", "AURG"): name.replace("ause", "aurg") for title, name in AUSE.items()}
SIZED = {"AUCE": "auce", "NLL": "nll", "Spearman": "spearman"}
FIGURES = {**RANKED, **AUSE, **AURG, **SIZED}
BASELINES = {"– constant sigma": "constant", "– sigma = depth": "proportional_to_depth"}
JUDGED = {name: FIGURES[name] for name in ("n-MeRCI trimmed", "AUSE rmse")}
"""What a recipe is chosen by."""


def main_table(scores: Scores, seconds: Mapping[str, Mapping[str, float]]) -> Table:
    """Each row with the two trivial baselines on its own depth."""
    header = ["method", "seeds", *DEPTH, *FIGURES, "s / frame", "of one pass"]
    rows = []
    for name, row in ROWS.items():
        flat, taken = [flatten(one["summary"]) for one in scores[name]], seconds[name]
        depth = [_over_seeds(flat, f"depth.{key}") for key in DEPTH.values()]
        times = [f"{taken['seconds']:.4f}", f"{taken['of_one_pass']:.2f}"]
        rows.append([row.title, str(len(flat)), *depth, *_figures(flat, "uncertainty"), *times])
        rows += [[title, "", *[""] * len(DEPTH), *_figures(flat, f"baselines.{key}"), "", ""] for title, key in BASELINES.items()]
    return header, rows


def _figures(flat: Sequence[Mapping[str, float]], prefix: str) -> list[str]:
    return [_over_seeds(flat, f"{prefix}.{key}") for key in FIGURES.values()]


def _over_seeds(flat: Sequence[Mapping[str, float]], key: str) -> str:
    """Mean and standard deviation, or the one value; "–" where a seed has none."""
    values = np.array([one[key] for one in flat], dtype=float)
    if not np.isfinite(values).all():
        return "–"
    digits = 3 if np.abs(values).max() < 100 else 0
    return mean_and_deviation(values, digits) if len(values) > 1 else f"{values[0]:.{digits}f}"


def change_table(scores: Scores) -> Table:
    """Change of each figure against sigma = depth on the same depth, percent, mean and standard deviation over the seeds; below 0 is better."""
    header = ["method", *RANKED, *AUSE]
    flat = {row.title: [flatten(one["summary"]) for one in scores[name]] for name, row in ROWS.items()}
    keys = [*RANKED.values(), *AUSE.values()]
    return header, [[title, *(_percent(*(ratio(one, key) for one in summaries)) for key in keys)] for title, summaries in flat.items()]


def ratio(flat: Mapping[str, float | None], key: str) -> float:
    """A figure of the method over that of sigma = depth; NaN where one is not known."""
    of_method, of_depth = (flat[f"{prefix}.{key}"] for prefix in ("uncertainty", "baselines.proportional_to_depth"))
    return of_method / of_depth if of_method is not None and of_depth else math.nan


def _percent(*of_baseline: float) -> str:
    change = 100 * (np.array(of_baseline) - 1)
    if not np.isfinite(change).all():
        return "–"
    return f"{change.mean():+.0f}" + (f" ± {change.std():.0f} %" if len(change) > 1 else " %")


def interval_table(scores: Scores) -> Table:
    """The figure that the paper gives in brackets: the mean over the depth intervals with enough pixels, first seed."""
    header = ["method", "n-MeRCI trimmed, mean over intervals", "n-MeRCI, mean over intervals", "intervals with enough pixels"]
    first = {row.title: scores[name][0]["intervals"] for name, row in ROWS.items()}
    shown = {title: [_number(one["mean_trimmed"]), _number(one["mean_plain"])] for title, one in first.items()}
    return header, [[title, *shown[title], f"{one['intervals_with_enough']} of {len(one['pixels'])}"] for title, one in first.items()]


def _number(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.{3 if abs(value) < 100 else 0}f}"


def ranking(scores: Scores) -> list[tuple[str, float]]:
    """The rows by trimmed n-MeRCI on the test split, first seed, the best first and NaN last."""
    found = {name: scores[name][0]["summary"]["uncertainty"]["n_merci_trimmed"] for name in ROWS}
    known = {name: math.nan if value is None else value for name, value in found.items()}
    return sorted(known.items(), key=lambda one: (math.isnan(one[1]), one[1]))


def search_table(questions: Sequence[Question], found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Every answer to every question: held-out frames, which decide, and the test split beside them."""
    shown = {"abs_rel": "depth.abs_rel", "n-MeRCI": "uncertainty.n_merci", "AUCE": "uncertainty.auce", "Spearman": "uncertainty.spearman"}
    columns = [f"{part}: {name}" for part in ("held out", "test") for title in JUDGED for name in (title, f"{title}, change")]
    rows = []
    for question in questions:
        for answer, recipe in question.answers.items():
            held_out, test = (flatten(found[recipe.key][part]) for part in ("validation", "test"))
            judged = [cell for flat in (held_out, test) for key in JUDGED.values() for cell in _judged(flat, key)]
            rows.append([question.title, answer, *judged, *(_number(test[key]) for key in shown.values())])
    return ["question", "answer", *columns, *(f"test: {name}" for name in shown)], rows


def _judged(flat: Mapping[str, float | None], key: str) -> tuple[str, str]:
    return _number(flat[f"uncertainty.{key}"]), _percent(ratio(flat, key))


def calibration_table(questions: Sequence[Question], found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Maps of sigma that were fitted on the held-out frames, scored on the test split."""
    shown = {**RANKED, "AUSE rmse": "ause.rmse", **SIZED}
    rows = []
    for question in questions:
        for answer, recipe in question.answers.items() if question.calibrated else ():
            scores = found[recipe.key]
            maps = {"none": scores["test"], **scores["calibrated"]}
            for kind, summary in maps.items():
                flat, title = flatten(summary["uncertainty"]), f"chosen ({scores['chosen_kind']})" if kind == "chosen" else kind
                rows.append([answer, title, *(_number(flat[key]) for key in shown.values())])
    return ["sigma", "map", *shown], rows


class Winner(NamedTuple):
    """The best recipe, by the held-out frames alone."""

    question: str
    answer: str
    held_out: dict[str, float]
    test: dict[str, float]


def winner(questions: Sequence[Question], found: Mapping[str, Mapping[str, Any]]) -> Winner:
    """The recipe whose worse one of two ratios to sigma = depth, on its own depth, is best on the held-out frames: trimmed n-MeRCI, AUSE rmse."""
    ratios = {
        part: {key: {name: ratio(flatten(scores[part]), figure) for name, figure in JUDGED.items()} for key, scores in found.items()}
        for part in ("validation", "test")
    }
    each = [(question.title, answer, recipe.key) for question in questions for answer, recipe in question.answers.items()]
    known = [one for one in each if not any(map(math.isnan, ratios["validation"][one[2]].values()))]
    title, answer, key = min(known, key=lambda one: max(ratios["validation"][one[2]].values()))
    return Winner(title, answer, ratios["validation"][key], ratios["test"][key])
