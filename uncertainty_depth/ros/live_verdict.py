# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The verdict of a live run for the diagnostics, judged every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.verdict import facts, judge

PERIOD_S = 5.0  # judging takes 0.1 s, whatever the number of frames


class LiveVerdict:
    """Judges on the thread that owns the evaluation; any thread may read `facts`."""

    def __init__(
        self,
        post: Callable[[Callable[[], None]], None],
        evaluation: Callable[[], Evaluation],
        model: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Start without a timer: the node calls `request`.

        Args:
            post: runs a job on the thread that owns the evaluation.
            evaluation: returns the current evaluation.
            model: returns the current description of the model.
        """
        self.facts: dict[str, str] = {}
        self._post = post
        self._evaluation = evaluation
        self._model = model
        self._judged: tuple[int, int, int] | None = None
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
        state = (id(evaluation), evaluation.frames()["read"], id(model))
        if state == self._judged:
            return
        self.facts = facts(judge(evaluation, model, None))
        self._judged = state
