# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The reports of the evaluator node's runs, and the state that a killed run is resumed from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from copy import deepcopy
from pathlib import Path
from typing import Any

from rclpy.node import Node

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.requirements import Requirement
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.live_evaluation import LiveEvaluation
from uncertainty_depth.ros.report_writer import ReportWriter
from uncertainty_depth.ros.run_notes import RunNotes
from uncertainty_depth.ros.run_state import RunState
from uncertainty_depth.ros.worker import Worker

LOG_EVERY_S = 5.0
logger = logging.getLogger(__name__)


class EvaluatorReports:
    """Writes reports and states from copies of the evaluation, which continues meanwhile.

    Attributes:
        model: description of the model that predicts, for the report; empty while unknown.
        notes: what else a report tells.
        writer: draws reports in another process.
    """

    def __init__(
        self,
        node: Node,
        health: Health,
        live: LiveEvaluation,
        worker: Worker,
        state: RunState,
        source: Callable[[], str],
        requirements: Callable[[], tuple[Requirement, ...]],
    ) -> None:
        """Start, or continue the run that was resumed.

        Args:
            node: whose log is written to.
            health: counts lost messages.
            live: holds the evaluation.
            worker: its thread owns the evaluation.
            state: where the state is written.
            source: returns what the report calls its source.
            requirements: returns the limits that the metrics must keep.
        """
        self._node = node
        self._live = live
        self._worker = worker
        self._state = state
        self._source = source
        self._requirements = requirements
        self._saved_frames = -1
        self._earlier_runs = 0
        self.model: Mapping[str, Any] = {}
        self.notes = RunNotes(health, state.resumed)
        self.writer = ReportWriter()
        if state.resumed is not None:
            self.model = state.resumed.details["model"]
            frames = state.resumed.evaluation.evaluated
            node.get_logger().info(f"resumed with {frames} frames scored before")

    def start_anew(self) -> None:
        """Start a new run: forget earlier losses."""
        self.notes.start_anew()
        self._saved_frames = -1

    def save(self, output: str) -> Path:
        """Write a report of the frames scored so far; waiting ones are only counted.

        Raises:
            ConfigError: no output is set.
            SourceError: the report cannot be written.
        """
        if not output:
            raise ConfigError("the parameter output is empty; expected a folder for the report")
        evaluation, context = self._worker.call(self._copy).result()
        return self.writer.submit(evaluation, Path(output), context).result()

    def save_state(self) -> None:
        """Write the state of the run if it has new frames; runs on the worker's thread."""
        evaluation = self._live.evaluation
        frames = evaluation.frames()["read"]
        if not self._state.is_ready or frames == self._saved_frames:
            return
        self._saved_frames = frames
        details = {"model": dict(self.model), "losses": self.notes.losses()}
        self._state.save(deepcopy(evaluation), details, self._log_state_failure)

    def earlier_folder(self, output: str) -> Path | None:
        """Return the folder for the report of a run that new options end; None without output."""
        if not output:
            return None
        self._earlier_runs += 1
        while (folder := Path(output) / f"earlier_{self._earlier_runs}").exists():
            self._earlier_runs += 1
        return folder

    def save_earlier(self, folder: Path | None) -> None:
        """Write the report of the run that ends; runs on the worker's thread."""
        evaluation, context = self._copy()
        if not evaluation.frames()["read"]:
            return
        place = f"are written to {folder}" if folder else "are lost, as output is empty"
        frames = f"those of the {evaluation.evaluated} frames so far {place}"
        self._node.get_logger().warning(f"a scoring parameter changed: scores restart; {frames}")
        if folder is not None:
            self.writer.submit(evaluation, folder, context).add_done_callback(self._log_failure)

    def write_last(self, config: EvaluatorNodeConfig) -> str:
        """Write the report of the finished run, numbers before plots; return its path as text.

        Whoever stops a node may not wait for the plots. The state is deleted with the numbers
        written.

        Raises:
            SourceError: the report cannot be written; the state stays.
        """
        self.close()  # else an older report or state could replace this one
        if not config.output:
            return ""
        folder = Path(config.output)
        page = report.write(self._live.evaluation, folder, self._context(), images=False)
        try:
            page = report.write(self._live.evaluation, folder, self._context())
        except Exception:  # the numbers are written
            logger.exception("the plots of the report cannot be drawn")
        self._state.remove()  # only now: it holds the table of frames
        return f", report: {page}"

    def close(self) -> None:
        """Finish the reports and the state that are being written."""
        self.writer.close()
        self._state.close()

    def _copy(self) -> tuple[Evaluation, report.Context]:
        return deepcopy(self._live.evaluation), self._context()

    def _context(self) -> report.Context:
        geometry = self._live.geometry.summary()
        notes = self.notes.notes(self._live)
        return report.Context(
            self._source(),
            self.model,
            notes,
            geometry=geometry,
            requirements=self._requirements(),
        )

    def _log_failure(self, future: Future) -> None:
        if (error := future.exception()) is not None:
            self._node.get_logger().error(f"the scores before the change are not saved: {error}")

    def _log_state_failure(self, sentence: str) -> None:
        if self._node.context.ok():
            self._node.get_logger().error(sentence, throttle_duration_sec=LOG_EVERY_S)
