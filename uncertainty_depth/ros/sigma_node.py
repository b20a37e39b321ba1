# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The sigma node: any depth and confidence to sigma in metres, corrected by what measures."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

from sensor_msgs.msg import CameraInfo, Image

from uncertainty_depth.core.config.nodes import SigmaNodeConfig
from uncertainty_depth.core.config.scoring import DepthLimitsConfig
from uncertainty_depth.core.config.source import PredictionConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.messages.decoding import check_stamp, frame_name, stamp_ns
from uncertainty_depth.frames.messages.images import UNMATCHED_REASONS, decode_maps
from uncertainty_depth.frames.pairing import ExactPairs
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S, DiagnosticsPublisher, fail
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.live_camera import LiveCamera
from uncertainty_depth.ros.measurement_inputs import (
    ImageInput,
    MeasurementSource,
    measurement_sources,
    parse_live,
)
from uncertainty_depth.ros.node import ACTIVE, ManagedNode, take_down
from uncertainty_depth.ros.prediction_publisher import PredictionPublisher, PredictionSource
from uncertainty_depth.ros.worker import Worker
from uncertainty_depth.sigma.recorded.confidence import NONE
from uncertainty_depth.sigma.recorded.interpreter import Interpreter
from uncertainty_depth.sigma.sparse_depth import sigma_name

FINISH_S = 2.0
DEPTH = "depth/image_rect"
CONFIDENCE = "confidence/image"
CAMERA_INFO = "depth/camera_info"
PAIRS_WAITING = 30
"""Images that wait for their other one, whose driver may publish it some frames later."""
LIMITS = DepthLimitsConfig()
DEPTH_RANGE = (LIMITS.min_depth, LIMITS.max_depth)
"""Assumed of an unknown network, as `evaluate` does: measurements far beyond have another unit."""


class Pair(NamedTuple):
    """A depth image and its confidence, if there is one; by `frame`, its first, it is counted."""

    depth: Image
    confidence: Image | None
    frame: Image


class SigmaNode(ManagedNode[SigmaNodeConfig]):
    """Publishes the sigma of every pair of a depth image and its confidence.

    Callbacks pair the images and queue the newest; one worker thread decodes and publishes. No
    network is loaded, and torch is not imported.
    """

    def __init__(self, **options: Any) -> None:
        """Create the publishers; with `autostart` read the map, then subscribe."""
        super().__init__("sigma_node", SigmaNodeConfig, **options)
        topic = self.resolve_topic_name(CAMERA_INFO)
        is_published = partial(self.is_published, topic, CameraInfo)
        self._camera = LiveCamera(topic, is_published, self.health, self.get_logger().info)
        self._predictions = PredictionPublisher(self, self.health, is_own_depth=False)
        self._sources: tuple[MeasurementSource, ...] = ()
        self._interpreter: Interpreter | None = None
        self._worker: Worker[Pair] = Worker(
            self._process, lambda pair, reason: self.health.leave(pair.frame, f"dropped.{reason}")
        )
        self._pairs = ExactPairs(PAIRS_WAITING)
        self._inputs = Inputs(self, self.health)
        self._diagnostics = DiagnosticsPublisher(self, self, "sigma")
        self.autostart()

    def _configure(self) -> None:
        """Read the map, and publish what sigma is, for the evaluator's report."""
        config = self.config
        measuring = parse_live(config.measurements)
        meaning = PredictionConfig(
            confidence_type=config.confidence_type,
            depth_type=config.depth_type,
            sigma_map=config.sigma_map,
        )
        interpreter = Interpreter(meaning)
        if interpreter.sigma_kind is not SigmaKind.METRES:
            raise ConfigError(
                f"confidence_type is {config.confidence_type!r}, which has no unit; expected "
                "sigma_map:=map.json, the file that `uncertainty-depth calibrate BAG "
                "--depth-topic T --confidence-topic T --output map.json` writes"
            )
        description = {
            "calibration": "off",
            "head": interpreter.distribution,
            **interpreter.describe("sigma_node"),
        }
        if config.measurements:
            description["measurements"] = config.measurements
            import uncertainty_depth.sigma.posterior  # noqa: F401  SciPy loads slowly
        if measuring.sparse is not None:
            description["held_out_fraction"] = config.held_out_fraction
        self._predictions.publish_model(description)
        self._interpreter = interpreter
        origin = description["confidence_type"] if self._has_confidence() else "the depth alone"
        self.get_logger().info(f"sigma from {origin}")

    def _activate(self) -> None:
        self._pairs = ExactPairs(PAIRS_WAITING)
        sides = [DEPTH, CONFIDENCE] if self._has_confidence() else [DEPTH]
        for side, topic in enumerate(sides):
            receive = partial(self._on_image, side)
            self._inputs.subscribe(Image, topic, receive, depth=PAIRS_WAITING, purpose="sigma")
        purpose = "points and the camera infos of the maps"
        add = self._camera.add
        self._inputs.subscribe(CameraInfo, CAMERA_INFO, add, once=True, purpose=purpose)
        measuring = parse_live(self.config.measurements)
        parts = (self, self.health, self._inputs)
        if measuring.motion:
            self._sources = (ImageInput(*parts),)
        self._sources += tuple(
            measurement_sources(*parts, self.config, measuring, DEPTH_RANGE, self._camera)
        )

    def _deactivate(self) -> None:
        self._inputs.close()
        for item in self._pairs.flush():
            self.health.leave(item.item, f"dropped.{UNMATCHED_REASONS[item.side]}")
        self.health.leave_all("deactivated")
        self._worker.wait(FINISH_S)
        self._predictions.wait(FINISH_S)
        for source in self._sources:
            source.close()
        self._sources = ()

    def _free(self) -> None:
        self._interpreter = None

    def _on_image(self, side: int, message: Image) -> None:
        self.health.count(f"received.{(DEPTH, CONFIDENCE)[side]}")
        pair: tuple[Image, Image | None] | None = (message, None)
        partner: Image | None = None
        if self._has_confidence():
            try:
                check_stamp(message.header, f"an image on {(DEPTH, CONFIDENCE)[side]}")
            except MessageError as error:
                self._drop_unstamped(side, message, error)
                return
            pair, unmatched = self._pairs.add(side, stamp_ns(message.header), message)
            for item in unmatched:
                reason = UNMATCHED_REASONS[item.side]
                self.health.leave(item.item, f"dropped.{reason}")
                self.get_logger().warning(
                    f"dropped ({reason}): {reason.replace('_', ' ')}: their stamps differ",
                    throttle_duration_sec=LOG_EVERY_S,
                )
            partner = None if pair is None else pair[1 - side]
        if partner is None:  # the first image of its stamp: a frame is counted once
            self.health.enter(message)
        if pair is not None:
            self._worker.put(Pair(*pair, partner or message))

    def _drop_unstamped(self, side: int, message: Image, error: MessageError) -> None:
        """Drop an image that no other can be paired with; it is a frame if it is a depth."""
        if side == 0:
            self.health.enter(message)
            fail(self, self.health, message, error)
        else:
            self.health.count(f"refused.{CONFIDENCE}")
            self.get_logger().warning(
                f"refused ({error.reason}): {error}", throttle_duration_sec=LOG_EVERY_S
            )

    def _process(self, pair: Pair) -> None:
        start_s = time.perf_counter()
        interpreter = self._interpreter
        if interpreter is None or not self.health.is_inside(pair.frame):  # deactivated meanwhile
            return
        try:
            depth, confidence = decode_maps(pair.depth, pair.confidence, interpreter.config)
            prediction = interpreter.metric(depth, confidence)
            height, width = depth.shape
            time_ns = stamp_ns(pair.depth.header)
            rectifier = self._camera.rectifier(time_ns)
            camera = None if rectifier is None else rectifier.camera(width, height)
            header = self._camera.header(pair.depth)
            frame = Frame(time_ns, frame_name(time_ns), camera, prediction=prediction)
            for source in self._sources:
                frame = source.add_to(frame, header)
            if self._sources:
                from uncertainty_depth.sigma.posterior import corrected  # SciPy loads slowly

                prediction = corrected(prediction, frame, DEPTH_RANGE)
            if not self.health.is_inside(pair.frame):  # sources wait for what measures
                return
            origin = PredictionSource(
                sigma_name(interpreter.sigma_name, self.config.measurements),
                interpreter.half_widths,
                measurements=frame.measurements,
            )
            self._predictions.publish(
                pair.frame, header, prediction, camera, origin, self.config, start_s,
                frame.image,
            )  # fmt: skip
        except Exception as error:  # a hostile message costs one frame
            fail(self, self.health, pair.frame, error)

    def problems(self) -> list[str]:
        """Return sentences on what is wrong with inputs and correction."""
        return [*self._inputs.problems, *self._predictions.problems()]

    def expected_counters(self) -> tuple[str, ...]:
        """Return the counters that should keep growing."""
        topics = (DEPTH, CONFIDENCE) if self._has_confidence() else (DEPTH,)
        names = (*(f"received.{topic}" for topic in topics), "processed")
        return names if self.state == ACTIVE else ()

    def _has_confidence(self) -> bool:
        """Return whether sigma is of a confidence too, and not of the depth alone."""
        interpreter = self._interpreter
        return interpreter is None or interpreter.config.confidence_type != NONE

    def diagnostic_values(self) -> dict[str, object]:
        """Return facts about sigma for the diagnostics."""
        interpreter = self._interpreter
        sigma = {} if interpreter is None else {"sigma": interpreter.sigma_name}
        return {"state": self.state, **sigma, **self._predictions.diagnostic_values()}

    def close(self) -> str:
        """Shut down: finish the pair in work, drop the others, return a summary line."""
        self._worker.stop(FINISH_S)
        self._predictions.stop(FINISH_S)
        self.health.leave_all("shutdown")
        take_down(self.destroy_node)
        return self.health.summary()
