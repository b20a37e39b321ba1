# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a time budget saves under a second busy process, and what it costs in quality.

The shipped model on synthetic worlds that it never saw. The budget is a little more than a frame
with all samples takes; then a process that never rests is started beside it. Frames with all
samples and frames within the budget alternate, so that other load hits both alike.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from uncertainty_depth.config import PredictorConfig, SourceConfig
from uncertainty_depth.data.source import open_source
from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.inference.sample_budget import SampleBudget
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.shipped_model import SHIPPED_MODEL

SOURCE = "synthetic:worlds=12,frames=2,rate=1,seed=20000,width=160,height=120"
ROUNDS = 3
MARGIN = 1.2
"""Budget over the median time of a frame with all samples, before the busy process starts."""
METRICS = {
    "n-MeRCI": "uncertainty.n_merci",
    "AUSE abs_rel": "uncertainty.ause.abs_rel",
    "AUSE rmse": "uncertainty.ause.rmse",
    "AUSE 1 - a1": "uncertainty.ause.a1",
    "abs_rel": "depth.abs_rel",
}


class Outcome(NamedTuple):
    """Results of the frames predicted in one way.

    Attributes:
        over: fraction of the frames that took longer than the budget.
        median_ms: of a frame.
        samples: mean number used.
        metrics: of `METRICS`, over all frames.
    """

    over: float
    median_ms: float
    samples: float
    metrics: dict[str, float]


class Comparison(NamedTuple):
    """Both ways under load, and the budget."""

    budget_ms: float
    passes: int
    without: Outcome
    within: Outcome


def run(source: str = SOURCE, rounds: int = ROUNDS) -> Comparison:
    """Time and score both ways under a second busy process."""
    frames = [item for item in open_source(source, SourceConfig()) if isinstance(item, Frame)]
    predictor = Predictor(SHIPPED_MODEL, PredictorConfig(device="cpu"))
    budget_ms = MARGIN * float(np.median([_timed(predictor, frame)[0] for frame in frames]))
    without = _Way(predictor, 0.0, budget_ms)
    within = _Way(predictor, budget_ms, budget_ms)
    with busy_process():
        for frame in tqdm(frames * rounds, "budget", unit="frame"):
            without.predict(frame)
            within.predict(frame)
    return Comparison(budget_ms, predictor.passes, without.outcome(), within.outcome())


@contextmanager
def busy_process() -> Iterator[None]:
    """Run a process that keeps one core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _timed(
    predictor: Predictor, frame: Frame, budget: SampleBudget | None = None, budget_ms: float = 0.0
) -> tuple[float, int, DepthPrediction]:
    """Return milliseconds, number of samples and maps of a frame."""
    start_s = time.perf_counter()
    samples = (budget or SampleBudget()).choose(budget_ms, predictor.passes)
    prediction = predictor.predict(frame.image, frame.stamp_ns, frame.camera, samples)
    milliseconds = 1e3 * (time.perf_counter() - start_s)
    if budget is not None:
        budget.add(samples.count, milliseconds)
    return milliseconds, samples.count, prediction


class _Way:
    """Frames predicted with a budget of `budget_ms`, 0 for none, judged by `limit_ms`."""

    def __init__(self, predictor: Predictor, budget_ms: float, limit_ms: float) -> None:
        self._predictor = predictor
        self._budget_ms = budget_ms
        self._limit_ms = limit_ms
        self._budget = SampleBudget()
        self._milliseconds: list[float] = []
        self._counts: list[int] = []
        self._metrics = OnlineMetrics()

    def predict(self, frame: Frame) -> None:
        milliseconds, count, prediction = _timed(
            self._predictor, frame, self._budget, self._budget_ms
        )
        self._milliseconds.append(milliseconds)
        self._counts.append(count)
        self._metrics.update(prediction.depth_m, prediction.sigma_m, frame.ground_truth_m)

    def outcome(self) -> Outcome:
        milliseconds = np.array(self._milliseconds)
        metrics = flatten(self._metrics.compute())
        return Outcome(
            over=float((milliseconds > self._limit_ms).mean()),
            median_ms=float(np.median(milliseconds)),
            samples=float(np.mean(self._counts)),
            metrics={name: metrics[key] for name, key in METRICS.items()},
        )


def table(comparison: Comparison) -> str:
    """Return the comparison as aligned text."""
    attributes = {"frames over budget": "over", "median ms": "median_ms", "samples": "samples"}
    lines = [
        f"budget {comparison.budget_ms:.1f} ms, {comparison.passes} samples, "
        "one busy process beside it",
        f"{'':20}{'all samples':>12}{'in budget':>12}{'ratio':>8}",
    ]
    for name, attribute in attributes.items():
        value = attrgetter(attribute)
        lines.append(_line(name, value(comparison.without), value(comparison.within)))
    for name in METRICS:
        lines.append(
            _line(name, comparison.without.metrics[name], comparison.within.metrics[name])
        )
    return "\n".join(lines)


def _line(name: str, without: float, within: float) -> str:
    ratio = f"{within / without:8.2f}" if without else f"{'–':>8}"
    return f"{name:20}{without:12.3f}{within:12.3f}{ratio}"
