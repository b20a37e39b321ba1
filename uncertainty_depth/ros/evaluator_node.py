# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node: scores predictions against LiDAR or ground truth images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.executors import Executor, MultiThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.records import Skipped
from uncertainty_depth.ros.diagnostics import DiagnosticsPublisher, Health
from uncertainty_depth.ros.evaluator_inputs import GROUND_TRUTH, EvaluatorInputs, Step
from uncertainty_depth.ros.evaluator_options import check_options, check_output, differ
from uncertainty_depth.ros.evaluator_reports import EvaluatorReports
from uncertainty_depth.ros.extrinsics import Extrinsics, create_extrinsics
from uncertainty_depth.ros.input_watch import InputWatch
from uncertainty_depth.ros.live_evaluation import LiveEvaluation, Scored
from uncertainty_depth.ros.live_verdict import LiveVerdict
from uncertainty_depth.ros.model_description import model_description
from uncertainty_depth.ros.parameters import NodeParameters
from uncertainty_depth.ros.pooled_metrics import PooledMetrics
from uncertainty_depth.ros.run_state import RunState
from uncertainty_depth.ros.score_outputs import ScoreOutputs
from uncertainty_depth.ros.teardown import take_down
from uncertainty_depth.ros.worker import Worker

LOG_EVERY_S = 5.0
PERIOD_S = 1.0
"""Time between two publications of the pooled metrics, and between two states on disk."""
STREAMS = 4
"""Topics that share the queue: it has room for `queue_size` messages of each."""


class EvaluatorNode(Node):
    """Queues messages in callbacks; one worker thread owns the evaluation.

    Services wait for the worker on an executor thread of their own.
    """

    def __init__(self, **options: Any) -> None:
        """Check parameters, output folder and saved state, then subscribe.

        Raises:
            ConfigError: a parameter is illegal, or neither lidar_to_camera nor tf2 is there.
            SourceError: the report could not be written, or a saved state cannot be resumed.
        """
        super().__init__("evaluator_node", **options)
        self._options = NodeParameters(self, EvaluatorNodeConfig, self._prepare)
        config = self.config
        check_options(config)
        check_output(config)
        self.health = Health()
        extrinsics = create_extrinsics(self, config.lidar_to_camera, config.use_ground_truth_image)
        self._state = RunState(config)
        resumed = self._state.resumed
        self._live = LiveEvaluation(
            config,
            extrinsics,
            self._state.create_table,
            None if resumed is None else resumed.evaluation,
        )
        self._worker: Worker[Step] = Worker(
            self._take, lambda _, reason: self.health.drop(reason), STREAMS * config.queue_size
        )
        self._reports = EvaluatorReports(
            self, self.health, self._live, self._worker, self._state, self._source
        )
        self._outputs = ScoreOutputs(self, self._live.evaluation)
        self._pooled = PooledMetrics(
            self, self._outputs, self._worker.post, lambda: self._live.evaluation
        )
        self._verdict = LiveVerdict(
            self, self._worker.post, lambda: self._live.evaluation, lambda: self._reports.model
        )
        self._diagnostics = DiagnosticsPublisher(self, self.health, self._awaited, self._facts)
        self._inputs = EvaluatorInputs(self, self.health, config, self._live, self._worker.put)
        self._inputs.subscribe_model(self._on_model)
        self._watch = InputWatch(self, self._inputs.watched)
        services = MutuallyExclusiveCallbackGroup()
        self.create_service(Trigger, "~/reset", self._on_reset, callback_group=services)
        self.create_service(Trigger, "~/save", self._on_save, callback_group=services)
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(PERIOD_S, self._on_timer, clock=clock)

    @property
    def config(self) -> EvaluatorNodeConfig:
        """The parameters in use."""
        return self._options.config

    @staticmethod
    def create_executor(context: Context | None = None) -> Executor:
        """Return an executor for such a node: one thread for messages, one for services."""
        return MultiThreadedExecutor(2, context=context)

    def _on_model(self, message: String) -> None:
        try:
            self._reports.model = model_description(message.data)
        except MessageError as error:
            self.get_logger().warning(f"{error}: the report will not name the model")

    def _on_timer(self) -> None:
        self._pooled.request()
        self._worker.post(self._reports.save_state)

    def _take(self, step: Step) -> None:
        """On the worker's thread: take in a message, and tell what it decided."""
        notes_before = len(self._live.camera_notes)
        for result in step():
            self._tell(result)
        for note in self._live.camera_notes[notes_before:]:
            self.get_logger().warning(note)

    def _tell(self, result: Scored | Skipped) -> None:
        if isinstance(result, Scored):
            self.health.count("evaluated")
        else:
            self.health.count(f"skipped.{result.reason}")
        if not self.context.ok():
            return  # shutting down: the report tells it
        if isinstance(result, Scored):
            self._outputs.publish_frame(result, self.config)
        else:
            self.get_logger().warning(
                f"not scored ({result.reason}): {result.message}",
                throttle_duration_sec=LOG_EVERY_S,
            )
        if warnings := self._live.geometry.warnings():
            self.get_logger().warning("; ".join(warnings), throttle_duration_sec=LOG_EVERY_S)

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._worker.call(self._reset).result()
        response.success = True
        response.message = "scores and counts start anew"
        return response

    def _reset(self) -> None:
        self._live.reset()
        self._reports.start_anew()

    def _on_save(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            response.message = str(self._reports.save(self.config.output))
            response.success = True
        except Exception as error:  # the caller must get an answer
            response.success = False
            response.message = str(error) or type(error).__name__
        return response

    def _source(self) -> str:
        depth = self.resolve_topic_name("depth/image_rect")
        return f"live: {depth} against {self._inputs.ground_truth.name}"

    def _prepare(self, old: EvaluatorNodeConfig, new: EvaluatorNodeConfig) -> Callable[[], None]:
        """Check new parameters, and return what applies them."""
        check_options(new)
        if new.output != old.output:
            check_output(replace(new, resume=False))
        folder = None
        if self._live.starts_anew(new):
            folder = self._reports.earlier_folder(old.output or new.output)
        extrinsics = self._live.extrinsics
        if differ(old, new, "lidar_to_camera", "use_ground_truth_image"):
            extrinsics = create_extrinsics(self, new.lidar_to_camera, new.use_ground_truth_image)

        def apply() -> None:
            self._worker.capacity = STREAMS * new.queue_size
            self._worker.post(partial(self._reconfigure, new, extrinsics, folder))
            if differ(old, new, "use_ground_truth_image", "reliable_input", "queue_size"):
                self._inputs.replace_ground_truth(new)

        return apply

    def _reconfigure(
        self, config: EvaluatorNodeConfig, extrinsics: Extrinsics, folder: Path | None
    ) -> None:
        """On the worker's thread, once everything received before the change is scored."""
        previous = self._live.extrinsics
        starts_anew = self._live.starts_anew(config)
        if starts_anew:
            self._take(self._live.finish)
            self._reports.save_earlier(folder)
        self._live.reconfigure(config, extrinsics)
        self._state.reconfigure(config, self._live.evaluation)
        if starts_anew:
            self._reports.start_anew()
        if previous is not extrinsics:
            previous.close()

    def _awaited(self) -> tuple[str, ...]:
        _, ground_truth = GROUND_TRUTH[self.config.use_ground_truth_image]
        return (
            "received.depth/image_rect",
            "received.uncertainty/image_rect",
            f"received.{ground_truth}",
            "evaluated",
        )

    def _facts(self) -> dict[str, object]:
        pairing = {f"pairing.{name}": count for name, count in self._live.pairing_counts.items()}
        return {
            **pairing,
            "waiting": self._worker.waiting(),
            "undecided": self._live.waiting,
            **self._verdict.facts,
        }

    def close(self) -> str:
        """Shut down: score what has arrived, write the report, return a summary line.

        After a `KeyboardInterrupt` nothing is waited for: the process is about to end.

        Raises:
            SourceError: the report cannot be written.
        """
        try:
            self._worker.call(partial(self._take, self._live.finish)).result()
            written = self._reports.write_last(self.config)
        except Exception:
            self._release()
            raise
        self._release()
        evaluation = self._live.evaluation
        counts = [f"{evaluation.evaluated} frames scored"]
        counts += [f"{count} {reason}" for reason, count in evaluation.skipped.items()]
        return ", ".join(counts) + written

    def _release(self) -> None:
        self._reports.close()
        self._worker.stop()
        self._pooled.close()
        take_down(self.destroy_node)
