# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of the table's rows on the test split at image size, and their time per frame."""

from __future__ import annotations

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

from experiments.merci_readings import by_depth
from experiments.nyu_methods import ROWS, load, model_name, prediction, seeds_of
from experiments.runner import resume
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.metrics.from_sums import ALPHA, max_error_at, n_merci_at
from uncertainty_depth.metrics.registry import BY_NAME
from uncertainty_depth.metrics.sparsification import STATISTICS
from uncertainty_depth.metrics.state import SIGMA_NAMES, Sums
from uncertainty_depth.report.evaluation import Evaluation, evaluate
from uncertainty_depth.report.plots import removal_curves
from uncertainty_depth.stream.stream import predicted

ALPHAS = np.arange(1, 21) / 20
"""The alphas of n-MeRCI's curve."""
CONFIG = EvaluationConfig()
INTERVAL_M = 0.1  # of true depth, as in the paper
THINNED = 2  # the depth intervals use every second row and column
FRAME_METRICS = ("depth.abs_rel", "uncertainty.ause.rmse")
METRICS = 5  # version of the stored scores: 5 names the predicted sigma
Scores = dict[str, list[dict[str, Any]]]


def score_rows(output: Path, source: Source, seeds: int) -> Scores:
    """Return row to the scores of each of its seeds; scores of an earlier run are read."""
    names = {}
    for name, row in ROWS.items():
        for seed in seeds_of(row, seeds):
            names[f"{name}-{seed}"] = (name, seed)

    def settings(name: str) -> dict[str, Any]:
        row, seed = names[name]
        trained = read_model(output / "models" / model_name(ROWS[row].variant, seed)).training
        return {
            "metrics": METRICS,
            "training": trained,
            "test": len(source),
            "thinned": THINNED,
            **to_mapping(CONFIG),
            **to_mapping(prediction(ROWS[row])),
        }

    def compute(name: str) -> dict[str, Any]:
        row, seed = names[name]
        return score(load(output / "models", ROWS[row], seed), source)

    results = resume(output / "results", names, settings, compute, "nyu: scores")
    scores: Scores = {name: [] for name in ROWS}
    for (name, _), result in zip(names.values(), results, strict=True):
        scores[name].append(result)
    return scores


def score(predictor: Predictor, source: Source) -> dict[str, Any]:
    """Return the summary as of `evaluate`, curves, and metrics by depth and by frame.

    Raises:
        KeyboardInterrupt: the evaluation was interrupted.
    """
    thinned = Thinned()
    evaluation = evaluate(predicted(source, predictor), CONFIG, [thinned])
    if evaluation.interrupted:
        raise KeyboardInterrupt
    sums = evaluation.metrics.total()
    return {
        "summary": evaluation.summary(),
        "greatest_depth_m": thinned.max_depth_m,
        "sparsification": {name: removal_curves(sums, name) for name in STATISTICS},
        "n_merci": n_merci_by_alpha(sums),
        "intervals": thinned.intervals(),
        "frames": frame_metrics(evaluation),
    }


def n_merci_by_alpha(sums: Sums) -> dict[str, Any]:
    """Return n-MeRCI of each candidate at `ALPHAS`, and where the denominator is positive.

    There the largest covered error, "tail", exceeds the mean error.
    """
    with np.errstate(all="ignore"):
        max_error = np.array([max_error_at(alpha, sums)[0] for alpha in ALPHAS])
        curves = {
            name: np.array([n_merci_at(alpha, sums.of(name))[0] for alpha in ALPHAS])
            for name in SIGMA_NAMES
        }
    return {"alphas": ALPHAS, "tail": max_error > sums["error"][0] / sums["pixels"][0], **curves}


class Thinned:
    """Error, sigma and true depth of every second row and column.

    The exact metrics by depth need all pixels at once.

    Attributes:
        max_depth_m: max predicted depth; far below the true one where a network saturates.
    """

    def __init__(self) -> None:
        self._frames: list[NDArray[np.float32]] = []
        self.max_depth_m = 0.0

    def __call__(self, frame: Frame) -> None:
        """Store the pixels of a frame. A sink of `evaluate`."""
        prediction = frame.need_prediction()
        depth, sigma, truth = valid_pixels(
            prediction.depth_m[::THINNED, ::THINNED],
            prediction.sigma_m[::THINNED, ::THINNED],
            frame.need_ground_truth()[::THINNED, ::THINNED],
            CONFIG.min_depth,
            CONFIG.max_depth,
        )
        self.max_depth_m = max(self.max_depth_m, float(depth.max(initial=0.0)))
        self._frames.append(np.stack([np.abs(depth - truth), sigma, truth]).astype(np.float32))

    def intervals(self) -> dict[str, Any]:
        """Return MAE, of all pixels and of 95 %, and n-MeRCI by depth.

        Also the means over the intervals with enough pixels, in brackets in the paper, and how
        many intervals have enough.
        """
        error, sigma, truth = np.concatenate(self._frames, axis=1)
        plain = by_depth(error, sigma, truth, INTERVAL_M, ALPHA)
        return {
            "edges": plain.edges,
            "pixels": plain.pixels,
            "mae": plain.mae,
            "mae_kept": plain.mae_kept,
            "plain": plain.n_merci,
            "mean_plain": plain.mean_n_merci,
            "enough": plain.enough,
            "intervals_with_enough": plain.intervals_with_enough,
        }


def frame_metrics(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Return frame name to `FRAME_METRICS` of that frame."""
    metrics = {}
    for frame, block in evaluation.table.saved():
        sums = evaluation.metrics.sums_of(block)
        metrics[frame.frame] = {
            name: float(BY_NAME[name].values(sums)[0]) for name in FRAME_METRICS
        }
    return metrics


def time_rows(output: Path, source: Source, rounds: int) -> dict[str, dict[str, float]]:
    """Return row to seconds per frame, and their multiple of one deterministic pass.

    All rows of the first seed, measured in one run.
    """
    folder = output / "models"
    trained = {
        name: read_model(folder / model_name(row.variant, 0)).training
        for name, row in ROWS.items()
    }

    def compute(_: str) -> dict[str, dict[str, float]]:
        predictors = {name: load(folder, row) for name, row in ROWS.items()}
        single = load(folder, ROWS["multi_epochs"]._replace(served="deterministic"))
        image = next(record.need_image() for record in source if isinstance(record, Frame))
        return side_by_side(predictors, single, image, rounds)

    samples = {name: row.samples for name, row in ROWS.items()}
    settings = {"training": trained, "samples": samples, "rounds": rounds}
    return resume(output / "results", ["seconds"], settings, compute, "nyu: seconds")[0]


def side_by_side(
    predictors: Mapping[str, Predictor], single: Predictor, image: NDArray[np.uint8], rounds: int
) -> dict[str, dict[str, float]]:
    """Return medians over rounds of one prediction each, so that other load hits all alike."""
    durations = np.zeros((rounds, len(predictors) + 1))
    with one_thread():
        for turn in trange(rounds, desc="nyu: seconds", unit="round"):
            for column, predictor in enumerate((*predictors.values(), single)):
                durations[turn, column] = _seconds(predictor, image)
    seconds = np.median(durations, axis=0)
    ratio = np.median(durations / durations[:, -1:], axis=0)
    return {
        name: {"seconds": float(seconds[i]), "of_one_pass": float(ratio[i])}
        for i, name in enumerate(predictors)
    }


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch and OpenCV on one thread."""
    torch_threads = torch.get_num_threads()
    cv2_threads = cv2.getNumThreads()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        torch.set_num_threads(torch_threads)
        cv2.setNumThreads(cv2_threads)


def _seconds(predictor: Predictor, image: NDArray[np.uint8]) -> float:
    start = time.perf_counter()
    predictor.predict(image)
    return time.perf_counter() - start
