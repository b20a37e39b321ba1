# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Verdict and requirements of a live run for the diagnostics, judged every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from uncertainty_depth.report.bootstrap import Resampled
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.report import metrics_with_intervals
from uncertainty_depth.report.requirements import FAIL, Outcome, Requirement, outcome
from uncertainty_depth.report.verdict import facts, judge

PERIOD_S = 5.0  # judging takes 0.1 s, whatever the number of frames


class LiveVerdict:
    """Judges on the thread that owns the evaluation; any thread may read the attributes.

    Attributes:
        facts: the lines of the verdict, and PASS or FAIL of each requirement.
        failures: a sentence for each requirement that is not met.
    """

    def __init__(
        self,
        post: Callable[[Callable[[], None]], None],
        evaluation: Callable[[], Evaluation],
        model: Callable[[], Mapping[str, Any]],
        requirements: Callable[[], tuple[Requirement, ...]],
    ) -> None:
        """Start without a timer: the node calls `request`.

        Args:
            post: runs a job on the thread that owns the evaluation.
            evaluation: returns the current evaluation.
            model: returns the current description of the model.
            requirements: returns the current requirements.
        """
        self.facts: dict[str, str] = {}
        self.failures: tuple[str, ...] = ()
        self._post = post
        self._evaluation = evaluation
        self._model = model
        self._requirements = requirements
        self._judged: tuple[int, int, int, tuple[Requirement, ...]] | None = None
        self._requested_s = time.monotonic()

    def request(self) -> None:
        """Judge soon, if `PERIOD_S` of wall time have passed."""
        now_s = time.monotonic()
        if now_s - self._requested_s >= PERIOD_S:
            self._requested_s = now_s
            self._post(self._judge)

    def _judge(self) -> None:
        evaluation = self._evaluation()
        model = self._model()
        requirements = self._requirements()
        state = (id(evaluation), evaluation.frames()["read"], id(model), requirements)
        if state == self._judged:
            return
        sample = Resampled(evaluation.metrics) if evaluation.evaluated else None
        results = _outcomes(requirements, evaluation, sample)
        self.facts = {
            **facts(judge(evaluation, model, None, sample)),
            **{f"requirement.{result.requirement}": result.text for result in results},
        }
        self.failures = tuple(
            f"requirement not met: {result.text.removeprefix(FAIL)}"
            for result in results
            if not result.passed
        )
        self._judged = state


def _outcomes(
    requirements: tuple[Requirement, ...], evaluation: Evaluation, sample: Resampled | None
) -> list[Outcome]:
    """Return the outcomes; without requirements no interval of a metric is computed."""
    if not requirements:
        return []
    metrics = metrics_with_intervals(evaluation, sample)
    return [outcome(requirement, metrics) for requirement in requirements]
