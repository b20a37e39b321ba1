# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Methods of Moukari et al. 2019, section VI, of Poggi et al. 2020 and without training, on NYU.

What differs from the paper: its network is a ResNet-200 trained on 16,000 images of the raw set;
here an encoder of 0.3 million weights from scratch and the 795 labelled images of the official
training split, 160x128, so that a run takes hours on two cores. Values cannot be compared with
the paper's, the order of the methods can. All networks of the methods are trained for the same
number of epochs at a constant rate. See `experiments/docs/nyu.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments import figures, nyu_figures, nyu_tables, tables
from experiments.data_folders import NYU
from experiments.nyu_methods import (
    FULL,
    QUICK,
    ROWS,
    Settings,
    load,
    open_splits,
    plan,
    train_models,
)
from experiments.nyu_scores import (
    ALPHA,
    INTERVAL_M,
    THINNED,
    Scores,
    score_rows,
    time_rows,
)
from uncertainty_depth.core import atomic, strict
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.protocol import Source

PUBLISHED = (
    "In the paper Multi Epochs is best (n-MeRCI 0.11) and Learned Error worst (0.65), "
    "with a ResNet-200 on 16,000 images."
)

Titled = dict[str, tuple[str, nyu_tables.Table]]


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Train, score and time; write table.md, CSV files, summary.json and plots.

    Finished trainings and scores of an earlier run are used.

    Args:
        output: of the results, with models in `models` and scores in `results`.
        seeds: trainings of each method of one network; those of several are trained once.
        quick: few frames, small networks, two epochs: only a test that the run works.
        data: folder of the data sets, with `nyuv2`; None takes the one that UNCERTAINTY_DEPTH_DATA
            names.

    Raises:
        SourceError: the data are missing.
        ConfigError: the output folder has models of other options.
    """
    settings = QUICK if quick else FULL
    splits = open_splits(NYU.find(data), settings.train_frames, settings.test_frames)
    train_models(output / "models", splits.train, plan(seeds), settings)
    scores = score_rows(output, splits.test, seeds)
    seconds = time_rows(output, splits.test, settings.rounds)
    write_tables(output, method_tables(scores, seconds), _intro(settings, scores, quick))
    summaries = {}
    for name, of_seeds in scores.items():
        summaries[name] = [score["summary"] for score in of_seeds]
    strict.write_json(
        output / "summary.json",
        {
            "quick": quick,
            "settings": asdict(settings),
            "scores": summaries,
            "seconds": seconds,
        },
    )
    write_figures(output, scores, splits.test, quick)


def method_tables(scores: Scores, seconds: Mapping[str, Any]) -> Titled:
    """Return file name to caption and table, of the methods."""
    means = (
        f"Means over intervals of {INTERVAL_M} m of true depth with enough pixels; "
        f"alpha {ALPHA}, every {THINNED}nd row and column of the images."
    )
    main = (
        "Test split, all pixels. Mean ± sample standard deviation over the seeds; ensembles of "
        "several networks are trained once. The trivial baselines are on each row's own depth."
    )
    change = (
        "Change against the better of constant and depth, on the same depth; below 0 is better."
    )
    return {
        "table": (main, nyu_tables.main_table(scores, seconds)),
        "change": (change, nyu_tables.change_table(scores)),
        "intervals": (means, nyu_tables.interval_table(scores)),
    }


def _intro(settings: Settings, scores: Scores, quick: bool) -> str:
    summary = scores["multi_epochs"][0]["summary"]
    network = settings.network
    width_height = "x".join(map(str, settings.network.input_size))
    warning = "**Quick run: only a test that the run works; its numbers mean nothing.**\n\n"
    return (
        f"{warning if quick else ''}"
        f"Encoder {network.backbone}, decoder width {network.decoder_width}, {width_height}, "
        f"{settings.training.epochs} epochs; {summary['frames']['evaluated']} test images, "
        f"{summary['pixels']:,} pixels. {PUBLISHED}\n"
    )


def write_tables(output: Path, titled: Titled, intro: str) -> None:
    """Write all tables to table.md, and each as CSV."""
    parts = [intro]
    for name, (title, table) in titled.items():
        tables.write_table(output / f"{name}.csv", *table)
        parts.append(f"{title}\n\n{tables.markdown(*table)}")
    atomic.write_text(output / "table.md", "\n".join(parts))


def write_figures(output: Path, scores: Scores, test: Source, quick: bool) -> None:
    """Write the curves of all rows, and the sigma maps of one image."""
    plots = {
        "intervals": nyu_figures.interval_figure(scores),
        "n_merci": nyu_figures.alpha_figure(scores),
        "sparsification": nyu_figures.sparsification_figure(scores),
        "maps": nyu_figures.maps_figure(*_example(output, scores, test)),
    }
    for name, figure in plots.items():
        if quick:
            figure.text(0.0, 0.0, "quick run", color="red", fontsize=8)
        figures.save(figure, output / f"{name}.png")


def _example(output: Path, scores: Scores, test: Source) -> tuple[Frame, list[tuple[Any, ...]]]:
    """Return the typical test image, and scores and maps of each row's middle seed, best first."""
    typical = nyu_figures.typical_frame(scores)
    frame = next(record for record in test if isinstance(record, Frame) and record.name == typical)
    maps = []
    for name, seed, score in nyu_tables.ranking(scores):
        ause = float(scores[name][seed]["frames"][typical]["uncertainty.ause.rmse"] or "nan")
        predictor = load(output / "models", ROWS[name], seed)
        prediction = predictor.predict(frame.need_image(), frame.stamp_ns, frame.camera)
        maps.append((ROWS[name].title, score, ause, prediction))
    return frame, maps
