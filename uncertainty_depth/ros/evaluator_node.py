# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node: scores predictions against LiDAR or ground truth images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.executors import Executor, MultiThreadedExecutor
from std_msgs.msg import String
from std_srvs.srv import Trigger

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.ros.diagnostics import DiagnosticsPublisher
from uncertainty_depth.ros.evaluator_inputs import EvaluatorInputs
from uncertainty_depth.ros.evaluator_options import differ
from uncertainty_depth.ros.evaluator_run import EvaluatorRun
from uncertainty_depth.ros.ground_truth_topics import ground_truth_topics
from uncertainty_depth.ros.guarded import reason_of
from uncertainty_depth.ros.input_watch import InputWatch
from uncertainty_depth.ros.managed_node import ACTIVE, ManagedNode
from uncertainty_depth.ros.predictions import INFO_TOPIC
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS
from uncertainty_depth.ros.score_outputs import ScoreOutputs
from uncertainty_depth.ros.teardown import take_down
from uncertainty_depth.ros.watched_input import WatchedInput

PERIOD_S = 1.0
"""Time between two publications of the pooled metrics, and between two states on disk."""


class EvaluatorNode(ManagedNode[EvaluatorNodeConfig]):
    """Queues messages in callbacks; one worker thread owns the evaluation.

    Services wait for the worker on an executor thread of their own. Configured, the node holds a
    run; active, it subscribes; cleanup ends the run and writes its report.
    """

    def __init__(self, **options: Any) -> None:
        """Offer the services; with `autostart` check parameters and output, then subscribe.

        Raises:
            ConfigError: a parameter is illegal, or neither lidar_to_camera nor tf2 is there.
            SourceError: the report could not be written, or a saved state cannot be resumed.
        """
        super().__init__("evaluator_node", EvaluatorNodeConfig, **options)
        self._outputs = ScoreOutputs(self)
        self._run: EvaluatorRun | None = None
        self._inputs: EvaluatorInputs | None = None
        self._watch = InputWatch(self, self._watched)
        self._diagnostics = DiagnosticsPublisher(
            self, self.health, self._awaited, self._facts, self.standing, self._problems
        )
        services = MutuallyExclusiveCallbackGroup()
        self.create_service(Trigger, "~/reset", self._on_reset, callback_group=services)
        self.create_service(Trigger, "~/save", self._on_save, callback_group=services)
        self.create_subscription(String, "depth/model", self._on_model, LATCHED_QOS)
        self.create_subscription(DiagnosticArray, INFO_TOPIC, self._on_prediction_info, OUTPUT_QOS)
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(PERIOD_S, self._on_timer, clock=clock)
        self.autostart()

    @staticmethod
    def create_executor(context: Context | None = None) -> Executor:
        """Return an executor for such a node: one thread for messages, one for services."""
        return MultiThreadedExecutor(2, context=context)

    def _configure(self) -> None:
        """Start a run, or continue one that was killed; see `EvaluatorRun` for what it raises."""
        self._run = EvaluatorRun(self, self.health, self.config, self._outputs, self._source)

    def _activate(self) -> None:
        """Subscribe to predictions and ground truth."""
        run = self._configured_run()
        self._inputs = EvaluatorInputs(self, self.health, self.config, run.live, run.worker.put)

    def _deactivate(self) -> None:
        """Unsubscribe; received messages are still scored, and the run may continue later."""
        inputs = self._inputs
        self._inputs = None
        if inputs is not None:
            inputs.close()

    def _free(self) -> None:
        """End the run, and write its report.

        Raises:
            SourceError: the report cannot be written; the state of the run stays on disk.
        """
        run = self._run
        self._run = None
        if run is None:
            return
        try:
            self.get_logger().info(run.finish())
        finally:
            run.release()

    def _configured_run(self) -> EvaluatorRun:
        """Return the run; raise `ConfigError` unless the node is configured."""
        run = self._run
        if run is None:
            raise ConfigError(f"the node is {self.state}; expected it to be configured")
        return run

    def _watched(self) -> tuple[WatchedInput, ...]:
        return () if self._inputs is None else self._inputs.watched()

    def _on_model(self, message: String) -> None:
        if self._run is not None:
            self._run.on_model(message)

    def _on_prediction_info(self, message: DiagnosticArray) -> None:
        if self._run is not None:
            self._run.on_prediction_info(message)

    def _on_timer(self) -> None:
        if self._run is not None:
            self._run.on_timer()

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        def reset() -> str:
            self._configured_run().reset()
            return "scores and counts are reset"

        return _answer(response, reset)

    def _on_save(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        def save() -> str:
            return str(self._configured_run().reports.save(self.config.output))

        return _answer(response, save)

    def _source(self) -> str:
        depth = self.resolve_topic_name("depth/image_rect")
        topics = map(self.resolve_topic_name, ground_truth_topics(self.config))
        return f"live: {depth} against {', '.join(topics)}"

    def _prepare(self, old: EvaluatorNodeConfig, new: EvaluatorNodeConfig) -> Callable[[], None]:
        """Check new parameters, and return what applies them."""
        run = self._configured_run()
        reconfigure = run.prepare(old, new)
        has_new_input = differ(old, new, "use_ground_truth_image", "reliable_input", "queue_size")

        def apply() -> None:
            if not has_new_input or self._inputs is None:
                reconfigure()
                return
            with self._inputs.replacement(new):
                reconfigure()

        return apply

    def _awaited(self) -> tuple[str, ...]:
        if self.state != ACTIVE:
            return ()
        inputs = ("depth/image_rect", "uncertainty/image_rect", *ground_truth_topics(self.config))
        return (*(f"received.{topic}" for topic in inputs), "evaluated")

    def _facts(self) -> dict[str, object]:
        facts: dict[str, object] = {"state": self.state}
        return facts if self._run is None else facts | self._run.status.facts()

    def _problems(self) -> tuple[str, ...]:
        of_run = () if self._run is None else self._run.status.problems()
        return (*self._watch.problems, *of_run)

    def close(self) -> str:
        """Shut down: score what has arrived, write the report, return a summary line.

        After a `KeyboardInterrupt` nothing is waited for: the process is about to end.

        Raises:
            SourceError: the report cannot be written.
        """
        run = self._run
        try:
            return "no run was configured" if run is None else run.finish()
        finally:
            if run is not None:
                run.release()
            take_down(self.destroy_node)


def _answer(response: Trigger.Response, act: Callable[[], str]) -> Trigger.Response:
    """Return the response with the text of `act`, or with the reason of its failure."""
    try:
        response.message = act()
        response.success = True
    except Exception as error:  # the caller must get an answer
        response.success = False
        response.message = reason_of(error)
    return response
