# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The sigma node: converts any depth and confidence to sigma in metres and its products."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any, NamedTuple

from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor
from sensor_msgs.msg import CameraInfo, Image

from uncertainty_depth.calibration.half_widths import BY_DISTRIBUTION, HalfWidths
from uncertainty_depth.config import SigmaNodeConfig
from uncertainty_depth.config.prediction import PredictionConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.frames.cameras import Cameras
from uncertainty_depth.frames.pairing import ExactPairs
from uncertainty_depth.messages.depth_images import UNMATCHED_REASONS, decode_maps
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.predictions.confidence import NONE
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.ros.camera_frame import deactivated
from uncertainty_depth.ros.diagnostics import DiagnosticsPublisher
from uncertainty_depth.ros.failed_frames import drop, drop_failed, views_of_published_maps
from uncertainty_depth.ros.frame_queue import InHand
from uncertainty_depth.ros.input_watch import InputWatch
from uncertainty_depth.ros.managed_node import ACTIVE, ManagedNode
from uncertainty_depth.ros.messages import age_s
from uncertainty_depth.ros.qos import sensor_qos
from uncertainty_depth.ros.sigma_node_outputs import SigmaNodeOutputs
from uncertainty_depth.ros.teardown import take_down
from uncertainty_depth.ros.watched_input import WatchedInput
from uncertainty_depth.ros.worker import Worker

FINISH_S = 2.0
DEPTH = "depth/image_rect"
CONFIDENCE = "confidence/image"
CAMERA_INFO = "depth/camera_info"
PAIRS_WAITING = 30
"""Images that wait for their other one, whose driver may publish it some frames later."""


class Pair(NamedTuple):
    """A depth image and its confidence, of one stamp; None if sigma is of the depth alone."""

    depth: Image
    confidence: Image | None


class SigmaNode(ManagedNode[SigmaNodeConfig]):
    """Publishes the sigma of every pair of a depth image and its confidence.

    Callbacks pair the images and queue the newest; one worker thread decodes and publishes. No
    network is loaded, and torch is not imported.
    """

    fixed_while_active = frozenset({"confidence_type", "queue_size", "reliable_input"})

    def __init__(self, **options: Any) -> None:
        """Create the publishers; with `autostart` read the map, then subscribe.

        Args:
            options: keyword arguments of `rclpy.node.Node`.

        Raises:
            ConfigError: a parameter is illegal, or the map cannot be used.
        """
        super().__init__("sigma_node", SigmaNodeConfig, **options)
        self._cameras = Cameras(CAMERA_INFO)
        self._outputs = SigmaNodeOutputs(self)
        self._interpreter: Interpreter | None = None
        self._worker: Worker[Pair] | None = None
        self._pairs = ExactPairs(PAIRS_WAITING)
        self._in_hand = InHand()
        self._watched: list[WatchedInput] = []
        self._diagnostics = DiagnosticsPublisher(
            self, self.health, self._awaited, self._facts, self.standing
        )
        self._watch = InputWatch(self, lambda: tuple(self._watched))
        self.autostart()

    @staticmethod
    def create_executor(context: Context | None = None) -> Executor:
        """Return an executor for this node."""
        return SingleThreadedExecutor(context=context)

    def _configure(self) -> None:
        self._interpreter = interpreter = interpreter_of(self.config)
        self._worker = Worker(
            self._process, lambda _, reason: self.health.drop(reason), self.config.queue_size
        )
        self._outputs.publish_model(description_of(interpreter))
        self.get_logger().info(f"sigma from {interpreter.config.confidence_type or 'sigma'}")

    def _activate(self) -> None:
        self._pairs = ExactPairs(PAIRS_WAITING)
        qos = sensor_qos(PAIRS_WAITING, self.config.reliable_input)
        self._subscribe(CameraInfo, CAMERA_INFO, self._on_camera_info, qos)
        self._subscribe(Image, DEPTH, lambda message: self._on_image(0, message), qos)
        if self._has_confidence():
            self._subscribe(Image, CONFIDENCE, lambda message: self._on_image(1, message), qos)

    def _deactivate(self) -> None:
        inputs = self._watched
        self._watched = []
        for watched in inputs:
            watched.close()
        for item in self._pairs.flush():
            self.health.drop(UNMATCHED_REASONS[item.side])
        if self._worker is not None:
            wait([self._worker.call(lambda: None)], FINISH_S)

    def _free(self) -> None:
        self._stop_worker()
        self._worker = None
        self._interpreter = None

    def _stop_worker(self) -> None:
        """End the worker's thread; a frame that does not end is given up."""
        if self._worker is not None:
            self._worker.stop(FINISH_S)
        if self._in_hand.settle():
            self.health.drop("shutdown")

    def _prepare(self, old: SigmaNodeConfig, new: SigmaNodeConfig) -> Callable[[], None]:
        """Read the new map, and return what applies it."""
        interpreter = interpreter_of(new)

        def apply() -> None:
            self._interpreter = interpreter
            if self._worker is not None:
                self._worker.capacity = new.queue_size
            self._outputs.publish_model(description_of(interpreter))

        return apply

    def _subscribe(
        self, message_type: type, topic: str, receive: Callable[[Any], None], qos: Any
    ) -> None:
        is_info = message_type is CameraInfo
        purpose = "points and the camera infos of the maps" if is_info else "sigma"
        self._watched.append(
            WatchedInput(
                self, self.health, message_type, topic, receive, qos,
                once=is_info, purpose=purpose,
            )
        )  # fmt: skip

    def _on_camera_info(self, message: CameraInfo) -> None:
        self._cameras.add(message)

    def _on_image(self, side: int, message: Image) -> None:
        self.health.count(f"received.{(DEPTH, CONFIDENCE)[side]}")
        if not self._has_confidence():
            if self._worker is not None:
                self._worker.put(Pair(message, None))
            return
        pair, unmatched = self._pairs.add(side, stamp_ns(message.header), message)
        if pair is None:  # the first image of its stamp: a frame is counted once
            self.health.count("received")
        for item in unmatched:
            reason = UNMATCHED_REASONS[item.side]
            sentence = f"{reason.replace('_', ' ')}: their stamps differ"
            drop(self, self.health, reason, sentence)
        if pair is None:
            return
        if self._worker is None:
            self.health.drop("deactivated")
        else:
            self._worker.put(Pair(*pair))

    def _process(self, pair: Pair) -> None:
        start_s = time.perf_counter()
        self._in_hand.hold()
        header = pair.depth.header
        try:
            interpreter = self._active_interpreter()
            depth, confidence = decode_maps(pair.depth, pair.confidence, interpreter.config)
            prediction = masked(interpreter.metric(depth, confidence))
            height, width = depth.shape
            rectifier = self._cameras.at(stamp_ns(header))
            camera = None if rectifier is None else rectifier.camera(width, height)
            self._outputs.publish(prediction, header, camera)
        except Exception as error:  # a hostile message costs one frame
            if self._in_hand.settle():
                drop_failed(self, self.health, error)
            return
        if not self._in_hand.settle():
            return
        latency_ms = age_s(self, header) * 1e3
        processing_ms = (time.perf_counter() - start_s) * 1e3
        self.health.count("processed")
        self.health.latency(latency_ms)
        half_width = half_widths_of(interpreter).at(self.config.coverage)
        with views_of_published_maps(self, self.health):
            self._outputs.publish_times(latency_ms, processing_ms)
            self._outputs.views.publish(prediction, header, camera, self.config, half_width)

    def _active_interpreter(self) -> Interpreter:
        if self._interpreter is None or not self._watched:
            raise deactivated()
        return self._interpreter

    def _awaited(self) -> tuple[str, ...]:
        topics = (DEPTH, CONFIDENCE) if self._has_confidence() else (DEPTH,)
        names = (*(f"received.{topic}" for topic in topics), "processed")
        return names if self.state == ACTIVE else ()

    def _has_confidence(self) -> bool:
        """Return whether sigma is of a confidence too, and not of the depth alone."""
        interpreter = self._interpreter
        return interpreter is None or interpreter.config.confidence_type != NONE

    def _facts(self) -> dict[str, object]:
        queued = 0 if self._worker is None else self._worker.waiting()
        facts: dict[str, object] = {
            "state": self.state,
            "waiting": len(self._pairs) + queued + bool(self._in_hand),
        }
        if self._interpreter is not None:
            facts |= description_of(self._interpreter)
        return facts

    def close(self) -> str:
        """Shut down: finish the current frame, drop the queue, return a summary line."""
        self._stop_worker()
        take_down(self.destroy_node)
        return ", ".join(f"{count} {name}" for name, count in self.health.counts().items())


def interpreter_of(config: SigmaNodeConfig) -> Interpreter:
    """Return the interpreter of the maps.

    Raises:
        ConfigError: the map cannot be used, or there is none for a confidence without a unit.
    """
    meaning = PredictionConfig(
        confidence_type=config.confidence_type,
        depth_type=config.depth_type,
        sigma_map=config.sigma_map,
    )
    interpreter = Interpreter(meaning)
    if interpreter.without_size:
        raise ConfigError(
            f"confidence_type is {config.confidence_type!r}, which has no unit; expected "
            "sigma_map:=map.json, the file that `uncertainty-depth calibrate BAG --depth-topic T "
            "--confidence-topic T --output map.json` writes"
        )
    return interpreter


def law_of(interpreter: Interpreter) -> str:
    """Return the distribution that sigma is the standard deviation of."""
    return "gaussian" if interpreter.sigma_map is None else interpreter.sigma_map.distribution


def half_widths_of(interpreter: Interpreter) -> HalfWidths:
    """Return the half widths of intervals: measured by the map's calibration, else the law's."""
    saved = interpreter.sigma_map
    return BY_DISTRIBUTION[law_of(interpreter)] if saved is None else saved.half_widths


def description_of(interpreter: Interpreter) -> dict[str, Any]:
    """Return the description of the sigma for the evaluator's report."""
    config = interpreter.config
    saved = interpreter.sigma_map
    guarantee = None if saved is None else saved.guarantee
    return {
        "model": "sigma_node",
        "method": "recorded",
        "head": law_of(interpreter),
        "confidence_type": config.confidence_type or "sigma",
        "calibration": "off" if saved is None else saved.sigma_map.name,
        "interval": half_widths_of(interpreter).origin,
        **({} if guarantee is None else {"frame_guarantee": guarantee.sentence()}),
    }


def masked(prediction: DepthPrediction) -> DepthPrediction:
    """Return the maps with NaN in both where one has no value."""
    valid = (prediction.depth_m > 0) & (prediction.sigma_m >= 0)
    depth_m = prediction.depth_m.copy()
    sigma_m = prediction.sigma_m.copy()
    depth_m[~valid] = float("nan")
    sigma_m[~valid] = float("nan")
    return DepthPrediction(depth_m, sigma_m)
