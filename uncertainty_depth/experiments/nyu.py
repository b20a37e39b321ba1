# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All methods of Moukari et al. 2019, section VI, and two of Poggi et al. 2020, on the official split of NYU Depth v2.

What differs from the paper: its network is a ResNet-200 trained on 16,000 images of the raw set; here an encoder of 0.3 million weights
from scratch and the 795 labelled images of the official training split, 160x128, so that a run takes hours on two cores. Values cannot be compared,
the comparison of methods can. Every network of the methods is trained for the same number of epochs at a constant rate. `docs/experiments/nyu.md`
says more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from uncertainty_depth import atomic, strict_json
from uncertainty_depth.data.source import Source
from uncertainty_depth.experiments import figures, nyu_figures, nyu_tables, tables
from uncertainty_depth.experiments.nyu_data import data_folder, open_splits
from uncertainty_depth.experiments.nyu_ideal import Ideal, ideal
from uncertainty_depth.experiments.nyu_methods import (
    FULL,
    QUICK,
    ROWS,
    Settings,
    load,
    plan,
    train_models,
)
from uncertainty_depth.experiments.nyu_recipes import Question, questions
from uncertainty_depth.experiments.nyu_scores import CONFIG, THINNED, Scores, score_rows, time_rows
from uncertainty_depth.experiments.nyu_search import search
from uncertainty_depth.records import Frame

PUBLISHED = "In the paper Multi Epochs is best (n-MeRCI 0.11) and Learned Error worst (0.65), with a ResNet-200 on 16,000 images: another size."

Titled = dict[str, tuple[str, nyu_tables.Table]]


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Train, score, time, search; write table.md, CSV files, summary.json and figures. Each training and each score is kept where it is finished.

    Args:
        output: folder of the results; the models lie in `models`, the scores in `results`.
        seeds: trainings of each method of one network; those of several are trained once.
        quick: few frames, small networks, two epochs: shows that everything works, and nothing else.
        data: folder of NYU Depth v2; None takes `nyuv2` in the folder that UNCERTAINTY_DEPTH_DATA names.

    Raises:
        SourceError: the data are not there.
        ConfigError: the output folder holds models of other options.
    """
    settings = QUICK if quick else FULL
    splits = open_splits(data_folder(data), settings.train_frames, settings.test_frames)
    train_models(output / "models", splits.train, plan(seeds), settings)
    scores = score_rows(output, splits.test, seeds)
    seconds = time_rows(output, splits.test, settings.rounds)
    asked = questions(settings)
    found = search(output, splits, asked, settings, seeds)
    drawn = ideal(output, splits, settings, seeds)
    made = {**method_tables(scores, seconds), **recipe_tables(asked, found), **ideal_tables(drawn)}
    write_tables(output, made, _intro(settings, scores, quick), winner_sentence(asked, found))
    summaries = {name: [one["summary"] for one in each] for name, each in scores.items()}
    strict_json.write(
        output / "summary.json",
        {
            "quick": quick,
            "settings": asdict(settings),
            "scores": summaries,
            "seconds": seconds,
            "recipes": found,
            "ideal": drawn,
        },
    )
    write_figures(output, scores, splits.test, quick)


def method_tables(scores: Scores, seconds: Mapping[str, Any]) -> Titled:
    """File name to what stands above the table, and the table."""
    every = f"every {THINNED}nd row and column of the images"
    means = f"Means over intervals of {CONFIG.depth_bin_width} m of true depth with enough pixels; alpha {CONFIG.alpha}, {every}."
    main = (
        "Test split, all pixels. Mean ± standard deviation over the seeds; ensembles of several networks are trained once."
        " The trivial baselines are on each row's own depth."
    )
    return {
        "table": (main, nyu_tables.main_table(scores, seconds)),
        "change": (
            "Change against the better of constant and depth, on the same depth; below 0 is better.",
            nyu_tables.change_table(scores),
        ),
        "intervals": (means, nyu_tables.interval_table(scores)),
    }


def recipe_tables(asked: Sequence[Question], found: Mapping[str, Any]) -> Titled:
    """In the same manner."""
    recipes = (
        "What makes the spread informative? At the network's size; each answer with the seeds that all answers to its question were trained with."
        " Change: against the better of constant and depth, on the same depth."
    )
    return {
        "recipes": (recipes, nyu_tables.search_table(asked, found)),
        "calibration": (
            "Maps of sigma fitted on the held-out frames, scored on the test split.",
            nyu_tables.calibration_table(asked, found),
        ),
    }


def ideal_tables(drawn: Ideal) -> Titled:
    """In the same manner."""
    text = (
        "What would a right sigma score? Change against the better baseline on the test images of the recipes, where the truth is the measured one,"
        " and where each pixel's is drawn from a Laplace or a normal distribution around the predicted depth, with sigma as its standard deviation."
    )
    return {"ideal": (text, nyu_tables.ideal_table(drawn))}


def _intro(settings: Settings, scores: Scores, quick: bool) -> str:
    summary = scores["multi_epochs"][0]["summary"]
    network = settings.network
    width_height = "x".join(map(str, settings.network.input_size))
    size = f"Encoder {network.backbone}, decoder width {network.decoder_width}, {width_height}, {settings.training.epochs} epochs"
    warning = (
        "**Quick run: it shows that everything works; its numbers mean nothing.**\n\n"
        if quick
        else ""
    )
    return f"{warning}{size}; {summary['frames']['evaluated']} test images, {summary['pixels']:,} pixels. {PUBLISHED}\n"


def winner_sentence(asked: Sequence[Question], found: Mapping[str, Any]) -> str:
    """The best recipe by the held-out frames, and what it is worth on the test split."""
    best = nyu_tables.winner(asked, found)
    rule = (
        "the smallest mean of the three AUSE against the better baseline on the held-out frames, "
        "equals told apart by AUCE"
    )
    return (
        f"Best recipe ({rule}): **{best.question}: {best.answer}** (seeds: {best.seeds}). "
        f"Held out: {_judgement(best.held_out)}. Test: {_judgement(best.test)}.\n"
    )


def _judgement(part: Mapping[str, float]) -> str:
    return f"mean AUSE {100 * (part['mean AUSE'] - 1):+.0f} %; AUCE {part['AUCE']:.3f}"


def write_tables(output: Path, made: Titled, intro: str, verdict: str) -> None:
    """Everything in table.md, and each table as CSV."""
    for name, (_, table) in made.items():
        tables.write_table(output / f"{name}.csv", *table)
    text = "\n".join(
        [
            intro,
            *(f"{title}\n\n{tables.markdown(*table)}" for title, table in made.values()),
            verdict,
        ]
    )
    atomic.write_text(output / "table.md", text)


def write_figures(output: Path, scores: Scores, test: Source, quick: bool) -> None:
    """Curves of all rows, and the sigma maps of one image."""
    made = {
        "intervals": nyu_figures.interval_figure(scores),
        "n_merci": nyu_figures.alpha_figure(scores),
        "sparsification": nyu_figures.sparsification_figure(scores),
        "maps": nyu_figures.maps_figure(*_example(output, scores, test)),
    }
    for name, figure in made.items():
        if quick:
            figure.text(0.0, 0.0, "quick run", color="red", fontsize=8)
        figures.save(figure, output / f"{name}.png")


def _example(output: Path, scores: Scores, test: Source) -> tuple[Frame, list[tuple[Any, ...]]]:
    """The typical test image, and the scores and maps of each row's middle seed, the best row first."""
    wanted = nyu_figures.typical_frame(scores)
    frame = next(record for record in test if isinstance(record, Frame) and record.name == wanted)
    shown = []
    for name, seed, score in nyu_tables.ranking(scores):
        own = float(scores[name][seed]["frames"][wanted]["uncertainty.ause.rmse"] or "nan")
        shown.append(
            (
                ROWS[name].title,
                score,
                own,
                load(output / "models", ROWS[name], seed).predict(frame.image, frame.stamp_ns),
            )
        )
    return frame, shown
