# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The verdict of a live run for the diagnostics, judged every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.verdict import facts, judge

PERIOD_S = 5.0  # judging takes 0.1 s, whatever the number of frames


class LiveVerdict:
    """Judges on the thread that owns the evaluation; any thread may read `facts`."""

    def __init__(
        self,
        node: Node,
        post: Callable[[Callable[[], None]], None],
        evaluation: Callable[[], Evaluation],
        model: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Judge every `PERIOD_S` of wall time.

        Args:
            node: owner of the timer.
            post: runs a job on the thread that owns the evaluation.
            evaluation: returns the current evaluation.
            model: returns the current description of the model.
        """
        self.facts: dict[str, str] = {}
        self._evaluation = evaluation
        self._model = model
        self._judged: tuple[int, int, int] | None = None
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(PERIOD_S, lambda: post(self._judge), clock=clock)

    def _judge(self) -> None:
        evaluation = self._evaluation()
        model = self._model()
        state = (id(evaluation), evaluation.frames()["read"], id(model))
        if state == self._judged:
            return
        self.facts = facts(judge(evaluation, model, None))
        self._judged = state
