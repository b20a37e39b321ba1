# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Diagnostics of a run of the evaluator node."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from uncertainty_depth.ros.diagnostics import LATE_AFTER_S, Health
from uncertainty_depth.ros.ground_truth_topics import ground_truth_topics
from uncertainty_depth.ros.live_calibration import LiveCalibration
from uncertainty_depth.ros.live_evaluation import LiveEvaluation
from uncertainty_depth.ros.live_verdict import LiveVerdict
from uncertainty_depth.ros.worker import Worker

RECENT_FRAMES = 100
COVERAGE = "uncertainty.coverage_"


class RunStatus:
    """Problems and facts of a run.

    Attributes:
        recent: metrics of the last frames, by dotted name.
    """

    def __init__(
        self,
        health: Health,
        live: LiveEvaluation,
        worker: Worker[Any],
        calibration: LiveCalibration,
        verdict: LiveVerdict,
    ) -> None:
        self.recent: deque[dict[str, float]] = deque(maxlen=RECENT_FRAMES)
        self._health = health
        self._live = live
        self._worker = worker
        self._calibration = calibration
        self._verdict = verdict

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the scores, as sentences; unmet requirements come last."""
        apart_s = self._live.clocks_apart_s
        topics = ground_truth_topics(self._live.config)
        age_s = min(self._health.age(f"received.{topic}") for topic in topics)
        warnings = tuple(self._live.geometry.warnings())
        failures = self._verdict.failures
        if apart_s is None or age_s > LATE_AFTER_S:
            return (*warnings, *failures)
        names = " or ".join(topics)
        tolerance_s = self._live.config.max_time_difference
        sentence = (
            f"the stamps of {names} nearest to those of depth/image_rect are {apart_s:+.3f} s "
            f"away, more than max_time_difference {tolerance_s} s: the clocks are apart (chrony, "
            "PTP), or messages are lost"
        )
        return (*warnings, sentence, *failures)

    def facts(self) -> dict[str, object]:
        """Return counts, recent coverage and verdict, for the diagnostics."""
        pairing = {f"pairing.{name}": count for name, count in self._live.pairing_counts.items()}
        return {
            **pairing,
            "waiting": self._worker.waiting(),
            "undecided": self._live.waiting,
            **self._calibration.facts(),
            **self._recent_coverage(),
            **self._verdict.facts,
        }

    def _recent_coverage(self) -> dict[str, str]:
        """Return the mean coverage of the last frames, by the name of the interval."""
        frames = list(self.recent)
        names = [name for name in (frames[-1] if frames else ()) if COVERAGE in name]
        coverage = {}
        for name in names:
            mean = np.mean([frame[name] for frame in frames])
            coverage[f"recent_{name.split('.', 1)[1]}"] = f"{mean:.3f}"
        return coverage
