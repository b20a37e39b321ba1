# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""CPU time of everything but the network: reading, decoding, projecting and scoring.

`python -m benchmarks.reading SOURCE`
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.rounds import Spread, load, markdown
from uncertainty_depth.config import SourceConfig
from uncertainty_depth.frames.source import Source, open_source
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.report.evaluation import Evaluation

ROUNDS = 5


class Times(NamedTuple):
    """CPU milliseconds for a frame over several passes of a source."""

    frames: int
    reading_ms: Spread
    scoring_ms: Spread
    scoring_of_reading: Spread


def run(source: Source, rounds: int = ROUNDS) -> Times:
    """Time passes over `source`, after one that fills the caches.

    Predictions are the ground truth with noise.
    """
    passes = [_one_pass(source) for _ in range(rounds + 1)][1:]
    frames, reading_s, scoring_s = np.array(passes).T
    return Times(
        int(frames[0]),
        Spread.of(1e3 * reading_s / frames),
        Spread.of(1e3 * scoring_s / frames),
        Spread.of(scoring_s / reading_s),
    )


def table(name: str, times: Times) -> str:
    """Return the times as Markdown."""
    head = ("source", "frames", "reading + projection, CPU ms", "scoring, CPU ms", "ratio")
    return f"{markdown(head, [(name, *times)])}\n\n{load()}"


def _one_pass(source: Source) -> tuple[int, float, float]:
    """Return the number of frames, and the CPU seconds of reading and of scoring them."""
    evaluation = Evaluation()
    random = np.random.default_rng(0)
    scoring_s = 0.0
    predicting_s = 0.0
    start = time.process_time()
    for record in source:
        if not isinstance(record, Frame):
            continue
        read_at_s = time.process_time()
        frame = replace(record, prediction=_prediction(record, random))
        predicted_at_s = time.process_time()
        evaluation.add(frame)
        predicting_s += predicted_at_s - read_at_s
        scoring_s += time.process_time() - predicted_at_s
    whole_s = time.process_time() - start
    return evaluation.evaluated, whole_s - predicting_s - scoring_s, scoring_s


def _prediction(frame: Frame, random: np.random.Generator) -> DepthPrediction:
    truth_m = frame.need_ground_truth()
    truth = np.where(np.isfinite(truth_m), truth_m, 10.0)
    sigma = (0.1 * truth).astype(np.float32)
    noise = random.standard_normal(truth.shape, np.float32)
    return DepthPrediction((truth + sigma * noise).astype(np.float32), sigma)


def main() -> None:
    """Print the table of a source."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", help="with ground truth, e.g. kitti:DRIVE_DIR")
    source = open_source(parser.parse_args().source, SourceConfig())
    print(table(source.name, run(source)))


if __name__ == "__main__":
    main()
