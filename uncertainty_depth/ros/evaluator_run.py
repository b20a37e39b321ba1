# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A run of the evaluator node: scores messages on a thread of its own while it is configured."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from std_msgs.msg import String

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.online_calibration import PREDICTION, read_info, status_values
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.records import Skipped
from uncertainty_depth.report.requirements import Requirement, requirements_of
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.evaluator_inputs import Step
from uncertainty_depth.ros.evaluator_options import check_options, check_output, differ
from uncertainty_depth.ros.evaluator_reports import EvaluatorReports
from uncertainty_depth.ros.extrinsics import Extrinsics, create_extrinsics
from uncertainty_depth.ros.ground_truth_topics import ground_truth_topics
from uncertainty_depth.ros.live_calibration import LiveCalibration
from uncertainty_depth.ros.live_evaluation import LiveEvaluation
from uncertainty_depth.ros.live_verdict import LiveVerdict
from uncertainty_depth.ros.model_description import held_out_rule, model_description
from uncertainty_depth.ros.pair_scorer import Scored
from uncertainty_depth.ros.pooled_metrics import PooledMetrics
from uncertainty_depth.ros.predictions import INFO_TOPIC
from uncertainty_depth.ros.run_state import RunState
from uncertainty_depth.ros.run_status import RunStatus
from uncertainty_depth.ros.score_outputs import ScoreOutputs
from uncertainty_depth.ros.worker import Worker

LOG_EVERY_S = 5.0
logger = logging.getLogger(__name__)
STREAMS_OF_PREDICTIONS = 3
"""Topics that share the queue with those of ground truth."""


class EvaluatorRun:
    """Scores queued messages on a thread of its own, which owns the evaluation.

    Attributes:
        config: parameters in use.
        live: the evaluation, and the messages that wait.
        reports: writes reports and states.
        status: what the diagnostics say of the run.
        worker: queues messages and jobs.
    """

    def __init__(
        self,
        node: Node,
        health: Health,
        config: EvaluatorNodeConfig,
        outputs: ScoreOutputs,
        source: Callable[[], str],
    ) -> None:
        """Check parameters and output folder, and load the state of a run to be resumed.

        Args:
            node: whose clock, log and tf are used.
            health: counts scored and skipped frames.
            config: parameters at the start.
            outputs: where scores are published.
            source: returns what the report calls its source.

        Raises:
            ConfigError: a parameter is illegal, or neither lidar_to_camera nor tf2 is there.
            SourceError: the report could not be written, or a saved state cannot be resumed.
        """
        self._requirements = requirements_of(config)
        check_options(config)
        check_output(config)
        self.config = config
        self._node = node
        self._health = health
        self._outputs = outputs
        self._state, self.live = _start_or_resume(node, config, self._is_described)
        self.worker: Worker[Step] = Worker(
            self._take, lambda _, reason: health.drop(reason), _capacity(config)
        )
        self.reports = EvaluatorReports(
            node,
            health,
            self.live,
            self.worker,
            self._state,
            source,
            lambda: self._requirements,
        )
        self._pooled = PooledMetrics(node, outputs, self.worker.post, lambda: self.live.evaluation)
        self._calibration = LiveCalibration(node, config)
        self._verdict = LiveVerdict(
            self.worker.post,
            lambda: self.live.evaluation,
            lambda: self.reports.model,
            lambda: self._requirements,
        )
        self.status = RunStatus(health, self.live, self.worker, self._calibration, self._verdict)

    def on_timer(self) -> None:
        """Publish the pooled metrics, judge them, and save the state of the run; every second."""
        self._pooled.request()
        self._verdict.request()
        self.worker.post(self.reports.save_state)

    def on_model(self, message: String) -> None:
        """Store the model's description, and which depth it holds out for scoring."""
        try:
            description = model_description(message.data)
            rule = held_out_rule(description)
        except MessageError as error:
            self._node.get_logger().warning(f"{error}: the report will not name the model")
            return
        self.reports.model = description
        self.worker.post(partial(self.live.set_held_out, rule))

    def on_prediction_info(self, message: DiagnosticArray) -> None:
        """Queue the description of how a prediction was made."""
        try:
            info = read_info(status_values(message.status, PREDICTION))
        except MessageError as error:
            self._node.get_logger().warning(
                f"{INFO_TOPIC} is ignored: {error}", throttle_duration_sec=LOG_EVERY_S
            )
            return
        step = partial(self.live.add_prediction_info, stamp_ns(message.header), info)
        self.worker.post(partial(self._take, step))

    def _is_described(self) -> bool:
        """Return whether a node publishes how predictions are made; nobody does at the end."""
        return (
            self._node.context.ok()
            and self._node.count_publishers(self._node.resolve_topic_name(INFO_TOPIC)) > 0
        )

    def reset(self) -> None:
        """Discard all scores and counts."""
        self.worker.call(self._reset).result()

    def finish(self) -> str:
        """Score what has arrived, write the report, return a summary line.

        Raises:
            SourceError: the report cannot be written.
        """
        self._score_waiting()
        report_text = self.reports.write_last(self.config)
        evaluation = self.live.evaluation
        counts = [f"{evaluation.evaluated} frames scored"]
        counts += [f"{count} {reason}" for reason, count in evaluation.skipped.items()]
        return ", ".join(counts) + report_text

    def _score_waiting(self) -> None:
        """Score what waits; whatever that raises, the report of the others is to be written."""
        try:
            self.worker.call(partial(self._take, self.live.finish)).result()
        except Exception:
            logger.exception("the frames that waited were not all scored")

    def release(self) -> None:
        """End the threads and drop all queued messages."""
        self.reports.close()
        self.worker.stop()
        self._pooled.close()
        self._calibration.close()
        self.live.extrinsics.close()

    def prepare(self, old: EvaluatorNodeConfig, new: EvaluatorNodeConfig) -> Callable[[], None]:
        """Check new parameters, and return what applies them."""
        requirements = requirements_of(new)
        check_options(new)
        if new.output != old.output:
            check_output(replace(new, resume=False))
        folder = None
        if self.live.starts_anew(new):
            folder = self.reports.earlier_folder(old.output or new.output)
        extrinsics = self.live.extrinsics
        if differ(old, new, "lidar_to_camera", "fixed_frame", "use_ground_truth_image"):
            extrinsics = create_extrinsics(self._node, new, new.use_ground_truth_image, new.lidars)

        def apply() -> None:
            try:
                job = partial(self._reconfigure, new, extrinsics, requirements, folder)
                self.worker.call(job).result()
            except Exception:
                if extrinsics is not self.live.extrinsics:
                    extrinsics.close()
                raise

        return apply

    def _reconfigure(
        self,
        config: EvaluatorNodeConfig,
        extrinsics: Extrinsics,
        requirements: tuple[Requirement, ...],
        folder: Path | None,
    ) -> None:
        """Apply new parameters on the worker's thread, once earlier messages are scored.

        What may fail comes first: then nothing has changed.
        """
        if self.live.starts_anew(config):
            self._take(self.live.finish)
        evaluation = self.live.new_evaluation(config)
        self._state.reconfigure(config, evaluation or self.live.evaluation)
        if evaluation is not None:
            self.reports.save_earlier(folder)
            self.reports.start_anew()
        previous = self.live.extrinsics
        self.live.reconfigure(config, extrinsics, evaluation)
        self.worker.capacity = _capacity(config)
        self._calibration.reconfigure(config)
        self.config = config
        self._requirements = requirements
        if previous is not extrinsics:
            previous.close()

    def _reset(self) -> None:
        self.live.reset()
        self.status.recent.clear()
        self.reports.start_anew()

    def _take(self, step: Step) -> None:
        """Process a message on the worker's thread, and publish the frames that it completes."""
        notes_before = len(self.live.camera_notes)
        for result in step():
            self._publish(result)
        for note in self.live.camera_notes[notes_before:]:
            self._node.get_logger().warning(note)

    def _publish(self, result: Scored | Skipped) -> None:
        if isinstance(result, Scored):
            self._health.count("evaluated")
            self.status.recent.append(result.metrics)
        else:
            self._health.count(f"skipped.{result.reason}")
        if not self._node.context.ok():
            return  # shutting down: the report has the counts
        if isinstance(result, Scored):
            self._outputs.publish_frame(result, self.config)
            if not self.live.interpreter.without_size:
                self._calibration.add(result, self._is_described())
        else:
            self._node.get_logger().warning(
                f"not scored ({result.reason}): {result.message}",
                throttle_duration_sec=LOG_EVERY_S,
            )
        if warnings := self.live.geometry.warnings():
            self._node.get_logger().warning("; ".join(warnings), throttle_duration_sec=LOG_EVERY_S)


def _capacity(config: EvaluatorNodeConfig) -> int:
    """Return the size of the queue: `queue_size` messages of each topic."""
    return (STREAMS_OF_PREDICTIONS + len(ground_truth_topics(config))) * config.queue_size


def _start_or_resume(
    node: Node, config: EvaluatorNodeConfig, is_described: Callable[[], bool]
) -> tuple[RunState, LiveEvaluation]:
    """Return the saved state of the run and its evaluation, both new where none is resumed."""
    extrinsics = create_extrinsics(node, config, config.use_ground_truth_image, config.lidars)
    try:
        state = RunState(config)
        evaluation = None if state.resumed is None else state.resumed.evaluation
        live = LiveEvaluation(config, extrinsics, state.create_table, evaluation, is_described)
        return state, live
    except Exception:
        extrinsics.close()
        raise
