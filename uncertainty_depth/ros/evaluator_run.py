# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All that the evaluator node holds while it is configured: the scores and who works on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from rclpy.node import Node
from std_msgs.msg import String

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.evaluation.requirements import Requirement, requirements_of
from uncertainty_depth.records import Skipped
from uncertainty_depth.ros.diagnostics import LATE_AFTER_S, Health
from uncertainty_depth.ros.evaluator_inputs import GROUND_TRUTH, Step
from uncertainty_depth.ros.evaluator_options import check_options, check_output, differ
from uncertainty_depth.ros.evaluator_reports import EvaluatorReports
from uncertainty_depth.ros.extrinsics import Extrinsics, create_extrinsics
from uncertainty_depth.ros.live_calibration import LiveCalibration
from uncertainty_depth.ros.live_evaluation import LiveEvaluation, Scored
from uncertainty_depth.ros.live_verdict import LiveVerdict
from uncertainty_depth.ros.model_description import held_out_rule, model_description
from uncertainty_depth.ros.pooled_metrics import PooledMetrics
from uncertainty_depth.ros.run_state import RunState
from uncertainty_depth.ros.score_outputs import ScoreOutputs
from uncertainty_depth.ros.worker import Worker

LOG_EVERY_S = 5.0
RECENT_FRAMES = 100
COVERAGE = "uncertainty.coverage_"
STREAMS = 4
"""Topics that share the queue: it has room for `queue_size` messages of each."""


class EvaluatorRun:
    """Scores queued messages on a thread of its own, which owns the evaluation.

    Attributes:
        config: parameters in use.
        live: the evaluation, and the messages that wait.
        reports: writes reports and states.
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
            health: counts what becomes of frames.
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
        self._recent: deque[dict[str, float]] = deque(maxlen=RECENT_FRAMES)
        self._node = node
        self._health = health
        self._outputs = outputs
        extrinsics = create_extrinsics(node, config, config.use_ground_truth_image)
        try:
            self._state = RunState(config)
            resumed = self._state.resumed
            self.live = LiveEvaluation(
                config,
                extrinsics,
                self._state.create_table,
                None if resumed is None else resumed.evaluation,
            )
        except Exception:
            extrinsics.close()
            raise
        self.worker: Worker[Step] = Worker(
            self._take, lambda _, reason: health.drop(reason), STREAMS * config.queue_size
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

    def on_timer(self) -> None:
        """Once a second: publish the pooled metrics, judge them, save the state of the run."""
        self._pooled.request()
        self._verdict.request()
        self.worker.post(self.reports.save_state)

    def on_model(self, message: String) -> None:
        """Take the description of the model that predicts, and what it was not given."""
        try:
            description = model_description(message.data)
            rule = held_out_rule(description)
        except MessageError as error:
            self._node.get_logger().warning(f"{error}: the report will not name the model")
            return
        self.reports.model = description
        self.worker.post(partial(self.live.set_held_out, rule))

    def reset(self) -> None:
        """Discard all scores and counts."""
        self.worker.call(self._reset).result()

    def problems(self) -> tuple[str, ...]:
        """Return sentences of what is wrong with the scores; requirements not met come last."""
        apart_s = self.live.clocks_apart_s
        _, topic = GROUND_TRUTH[self.config.use_ground_truth_image]
        warnings = tuple(self.live.geometry.warnings())
        failures = self._verdict.failures
        if apart_s is None or self._health.age(f"received.{topic}") > LATE_AFTER_S:
            return (*warnings, *failures)
        sentence = (
            f"the stamps of {topic} nearest to those of depth/image_rect are {apart_s:+.3f} s "
            f"away, more than max_time_difference {self.config.max_time_difference} s: the clocks "
            "are apart (chrony, PTP), or messages are lost"
        )
        return (*warnings, sentence, *failures)

    def facts(self) -> dict[str, object]:
        """Return what the diagnostics tell of this run."""
        pairing = {f"pairing.{name}": count for name, count in self.live.pairing_counts.items()}
        return {
            **pairing,
            "waiting": self.worker.waiting(),
            "undecided": self.live.waiting,
            **self._calibration.facts(),
            **self._recent_coverage(),
            **self._verdict.facts,
        }

    def _recent_coverage(self) -> dict[str, str]:
        """Return the fraction of errors within their interval, over the last frames."""
        frames = list(self._recent)
        names = [name for name in (frames[-1] if frames else ()) if COVERAGE in name]
        return {
            f"recent_{name.split('.', 1)[1]}": f"{np.mean([frame[name] for frame in frames]):.3f}"
            for name in names
        }

    def finish(self) -> str:
        """Score what has arrived, write the report, return a summary line.

        Raises:
            SourceError: the report cannot be written.
        """
        self.worker.call(partial(self._take, self.live.finish)).result()
        written = self.reports.write_last(self.config)
        evaluation = self.live.evaluation
        counts = [f"{evaluation.evaluated} frames scored"]
        counts += [f"{count} {reason}" for reason, count in evaluation.skipped.items()]
        return ", ".join(counts) + written

    def release(self) -> None:
        """End the threads; what waits is dropped."""
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
            extrinsics = create_extrinsics(self._node, new, new.use_ground_truth_image)

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
        """On the worker's thread, once everything received before the change is scored.

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
        self.worker.capacity = STREAMS * config.queue_size
        self._calibration.reconfigure(config)
        self.config = config
        self._requirements = requirements
        if previous is not extrinsics:
            previous.close()

    def _reset(self) -> None:
        self.live.reset()
        self._recent.clear()
        self.reports.start_anew()

    def _take(self, step: Step) -> None:
        """On the worker's thread: take in a message, and tell what it decided."""
        notes_before = len(self.live.camera_notes)
        for result in step():
            self._tell(result)
        for note in self.live.camera_notes[notes_before:]:
            self._node.get_logger().warning(note)

    def _tell(self, result: Scored | Skipped) -> None:
        if isinstance(result, Scored):
            self._health.count("evaluated")
            self._recent.append(result.metrics)
        else:
            self._health.count(f"skipped.{result.reason}")
        if not self._node.context.ok():
            return  # shutting down: the report tells it
        if isinstance(result, Scored):
            self._outputs.publish_frame(result, self.config)
            if not self.live.interpreter.without_size:
                self._calibration.add(result)
        else:
            self._node.get_logger().warning(
                f"not scored ({result.reason}): {result.message}",
                throttle_duration_sec=LOG_EVERY_S,
            )
        if warnings := self.live.geometry.warnings():
            self._node.get_logger().warning("; ".join(warnings), throttle_duration_sec=LOG_EVERY_S)
