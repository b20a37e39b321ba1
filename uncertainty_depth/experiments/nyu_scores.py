# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of the table's rows on the test split, at the images' size, and the time that each row takes per frame."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import trange

from uncertainty_depth.config import EvaluationConfig, PredictorConfig
from uncertainty_depth.data.source import Source
from uncertainty_depth.evaluation.evaluate import evaluate
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.experiments.nyu_methods import ROWS, load, model_name, seeds_of
from uncertainty_depth.experiments.runner import resume
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.metrics import by_depth, valid_pixels
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.options import to_mapping
from uncertainty_depth.records import DepthPrediction, Frame

CONFIG = EvaluationConfig()
THINNED = 2  # rows and columns per one that the depth intervals use
OF_FRAME = ("depth.abs_rel", "uncertainty.ause.rmse")
METRICS = 2  # of the stored scores: 2 has the withdrawn n-MeRCI and the Laplace size
Scores = dict[str, list[dict[str, Any]]]


def score_rows(output: Path, source: Source, seeds: int) -> Scores:
    """Row to the scores of each of its seeds; what an earlier run scored of the same models is read."""
    names = {
        f"{name}-{seed}": (name, seed)
        for name, row in ROWS.items()
        for seed in seeds_of(row, seeds)
    }

    def settings(name: str) -> dict[str, Any]:
        row, seed = names[name]
        trained = read(output / "models" / model_name(ROWS[row].variant, seed)).training
        return {
            "metrics": METRICS,
            "training": trained,
            "test": len(source),
            "thinned": THINNED,
            **to_mapping(CONFIG),
            **to_mapping(PredictorConfig()),
        }

    def compute(name: str) -> dict[str, Any]:
        row, seed = names[name]
        return score(load(output / "models", ROWS[row], seed), source)

    found = dict(
        zip(
            names, resume(output / "results", names, settings, compute, "nyu: scores"), strict=True
        )
    )
    return {
        name: [found[f"{name}-{seed}"] for seed in seeds_of(row, seeds)]
        for name, row in ROWS.items()
    }


def score(predictor: Predictor, source: Source) -> dict[str, Any]:
    """One pass over the source: the summary as `evaluate` gives it, the curves, figures by depth and by frame.

    Raises:
        KeyboardInterrupt: what is half scored is not kept.
    """
    thinned = Thinned()
    evaluation = evaluate(source, predictor, CONFIG, [thinned])
    if evaluation.interrupted:
        raise KeyboardInterrupt
    curves = evaluation.metrics.curves()
    kept = {name: curves[name] for name in ("sparsification", "n_merci", "reliability")}
    extent = {"greatest_depth_m": thinned.greatest_depth_m}
    return {
        "summary": evaluation.summary(),
        **extent,
        **kept,
        "intervals": thinned.intervals(),
        "frames": frame_figures(evaluation),
    }


class Thinned:
    """Error, sigma and true depth of every second row and column: the exact figures by depth need all pixels at once.

    Attributes:
        greatest_depth_m: the greatest predicted depth; far below the truth's where a network cannot give what is far.
    """

    def __init__(self) -> None:
        self._frames: list[NDArray[np.float32]] = []
        self.greatest_depth_m = 0.0

    def __call__(self, frame: Frame, prediction: DepthPrediction) -> None:
        """Keep a frame's pixels. A sink of `evaluate`."""
        maps = (
            values[::THINNED, ::THINNED]
            for values in (prediction.depth_m, prediction.sigma_m, frame.ground_truth_m)
        )
        depth, sigma, truth = valid_pixels(*maps, CONFIG.min_depth, CONFIG.max_depth)
        self.greatest_depth_m = max(self.greatest_depth_m, float(depth.max(initial=0.0)))
        self._frames.append(np.stack([np.abs(depth - truth), sigma, truth]).astype(np.float32))

    def intervals(self) -> dict[str, Any]:
        """MAE and both readings of n-MeRCI in each depth interval; the bracketed figure of the paper, and over how many intervals it is the mean."""
        pixels = np.concatenate(self._frames, axis=1)
        plain = by_depth(*pixels, CONFIG.depth_bin_width, CONFIG.alpha)
        withdrawn = by_depth(*pixels, CONFIG.depth_bin_width, CONFIG.alpha, withdrawn=True)
        shown = {
            "edges": plain.edges,
            "pixels": plain.pixels,
            "mae": plain.mae,
            "plain": plain.n_merci,
            "withdrawn": withdrawn.n_merci,
        }
        means = {"mean_plain": plain.mean_n_merci, "mean_withdrawn": withdrawn.mean_n_merci}
        return {
            **shown,
            **means,
            "enough": plain.enough,
            "intervals_with_enough": plain.intervals_with_enough,
        }


def frame_figures(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Frame name to some of its own figures."""
    return {
        row["frame"]: {name: float(row[name]) for name in OF_FRAME}
        for row in csv.DictReader(evaluation.table.text())
    }


def time_rows(output: Path, source: Source, rounds: int) -> dict[str, dict[str, float]]:
    """Row to seconds per frame, and how many times those of one deterministic pass they are; all rows of the first seed, measured in one run."""
    folder = output / "models"
    trained = {
        name: read(folder / model_name(row.variant, 0)).training for name, row in ROWS.items()
    }

    def compute(_: str) -> dict[str, dict[str, float]]:
        predictors = {name: load(folder, row) for name, row in ROWS.items()}
        image = next(record.image for record in source if isinstance(record, Frame))
        return side_by_side(
            predictors,
            load(folder, ROWS["multi_epochs"]._replace(served="deterministic")),
            image,
            rounds,
        )

    return resume(
        output / "results",
        ["seconds"],
        {"training": trained, "rounds": rounds},
        compute,
        "nyu: seconds",
    )[0]


def side_by_side(
    predictors: Mapping[str, Predictor], single: Predictor, image: NDArray[np.uint8], rounds: int
) -> dict[str, dict[str, float]]:
    """Medians over rounds in which each predictor has one turn: other load on the machine hits all of them alike."""
    taken = np.zeros((rounds, len(predictors) + 1))
    with one_thread():
        for turn in trange(rounds, desc="nyu: seconds", unit="round"):
            taken[turn] = [
                _timed(predictor, image) for predictor in (*predictors.values(), single)
            ]
    seconds = np.median(taken, axis=0)
    ratio = np.median(taken / taken[:, -1:], axis=0)
    return {
        name: {"seconds": float(seconds[i]), "of_one_pass": float(ratio[i])}
        for i, name in enumerate(predictors)
    }


@contextmanager
def one_thread() -> Iterator[None]:
    """Network and resizing on one thread."""
    before = torch.get_num_threads(), cv2.getNumThreads()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        cv2.setNumThreads(before[1])


def _timed(predictor: Predictor, image: NDArray[np.uint8]) -> float:
    start = time.perf_counter()
    predictor.predict(image)
    return time.perf_counter() - start
