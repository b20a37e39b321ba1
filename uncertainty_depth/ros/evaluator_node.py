# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node: scores predictions against LiDAR or ground truth images."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import String
from std_srvs.srv import Trigger

from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.core.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.core.records import Skipped
from uncertainty_depth.frames.mask import Mask
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.published import PREDICTION, status_values
from uncertainty_depth.frames.topics import camera_info_beside
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.report import report
from uncertainty_depth.report.requirements import Requirement, check_judged, requirements_of
from uncertainty_depth.ros.diagnostics import LATE_AFTER_S, LOG_EVERY_S
from uncertainty_depth.ros.evaluator_outputs import (
    EvaluatorOutputs,
    LiveCalibration,
    write_last,
)
from uncertainty_depth.ros.extrinsics import live_extrinsics
from uncertainty_depth.ros.guarded_node import reason_of
from uncertainty_depth.ros.inputs import QUEUE
from uncertainty_depth.ros.live_camera import DISCOVERY_S
from uncertainty_depth.ros.live_scores import (
    CAMERA_INFO,
    DEPTH,
    MODEL,
    SIGMA,
    TRUTH_CAMERA_INFO,
    TRUTH_IMAGE,
    LiveFrame,
    LiveScores,
    ground_truth_topics,
    has_sigma,
    meaning_of,
)
from uncertainty_depth.ros.messages import INFO_TOPIC, model_description, read_info
from uncertainty_depth.ros.node import ManagedNode, take_down
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS
from uncertainty_depth.ros.report_saver import ReportSaver
from uncertainty_depth.sigma.recorded.interpreter import Interpreter
from uncertainty_depth.stream.held_out import held_out_rule

PERIOD_S = 1.0
"""Time between two publications of the metrics of all frames."""
RECENT_FRAMES = 100
COVERAGE = "uncertainty.coverage_"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold the right to write to a folder, which need not exist, among this user's nodes here.

    It ends with the process, however that ends. The folder itself is locked while a report is
    written to it, by whoever writes; this lock is held for a run, and is a file elsewhere.

    Raises `SourceError`: another node holds it.
    """
    name = hashlib.sha256(os.path.realpath(folder).encode(errors="surrogateescape"))
    lock = f"uncertainty_depth_{os.getuid()}_{name.hexdigest()[:16]}.lock"
    path = Path(tempfile.gettempdir()) / lock
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SourceError(
                f"another evaluator will write its report to {folder}; expected another output"
            ) from error
        yield


class EvaluatorNode(ManagedNode[EvaluatorNodeConfig]):
    """Scores in its callbacks, all on one thread: some 20 ms per frame.

    Plots and verdicts take longer and are made from copies on other threads. A run lasts from
    activation to deactivation, which writes its report. All parameters are read at activation.
    """

    def __init__(self, **options: Any) -> None:
        """Offer the services; with `autostart` check parameters and output, then subscribe."""
        super().__init__("evaluator_node", "scores", EvaluatorNodeConfig, **options)
        self._outputs = EvaluatorOutputs(self)
        self._saver = ReportSaver(self)
        self._calibration = LiveCalibration(self, self.config)
        self._scores: LiveScores | None = None
        self._claim = ExitStack()
        self._activated_s = time.monotonic()
        self._requirements: tuple[Requirement, ...] = ()
        self._model: dict[str, Any] | None = None
        self._lost_before: dict[str, int] = {}
        self._recent: deque[Mapping[str, float]] = deque(maxlen=RECENT_FRAMES)
        self.create_service(Trigger, "~/reset", partial(_answer, self._reset))
        self.create_service(Trigger, "~/save", partial(_answer, self._save))
        self.create_subscription(String, MODEL, self._on_model, LATCHED_QOS)
        self.create_subscription(DiagnosticArray, INFO_TOPIC, self._on_prediction_info, OUTPUT_QOS)
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(PERIOD_S, self._on_timer, clock=clock)
        self.autostart()

    def _configure(self) -> None:
        """Check that the values fit together, and that no earlier report is replaced."""
        config = self.config
        check_judged(requirements_of(config), Interpreter(meaning_of(config)).sigma_kind)
        if config.min_depth >= config.max_depth:
            raise ConfigError(
                f"min_depth is {config.min_depth}; expected less than max_depth, "
                f"{config.max_depth}"
            )
        Mask(config)
        if config.output:
            report.check_output(Path(config.output), config.overwrite)

    def _activate(self) -> None:
        """Start a run, and subscribe to predictions and ground truth."""
        self._configure()  # the output may hold a report by now
        config = self.config
        if config.output:
            self._claim.enter_context(claimed(Path(config.output)))
        self._requirements = requirements_of(config)
        extrinsics = None
        if not config.use_ground_truth_image:
            extrinsics = live_extrinsics(self.inputs.transforms, config, config.lidars)
        self._calibration.start(config)
        self._activated_s = time.monotonic()
        scores = LiveScores(config, extrinsics, self._is_published)
        self._subscribe(Image, DEPTH)
        if has_sigma(config):
            self._subscribe(Image, SIGMA)
        self._subscribe(CameraInfo, CAMERA_INFO, once=True)
        for topic in ground_truth_topics(config):
            self._subscribe(Image if config.use_ground_truth_image else PointCloud2, topic)
        if config.use_ground_truth_image:  # its camera info may be missing
            self._subscribe(CameraInfo, TRUTH_CAMERA_INFO, optional=True)
        self._start(scores)  # last: an activation that fails has no run to report

    def _subscribe(self, message_type: type, topic: str, **options: bool) -> None:
        receive = partial(self._on_message, topic)
        depth = max(QUEUE, self.config.queue_size)
        name = self._name_of(topic) if topic == TRUTH_CAMERA_INFO else topic
        self.inputs.subscribe(
            message_type, name, receive, depth=depth, purpose="scores", **options
        )

    def _name_of(self, topic: str) -> str:
        """Return a topic's full name: as remapped; the ground truth's info is beside its image."""
        name: str = self.resolve_topic_name(topic)
        is_remapped = name != self.resolve_topic_name(topic, only_expand=True)
        if topic != TRUTH_CAMERA_INFO or is_remapped:
            return name
        return camera_info_beside(self.resolve_topic_name(TRUTH_IMAGE))

    def _start(self, scores: LiveScores) -> None:
        """Begin with new scores; losses so far belong to an earlier run."""
        self._scores = scores
        self._lost_before = self._losses()
        self._recent.clear()
        self._take_held_out()

    def _deactivate(self) -> None:
        """Score waiting frames, write the report, and unsubscribe, unless it cannot be written."""
        if self._scores is not None:  # else the activation failed
            self.get_logger().info(self._finish())
        self.inputs.close()
        self._claim.close()

    def _finish(self) -> str:
        """End the run: score waiting frames, write the report, return a summary line."""
        scores = self._scores
        if scores is None:
            return "no run was started"
        self._saver.cancel()
        results = scores.finish()
        while True:
            try:
                self._publish(results)
                break
            except Exception as error:  # the other frames are scored, and the report is written
                self.get_logger().error(f"a frame that waited failed: {reason_of(error)}")
        evaluation = scores.evaluation
        counts = [f"{evaluation.evaluated} frames scored"]
        counts += [f"{count} {reason}" for reason, count in evaluation.skipped.items()]
        if self.config.output:
            page = write_last(evaluation, Path(self.config.output), self._beside(scores))
            counts.append(f"report: {page}")
        self._scores = None
        return ", ".join(counts)

    def _on_message(self, topic: str, message: Any) -> None:
        """Score the frames that a message completes."""
        scores = self._scores
        if scores is None:
            return
        self.health.count(f"received.{topic}")
        images = scores.frames.images
        records = scores.add(topic, message)
        if scores.frames.images > images:
            self.health.count("received")
        self._publish(records)

    def _on_prediction_info(self, message: DiagnosticArray) -> None:
        """Take a prediction's description, which its frame may wait for."""
        if self._scores is None:
            return
        try:
            info = read_info(status_values(message.status, PREDICTION))
        except MessageError as error:
            self.health.count(f"refused.{INFO_TOPIC}")
            self._warn(f"{INFO_TOPIC} is ignored: {error}")
            return
        self._publish(self._scores.add_info(stamp_ns(message.header), info))

    def _on_model(self, message: String) -> None:
        """Store the model's description, including the depth that it holds out for scoring."""
        try:
            self._model = model_description(message.data)
            held_out_rule(self._model)
        except MessageError as error:
            self._model = {"method": "unknown"}  # a network's all the same
            self._warn(f"{error}: the report will not name the model")
        self._take_held_out()

    def _take_held_out(self) -> None:
        if self._scores is not None:
            self._scores.held_out = held_out_rule(self._model or {})
            self._scores.frames.knows_model = self._model is not None

    def _publish(self, results: Iterable[LiveFrame | Skipped]) -> None:
        """Count and publish frames' outcomes."""
        for result in results:
            if isinstance(result, Skipped):
                self.health.count(f"skipped.{result.reason}")
                self._warn(f"not scored ({result.reason}): {result.message}")
                continue
            self.health.count("evaluated")
            self._recent.append(result.metrics)
            if self.context.ok():  # else the node shuts down: the report has the counts
                self._outputs.publish_frame(result)
                if self._scored().evaluation.sigma_kind is SigmaKind.METRES:
                    self._calibration.add(result, self._is_published(INFO_TOPIC))

    def _warn(self, sentence: str) -> None:
        if self.context.ok():
            self.get_logger().warning(sentence, throttle_duration_sec=LOG_EVERY_S)

    def _is_published(self, topic: str) -> bool:
        """Return whether a topic has a publisher, or is a camera info's and may yet be found."""
        if not self.context.ok():
            return False
        is_camera_info = topic in (CAMERA_INFO, TRUTH_CAMERA_INFO)
        is_early = time.monotonic() - self._activated_s < DISCOVERY_S
        other_type = String if topic == MODEL else DiagnosticArray
        message_type = CameraInfo if is_camera_info else other_type
        is_published = self.is_published(self._name_of(topic), message_type)
        return (is_camera_info and is_early) or is_published

    def _scored(self) -> LiveScores:
        """Return the run; raise `ConfigError` if the node is not active."""
        if self._scores is None:
            raise ConfigError(f"the node is {self.state}; expected it to be active")
        return self._scores

    def _on_timer(self) -> None:
        if self._scores is not None:
            self._publish(self._scores.decided())
            self._outputs.summarize(self._scores.evaluation, self._beside(self._scores))
            if warnings := self._scores.check.warnings():
                self._warn("; ".join(warnings))

    def _reset(self) -> str:
        waiting = len(self._scored().frames)
        if waiting:
            self.health.count("dropped.reset", waiting)
        self._start(self._scored().restarted())
        return "scores and counts are reset"

    def _save(self) -> str:
        scores = self._scored()
        output = self.config.output
        if not output:
            raise ConfigError("the parameter output is empty; expected a folder for the report")
        report.check_output(Path(output), overwrite=True)
        self._saver.save(scores.evaluation, Path(output), self._beside(scores))
        return f"the report of {scores.evaluation.evaluated} frames is being written to {output}"

    def _beside(self, scores: LiveScores) -> report.Context:
        """Return a report's content beside the scores."""
        lost = {
            f"messages {name}": count - self._lost_before.get(name, 0)
            for name, count in self._losses().items()
        }
        lost["waiting"] = len(scores.frames)
        losses = [f"{name.replace('_', ' ')}: {count}" for name, count in lost.items() if count]
        truths = map(self.resolve_topic_name, ground_truth_topics(self.config))
        return report.Context(
            f"live: {self.resolve_topic_name(DEPTH)} against {', '.join(truths)}",
            self._model or {},
            (*scores.notes(), *losses),
            geometry=scores.check.summary(),
            requirements=self._requirements,
        )

    def _losses(self) -> dict[str, int]:
        counts = self.health.counts().items()
        return {name: count for name, count in counts if name.startswith(("dropped.", "lost_"))}

    def _expected_counters(self) -> tuple[str, ...]:
        maps = (DEPTH, SIGMA) if has_sigma(self.config) else (DEPTH,)
        inputs = (*maps, *ground_truth_topics(self.config))
        return (*(f"received.{topic}" for topic in inputs), "evaluated")

    def _diagnostic_values(self) -> dict[str, object]:
        """Received = evaluated + skipped + dropped + waiting, counted in frames."""
        values: dict[str, object] = {"waiting": 0}
        if self._scores is None:
            return values
        frames = self._scores.frames
        values["waiting"] = len(frames)
        values |= {f"pairing.{name}": count for name, count in frames.counts.items()}
        recent = list(self._recent)
        for name in recent[-1] if recent else ():
            if name.startswith(COVERAGE):
                mean = np.mean([metrics[name] for metrics in recent])
                values[f"recent_{name.split('.', 1)[1]}"] = f"{mean:.3f}"
        return values | self._calibration.diagnostic_values() | self._outputs.verdict

    def _problems(self) -> tuple[str, ...]:
        """Unmet requirements come last."""
        if self._scores is None:
            return self.inputs.problems
        warnings = self._scores.check.warnings()
        apart_s = self._scores.frames.clocks_apart_s
        topics = ground_truth_topics(self.config)
        age_s = min(self.health.age(f"received.{topic}") for topic in topics)
        if apart_s is not None and age_s <= LATE_AFTER_S:
            warnings.append(
                f"the stamps of {' or '.join(topics)} nearest to those of {DEPTH} are "
                f"{apart_s:+.3f} s away, more than max_time_difference "
                f"{self.config.max_time_difference} s: the clocks are apart (chrony, PTP), or "
                "messages are lost"
            )
        if self.failure is not None:
            warnings.insert(0, f"the run was not ended: {reason_of(self.failure)}")
        return (*self.inputs.problems, *warnings, *self._outputs.failures)

    def close(self) -> str:
        """Shut down: score received frames, write the report, return a summary line."""
        try:
            self._outputs.close()
            return self._finish()
        finally:
            self._claim.close()
            take_down(self.destroy_node)


def _answer(
    act: Callable[[], str], _: Trigger.Request, response: Trigger.Response
) -> Trigger.Response:
    """Answer with the text from `act`, or with the reason for its failure."""
    try:
        response.message = act()
        response.success = True
    except Exception as error:  # the caller must get an answer
        response.message = reason_of(error)
    return response
