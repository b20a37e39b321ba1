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
RANKED = {"n-MeRCI trimmed": "n_merci_trimmed", "n-MeRCI": "n_merci"}
AUSE = {
    f"AUSE {title}": f"ause.{name}"
    for title, name in (("abs_rel", "abs_rel"), ("rmse", "rmse"), ("1 - a1", "a1"))
}
AURG = {
    title.replace("AUSE", "AURG"): name.replace("ause", "aurg") for title, name in AUSE.items()
}
SIZED = {"AUCE": "auce", "NLL": "nll", "Spearman": "spearman"}
FIGURES = {**RANKED, **AUSE, **AURG, **SIZED}
BASELINES = {"– constant sigma": "constant", "– sigma = depth": "proportional_to_depth"}
JUDGED = {name: FIGURES[name] for name in ("n-MeRCI trimmed", "AUSE rmse")}
"""What a recipe is chosen by."""


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
        flat, taken = [flatten(one["summary"]) for one in scores[name]], seconds[name]
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
    """Change of each figure against sigma = depth on the same depth, percent, mean and standard deviation over the seeds; below 0 is better."""
    header = ["method", *RANKED, *AUSE]
    flat = {
        row.title: [flatten(one["summary"]) for one in scores[name]] for name, row in ROWS.items()
    }
    keys = [*RANKED.values(), *AUSE.values()]
    return header, [
        [title, *(_percent(*(ratio(one, key) for one in summaries)) for key in keys)]
        for title, summaries in flat.items()
    ]


def ratio(flat: Mapping[str, float | None], key: str) -> float:
    """A figure of the method over that of sigma = depth; NaN where one is not known."""
    of_method, of_depth = (
        flat[f"{prefix}.{key}"] for prefix in ("uncertainty", "baselines.proportional_to_depth")
    )
    return of_method / of_depth if of_method is not None and of_depth else math.nan


def _percent(*of_baseline: float) -> str:
    change, left_out = finite(100 * (np.array(of_baseline) - 1))
    if not change.size:
        return "–"
    return (
        f"{change.mean():+.0f}"
        + (f" ± {change.std():.0f} %" if change.size > 1 else " %")
        + left_out
    )


def interval_table(scores: Scores) -> Table:
    """The figure that the paper gives in brackets: the mean over the depth intervals with enough pixels."""
    header = [
        "method",
        "n-MeRCI trimmed, mean over intervals",
        "n-MeRCI, mean over intervals",
        "intervals with enough pixels",
    ]
    rows = []
    for name, row in ROWS.items():
        intervals = [one["intervals"] for one in scores[name]]
        means = [
            over_seeds([one[key] for one in intervals]) for key in ("mean_trimmed", "mean_plain")
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
    """Rows by trimmed n-MeRCI on the test split, the best first and what is not finite last: name, its middle seed, that seed's figure."""
    found = [(name, *middle_seed([_trimmed(one) for one in scores[name]])) for name in ROWS]
    return sorted(found, key=lambda one: one[2])


def middle_seed(values: Sequence[float]) -> tuple[int, float]:
    """The seed of the median, the lower one of two, and its value."""
    seed = sorted(range(len(values)), key=values.__getitem__)[(len(values) - 1) // 2]
    return seed, values[seed]


def _trimmed(score: Mapping[str, Any]) -> float:
    value = score["summary"]["uncertainty"]["n_merci_trimmed"]
    return math.inf if value is None else value


def search_table(questions: Sequence[Question], found: Found) -> Table:
    """Every answer to every question: held-out frames, which decide, and the test split beside them."""
    shown = {
        "abs_rel": "depth.abs_rel",
        "n-MeRCI": "uncertainty.n_merci",
        "AUCE": "uncertainty.auce",
        "Spearman": "uncertainty.spearman",
    }
    columns = [
        f"{part}: {name}"
        for part in ("held out", "test")
        for title in JUDGED
        for name in (title, f"{title}, change")
    ]
    rows = []
    for question in questions:
        for answer, recipe in question.answers.items():
            used = found[recipe.key][: common_seeds(question, found)]
            held_out, test = (
                [flatten(one[part]) for one in used] for part in ("validation", "test")
            )
            judged = [
                cell
                for flat in (held_out, test)
                for key in JUDGED.values()
                for cell in _judged(flat, key)
            ]
            rows.append(
                [
                    question.title,
                    answer,
                    str(len(used)),
                    *judged,
                    *(_over_seeds(test, key) for key in shown.values()),
                ]
            )
    return ["question", "answer", "seeds", *columns, *(f"test: {name}" for name in shown)], rows


def common_seeds(question: Question, found: Found) -> int:
    """How many seeds, from 0 on, all answers were trained with: like is compared with like."""
    return min(len(found[recipe.key]) for recipe in question.answers.values())


def _judged(flat: Sequence[Mapping[str, float]], key: str) -> tuple[str, str]:
    return _over_seeds(flat, f"uncertainty.{key}"), _percent(*(ratio(one, key) for one in flat))


def calibration_table(questions: Sequence[Question], found: Found) -> Table:
    """Maps of sigma that were fitted on the held-out frames, scored on the test split."""
    shown = {**RANKED, "AUSE rmse": "ause.rmse", **SIZED}
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
    """Change against sigma = depth where the truth is measured, and where it is drawn from what sigma stands for."""
    keys = {**RANKED, **AUSE}
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
    """The best recipe, by the held-out frames alone: ratios to sigma = depth, the means over its seeds."""

    question: str
    answer: str
    seeds: int
    held_out: dict[str, float]
    test: dict[str, float]


def winner(questions: Sequence[Question], found: Found) -> Winner:
    """The recipe whose worse one of two ratios to sigma = depth, on its own depth, is best on the held-out frames: trimmed n-MeRCI, AUSE rmse."""
    each = [
        (question.title, answer, recipe.key)
        for question in questions
        for answer, recipe in question.answers.items()
    ]
    held_out = {key: mean_ratios(scores, "validation") for key, scores in found.items()}
    known = [one for one in each if all(map(math.isfinite, held_out[one[2]].values()))]
    title, answer, key = min(known, key=lambda one: max(held_out[one[2]].values()))
    return Winner(title, answer, len(found[key]), held_out[key], mean_ratios(found[key], "test"))


def mean_ratios(scores: Sequence[Mapping[str, Any]], part: str) -> dict[str, float]:
    """Figure to its mean ratio over the seeds; NaN where a seed has none."""
    flat = [flatten(one[part]) for one in scores]
    return {
        name: float(np.mean([ratio(one, key) for one in flat])) for name, key in JUDGED.items()
    }
