# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames per second of everything but the network: reading, decoding, projecting and scoring."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from uncertainty_depth.data.source import Source
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.records import DepthPrediction, Frame


@dataclass(frozen=True)
class Rates:
    """Frames per second of one pass over a source."""

    frames: int
    reading: float
    scoring: float
    together: float


def run(source: Source) -> Rates:
    """Return the rates of one pass over `source`; predictions are the ground truth with noise."""
    evaluation = Evaluation()
    spent = {"reading": 0.0, "scoring": 0.0}
    random = np.random.default_rng(0)
    for frame in _timed(iter(source), spent):
        prediction = _prediction(frame, random)
        start = time.perf_counter()
        evaluation.add(frame.name, frame.stamp_ns, prediction, frame.ground_truth_m, frame.image)
        spent["scoring"] += time.perf_counter() - start
    count = evaluation.evaluated
    return Rates(
        count, count / spent["reading"], count / spent["scoring"], count / sum(spent.values())
    )


def _timed(records: Iterator[object], spent: dict[str, float]) -> Iterator[Frame]:
    """Yield the frames among the records; add the time to read each to `spent`."""
    while True:
        start = time.perf_counter()
        record = next(records, None)
        spent["reading"] += time.perf_counter() - start
        if record is None:
            return
        if isinstance(record, Frame):
            yield record


def _prediction(frame: Frame, random: np.random.Generator) -> DepthPrediction:
    truth = np.where(np.isfinite(frame.ground_truth_m), frame.ground_truth_m, 10.0)
    sigma = (0.1 * truth).astype(np.float32)
    return DepthPrediction(
        (truth + sigma * random.standard_normal(truth.shape, np.float32)).astype(np.float32), sigma
    )


def table(name: str, rates: Rates) -> str:
    """Return the rates as Markdown."""
    return "\n".join(
        [
            "| source | frames | reading + projection | scoring | together |",
            "| --- | --- | --- | --- | --- |",
            f"| {name} | {rates.frames} | {rates.reading:.0f} frames/s "
            f"| {rates.scoring:.0f} frames/s | {rates.together:.0f} frames/s |",
        ]
    )
