# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of one way to a sigma: against ground truth, and against many samples."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from experiments.samples_frames import Scene
from experiments.samples_ways import Way
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.distributions import distribution_of
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.records import Frame
from uncertainty_depth.uncertainty.estimator import Estimate

THINNED = 3  # every third row and column is scored
METRICS = {
    "n_merci": "uncertainty.n_merci",
    "ause_abs_rel": "uncertainty.ause.abs_rel",
    "ause_rmse": "uncertainty.ause.rmse",
    "ause_a1": "uncertainty.ause.a1",
    "mae": "depth.mae",
}


def score(
    network: DepthNetwork, scenes: Sequence[Scene], ways: Mapping[str, Way], many: Way
) -> dict[str, Any]:
    """Return of each way CPU milliseconds a frame, and the scores of its total and its spread.

    Args:
        network: whose head says how sigma is judged.
        scenes: frames.
        ways: by name.
        many: the reference.
    """
    scorings = {name: Scoring(network) for name in ways}
    for scene in scenes:
        expected = many(scene)
        for name, way in ways.items():
            scorings[name].add(way, expected, scene)
    return {name: scoring.result() for name, scoring in scorings.items()}


class Scoring:
    """The scores of one way."""

    def __init__(self, network: DepthNetwork) -> None:
        law = distribution_of(network.config.head)
        auce = "auce" if law == "gaussian" else f"auce_{law}"
        self._keys = METRICS | {"auce": f"uncertainty.{auce}"}
        self._metrics = {"total": OnlineMetrics(), "spread": OnlineMetrics()}
        self._agreement: dict[str, list[tuple[float, float]]] = {"total": [], "spread": []}
        self._depth_errors: list[float] = []
        self._seconds: list[float] = []

    def add(self, way: Way, many: Estimate, scene: Scene) -> None:
        """Add what a way makes of a frame, and the CPU time that it takes."""
        start = time.process_time()
        estimate = way(scene)
        self._seconds.append(time.process_time() - start)
        frame = scene.frame
        spread_m = float(many.epistemic.sqrt().mean())
        self._depth_errors.append(float((estimate.depth_m - many.depth_m).abs().mean()) / spread_m)
        for part, name in (("total", "total"), ("spread", "epistemic")):
            depth_m, sigma_m = estimate.maps(name)
            _, reference_m = many.maps(name)
            is_constant = float(np.ptp(sigma_m)) == 0.0
            both = np.stack([sigma_m.ravel(), reference_m.ravel()])
            correlation = 0.0 if is_constant else np.corrcoef(both)[0, 1]
            relative = np.abs(sigma_m - reference_m).mean() / reference_m.mean()
            self._agreement[part].append((float(correlation), float(relative)))
            self._metrics[part].update(
                _thinned(depth_m, frame),
                _thinned(sigma_m, frame),
                frame.need_ground_truth()[::THINNED, ::THINNED],
            )

    def result(self) -> dict[str, Any]:
        """Return CPU milliseconds a frame, and the scores of the total and of the spread."""
        parts: dict[str, Any] = {}
        for part, metrics in self._metrics.items():
            values = flatten(metrics.compute())
            correlation, relative = np.mean(self._agreement[part], axis=0)
            parts[part] = {
                **{name: values[key] for name, key in self._keys.items()},
                "correlation": float(correlation),
                "relative_error": float(relative),
                "depth_error": float(np.mean(self._depth_errors)),
            }
        return {"ms": 1e3 * float(np.median(self._seconds)), **parts}


def _thinned(values_m: NDArray[np.float32], frame: Frame) -> NDArray[np.float32]:
    """Return a map at the image's size, one of `THINNED` rows and columns."""
    height, width = frame.need_ground_truth().shape
    resized = cv2.resize(values_m, (width, height), interpolation=cv2.INTER_LINEAR)
    thinned: NDArray[np.float32] = resized[::THINNED, ::THINNED]
    return thinned
