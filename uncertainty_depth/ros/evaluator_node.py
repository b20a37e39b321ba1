"""The evaluator node: predictions and LiDAR in, scores out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from pathlib import Path

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.executors import Executor, MultiThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import String
from std_srvs.srv import Trigger

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.evaluation import report
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.records import Skipped
from uncertainty_depth.ros.diagnostics import DiagnosticsPublisher, Health
from uncertainty_depth.ros.extrinsics import Extrinsics, create_extrinsics
from uncertainty_depth.ros.input_watch import InputWatch
from uncertainty_depth.ros.live_evaluation import LiveEvaluation, Scored
from uncertainty_depth.ros.live_verdict import LiveVerdict
from uncertainty_depth.ros.model_description import model_description
from uncertainty_depth.ros.parameters import NodeParameters
from uncertainty_depth.ros.qos import LATCHED_QOS, SubscriptionQos, sensor_qos
from uncertainty_depth.ros.report_writer import ReportWriter
from uncertainty_depth.ros.score_outputs import ScoreOutputs
from uncertainty_depth.ros.teardown import take_down
from uncertainty_depth.ros.watched_input import WatchedInput
from uncertainty_depth.ros.worker import Worker

LOG_EVERY_S = 5.0
STREAMS = 4  # depth, uncertainty, camera info, ground truth: the queue has room for queue_size messages of each
GROUND_TRUTH = {False: (PointCloud2, "lidar/points"), True: (Image, "ground_truth/image")}
Step = Callable[[], "list[Scored | Skipped]"]


class EvaluatorNode(Node):
    """Callbacks only queue messages; one worker thread owns the evaluation. Services wait for it on a thread of their own."""

    def __init__(self, **options: object) -> None:
        """Check parameters and the report folder before the first message comes.

        Raises:
            ConfigError: for an illegal parameter, or where nothing tells the place of the LiDAR.
            SourceError: when the report could not be written.
        """
        super().__init__("evaluator_node", **options)
        self._options = NodeParameters(self, EvaluatorNodeConfig, self._prepare)
        config = checked(self.config)
        check_output(config)
        self.health, self._model, self._qos = Health(), {}, SubscriptionQos(self)
        self._live = LiveEvaluation(
            config, create_extrinsics(self, config.lidar_to_camera, config.use_ground_truth_image)
        )
        self._outputs = ScoreOutputs(self, self._live.evaluation)
        self._reports = ReportWriter()
        self._pooled = ThreadPoolExecutor(1, "pooled")
        self._published = self._pooled.submit(int)
        self._losses_before: dict[str, int] = {}
        self._earlier = 0
        self._worker: Worker[Step] = Worker(
            self._take, lambda _, reason: self.health.drop(reason), STREAMS * config.queue_size
        )
        self._verdict = LiveVerdict(
            self, self._worker.post, lambda: self._live.evaluation, lambda: self._model
        )
        self._diagnostics = DiagnosticsPublisher(self, self.health, self._awaited, self._facts)
        self._predictions = self._subscribe_predictions()
        self._qos.declare(
            [topic for _, topic in GROUND_TRUTH.values()],
            sensor_qos(config.queue_size, config.reliable_input),
        )
        self._ground_truth = self._subscribe_ground_truth(config)
        self._watch = InputWatch(self, lambda: (*self._predictions, self._ground_truth))
        services = MutuallyExclusiveCallbackGroup()
        self.create_service(Trigger, "~/reset", self._on_reset, callback_group=services)
        self.create_service(Trigger, "~/save", self._on_save, callback_group=services)
        self.create_timer(1.0, self._request_pooled, clock=Clock(clock_type=ClockType.STEADY_TIME))

    @property
    def config(self) -> EvaluatorNodeConfig:
        """The parameters of now."""
        return self._options.config

    @staticmethod
    def create_executor(context: Context | None = None) -> Executor:
        """The executor such a node is made for: one thread for messages, one for services."""
        return MultiThreadedExecutor(2, context=context)

    def _subscribe_predictions(self) -> tuple[WatchedInput, ...]:
        live = self._live
        qos = sensor_qos(self.config.queue_size, True)
        self.create_subscription(String, "depth/model", self._on_model, LATCHED_QOS)
        topic = "ground_truth/camera_info"
        info_qos = self._qos.overridden(topic, sensor_qos(1, False))
        self.create_subscription(CameraInfo, topic, live.add_ground_truth_info, info_qos)
        return (
            self._subscribe(Image, "depth/image_rect", live.add_depth, qos),
            self._subscribe(Image, "uncertainty/image_rect", live.add_sigma, qos),
            self._subscribe(CameraInfo, "depth/camera_info", live.add_camera_info, qos, once=True),
        )

    def _subscribe_ground_truth(self, config: EvaluatorNodeConfig) -> WatchedInput:
        message_type, topic = GROUND_TRUTH[config.use_ground_truth_image]
        qos = sensor_qos(config.queue_size, config.reliable_input)
        return self._subscribe(message_type, topic, self._live.add_ground_truth, qos)

    def _subscribe(
        self, message_type: type, topic: str, add: Callable, qos: QoSProfile, once: bool = False
    ) -> WatchedInput:
        def receive(message: object) -> None:
            self.health.count("received")
            self.health.count(f"received.{topic}")
            self._worker.put(partial(add, message))

        return WatchedInput(
            self,
            self.health,
            self._qos,
            message_type,
            topic,
            receive,
            qos,
            once=once,
            purpose="scores",
        )

    def _on_model(self, message: String) -> None:
        try:
            self._model = model_description(message.data)
        except MessageError as error:
            self.get_logger().warning(f"{error}: the report will not name the model")

    def _take(self, step: Step) -> None:
        noted = len(self._live.camera_notes)
        for result in step():
            self._tell(result)
        for note in self._live.camera_notes[noted:]:
            self.get_logger().warning(note)

    def _tell(self, result: Scored | Skipped) -> None:
        self.health.count(
            f"skipped.{result.reason}" if isinstance(result, Skipped) else "evaluated"
        )
        if not self.context.ok():
            return  # shutting down: the report tells it
        if isinstance(result, Skipped):
            self.get_logger().warning(
                f"not scored ({result.reason}): {result.message}",
                throttle_duration_sec=LOG_EVERY_S,
            )
        else:
            self._outputs.publish_frame(result, self.config)

    def _request_pooled(self) -> None:
        if self._outputs.pooled_wanted:
            self._worker.post(self._copy_pooled)

    def _copy_pooled(self) -> None:
        """On the worker: metrics of all frames are computed from a copy, so that it need not wait."""
        evaluation = self._live.evaluation
        if evaluation.evaluated and self._published.done():
            metrics = deepcopy(evaluation.metrics)
            self._published = self._pooled.submit(self._publish_pooled, metrics)

    def _publish_pooled(self, metrics: OnlineMetrics) -> None:
        try:
            self._outputs.publish_pooled(metrics)
        except Exception:
            if self.context.ok():  # else the node was stopped while it drew
                self.get_logger().error(f"metrics were not published: {traceback.format_exc()}")

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._worker.call(self._reset).result()
        response.success = True
        response.message = "scores and counts start anew"
        return response

    def _reset(self) -> None:
        self._live.reset()
        self._start_counting()

    def _start_counting(self) -> None:
        """Losses so far belong to the run before; diagnostics go on counting all."""
        self._losses_before = self._losses()

    def _on_save(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            response.message = str(self._save())
            response.success = True
        except Exception as error:  # whatever it is, who asked must get an answer
            response.success = False
            response.message = str(error) or type(error).__name__
        return response

    def _save(self) -> Path:
        """Write what is decided so far; what waits is only told of, so that saving in the middle of a run changes no score."""
        folder = self.config.output
        if not folder:
            raise ConfigError("the parameter output is empty; expected a folder for the report")
        evaluation, context = self._worker.call(self._copy).result()
        return self._reports.submit(evaluation, Path(folder), context).result()

    def _copy(self) -> tuple[Evaluation, report.Context]:
        return deepcopy(self._live.evaluation), self._report_context()

    def _report_context(self) -> report.Context:
        return report.Context(self._source(), self._model, self._notes())

    def _source(self) -> str:
        return f"live: {self.resolve_topic_name('depth/image_rect')} against {self._ground_truth.name}"

    def _notes(self) -> tuple[str, ...]:
        losses = self._losses()
        counts = {
            f"messages {name}": count - self._losses_before.get(name, 0)
            for name, count in losses.items()
        }
        for name, count in self._live.pairing_counts.items():
            if name not in ("paired", "unmatched"):
                counts[f"pairing: {name}"] = count
        counts["waiting"] = self._live.waiting
        losses = (f"{name.replace('_', ' ')}: {n}" for name, n in counts.items() if n)
        return (*self._live.camera_notes, *losses)

    def _losses(self) -> dict[str, int]:
        counts = self.health.counts()
        return {name: counts[name] for name in counts if name.startswith(("dropped.", "lost_"))}

    def _prepare(self, old: EvaluatorNodeConfig, new: EvaluatorNodeConfig) -> Callable[[], None]:
        checked(new)
        if new.output != old.output:
            check_output(new)
        starts_anew = self._live.starts_anew(new)
        earlier = self._earlier_folder(old.output or new.output) if starts_anew else None
        extrinsics = self._live.extrinsics
        names = ("lidar_to_camera", "use_ground_truth_image")
        if _differ(old, new, names):
            extrinsics = create_extrinsics(self, new.lidar_to_camera, new.use_ground_truth_image)

        def apply() -> None:
            self._worker.capacity = STREAMS * new.queue_size
            self._worker.post(partial(self._reconfigure, new, extrinsics, earlier))
            if _differ(old, new, ("use_ground_truth_image", "reliable_input", "queue_size")):
                self._ground_truth.close()
                self._ground_truth = self._subscribe_ground_truth(new)

        return apply

    def _earlier_folder(self, output: str) -> Path | None:
        """Where the report goes of a run that a change of parameters ends; None without an output."""
        if not output:
            return None
        self._earlier += 1
        while (folder := Path(output) / f"earlier_{self._earlier}").exists():
            self._earlier += 1
        return folder

    def _reconfigure(
        self, config: EvaluatorNodeConfig, extrinsics: Extrinsics, earlier: Path | None
    ) -> None:
        """On the worker, once everything that came before the change is scored."""
        previous = self._live.extrinsics
        starts_anew = self._live.starts_anew(config)
        if starts_anew:
            self._take(self._live.finish)
            self._keep_earlier(earlier)
        self._live.reconfigure(config, extrinsics)
        if starts_anew:
            self._start_counting()
        if previous is not extrinsics:
            previous.close()

    def _keep_earlier(self, folder: Path | None) -> None:
        evaluation, context = self._copy()
        if not evaluation.frames()["read"]:
            return
        place = f"are written to {folder}" if folder else "are lost, as output is empty"
        frames = f"those of the {evaluation.evaluated} frames so far {place}"
        self.get_logger().warning(f"a scoring parameter changed: scores start anew; {frames}")
        if folder is not None:
            written = self._reports.submit(evaluation, folder, context)
            written.add_done_callback(self._tell_earlier)

    def _tell_earlier(self, written: Future) -> None:
        if (error := written.exception()) is not None:
            self.get_logger().error(f"the scores before the change are not saved: {error}")

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
        queues = {"waiting": self._worker.waiting(), "undecided": self._live.waiting}
        return pairing | queues | self._verdict.facts

    def close(self) -> str:
        """Score what has arrived, write the report where one is wanted, and go; returns what is worth telling."""
        try:
            self._worker.call(partial(self._take, self._live.finish)).result()
            written = self._write_last() if self.config.output else ""
        finally:
            self._reports.close()
            self._worker.stop()
            self._pooled.shutdown()
            take_down(self.destroy_node)
        skipped = "".join(
            f", {count} {reason}" for reason, count in self._live.evaluation.skipped.items()
        )
        return f"{self._live.evaluation.evaluated} frames scored{skipped}{written}"

    def _write_last(self) -> str:
        """Numbers first: whoever stops a node may not wait for its plots."""
        self._reports.close()  # else an older report could replace this one
        folder = Path(self.config.output)
        report.write(self._live.evaluation, folder, self._report_context(), images=False)
        page = report.write(self._live.evaluation, folder, self._report_context())
        return f", report: {page}"


def _differ(old: EvaluatorNodeConfig, new: EvaluatorNodeConfig, names: Sequence[str]) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in names)


def checked(config: EvaluatorNodeConfig) -> EvaluatorNodeConfig:
    """The config, if its values go together.

    Raises:
        ConfigError: when no depth lies between min_depth and max_depth, or nothing can be scored with these options.
        SourceError: when a report cannot be written to `output`.
    """
    if config.min_depth >= config.max_depth:
        raise ConfigError(
            f"min_depth is {config.min_depth}; expected less than max_depth, {config.max_depth}"
        )
    try:
        OnlineMetrics(config)
    except (ValueError, OverflowError) as error:  # more depth intervals than fit, say
        raise ConfigError(str(error)) from error
    if config.output:
        report.check_folder(Path(config.output))
    return config


def check_output(config: EvaluatorNodeConfig) -> None:
    """Raise `SourceError` when an earlier run's report is in `output` and must not be replaced."""
    if config.output and not config.overwrite:
        report.refuse_existing(Path(config.output))
