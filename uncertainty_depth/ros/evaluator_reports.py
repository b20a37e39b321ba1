# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Reports, verdicts and all-frame metrics, made from snapshots while scoring continues."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

from rclpy.node import Node

from uncertainty_depth.report import report
from uncertainty_depth.report.bootstrap import Resampled
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.report import Context, metrics_with_intervals
from uncertainty_depth.report.requirements import FAIL, outcome
from uncertainty_depth.report.verdict import facts, judge
from uncertainty_depth.ros.evaluator_outputs import EvaluatorOutputs

JUDGE_EVERY_S = 5.0
"""Judging takes 0.1 s, whatever the number of frames."""
STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
logger = logging.getLogger(__name__)


def write_in_process(evaluation: Evaluation, folder: Path, context: Context) -> Path:
    """Write a report in a separate process, which Ctrl-C does not stop.

    Plotting holds the interpreter lock for seconds: in a thread it would slow down scoring.

    Raises:
        SourceError: the report cannot be written.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork would share the middleware's locks
    with ProcessPoolExecutor(1, spawn) as pool:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # the child inherits it
        try:
            future = pool.submit(report.write, evaluation, folder, context)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return future.result()


def write_last(evaluation: Evaluation, folder: Path, context: Context) -> Path:
    """Write the report of a finished run in this process: numbers first, then the plots.

    A stopped node may be killed before the plots are done.

    Raises:
        SourceError: the numbers cannot be written.
    """
    page = report.write(evaluation, folder, context, images=False)
    try:
        page = report.write(evaluation, folder, context)
    except Exception:  # the numbers are written
        logger.exception("the plots of the report cannot be drawn")
    return page


class EvaluatorReports:
    """Works on copies of the evaluation, on threads beside the one that scores.

    Attributes:
        verdict: the verdict's lines, and PASS or FAIL for each requirement.
        failures: a sentence for each requirement that is not met.
    """

    def __init__(self, node: Node, outputs: EvaluatorOutputs) -> None:
        """Start without a copy.

        Args:
            node: node whose log is written to.
            outputs: publishes the metrics of all frames.
        """
        self.verdict: dict[str, str] = {}
        self.failures: tuple[str, ...] = ()
        self._node = node
        self._outputs = outputs
        self._summaries = ThreadPoolExecutor(1, "summary")
        self._files = ThreadPoolExecutor(1, "report")
        self._summary: Future | None = None
        self._judged: tuple[int, int] | None = None
        self._judged_s = time.monotonic()

    def summarize(self, evaluation: Evaluation, context: Context) -> None:
        """Publish the metrics of all frames if anybody listens, and judge them every 5 s.

        Called once a second; does nothing while the previous call is at work.
        """
        is_busy = self._summary is not None and not self._summary.done()
        state = (id(evaluation), evaluation.frames()["read"])
        is_due = time.monotonic() - self._judged_s >= JUDGE_EVERY_S and state != self._judged
        has_readers = self._outputs.has_pooled_subscribers and evaluation.evaluated
        if is_busy or not (is_due or has_readers):
            return
        if is_due:
            self._judged = state
            self._judged_s = time.monotonic()
        copy = deepcopy(evaluation)
        self._summary = self._summaries.submit(self._summarize, copy, context, is_due)

    def _summarize(self, evaluation: Evaluation, context: Context, is_due: bool) -> None:
        try:
            if evaluation.evaluated:
                self._outputs.publish_pooled(evaluation.metrics)
            if is_due:
                self._judge(evaluation, context)
        except Exception:
            if self._node.context.ok():  # else the node was stopped meanwhile
                logger.exception("metrics of all frames were not published")

    def _judge(self, evaluation: Evaluation, context: Context) -> None:
        sample = Resampled(evaluation.metrics) if evaluation.evaluated else None
        results = []
        if context.requirements:  # else no interval of a metric is computed
            metrics = metrics_with_intervals(evaluation, sample)
            results = [outcome(requirement, metrics) for requirement in context.requirements]
        self.failures = tuple(
            f"requirement not met: {result.text.removeprefix(FAIL)}"
            for result in results
            if not result.passed
        )
        self.verdict = {
            **facts(judge(evaluation, context.model, None, sample)),
            **{f"requirement.{result.requirement}": result.text for result in results},
        }

    def save(self, evaluation: Evaluation, folder: Path, context: Context) -> None:
        """Write a copy's report, and return at once; the log says when it is written."""
        future = self._files.submit(write_in_process, deepcopy(evaluation), folder, context)
        future.add_done_callback(self._log)

    def _log(self, future: Future) -> None:
        if not self._node.context.ok():
            return
        if (error := future.exception()) is not None:
            self._node.get_logger().error(f"the report is not written: {error}")
        else:
            self._node.get_logger().info(f"report: {future.result()}")

    def close(self) -> None:
        """Finish what is being written: an older report could replace a later one."""
        self._files.shutdown()
        self._summaries.shutdown()
