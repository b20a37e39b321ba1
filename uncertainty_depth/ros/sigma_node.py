# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The sigma node: any depth and confidence to sigma in metres, corrected by what measures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from sensor_msgs.msg import CameraInfo, Image

from uncertainty_depth.core.config.nodes import SigmaNodeConfig
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.config.source import PredictionConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.records import Frame, SampleRange
from uncertainty_depth.frames.messages.decoding import check_stamp, frame_name, stamp_ns
from uncertainty_depth.frames.messages.images import UNMATCHED_REASONS, decode_maps
from uncertainty_depth.frames.pairing import ExactPairs
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S
from uncertainty_depth.ros.measurement_inputs import measurement_sources, parse_live
from uncertainty_depth.ros.messages import PredictionInfo
from uncertainty_depth.ros.predicting_node import Images, PredictingNode
from uncertainty_depth.sigma.measurement_option import sigma_name
from uncertainty_depth.sigma.recorded.confidence import NONE
from uncertainty_depth.sigma.recorded.interpreter import Interpreter

TOPICS = ("depth/image_rect", "confidence/image")
CAMERA_INFO = "depth/camera_info"
ONE_SAMPLE = SampleRange(0, 1)
PAIRS_WAITING = 30
"""Images that wait for their other one, whose driver may publish it some frames later."""
LIMITS = EvaluationConfig()
DEPTH_RANGE = (LIMITS.min_depth, LIMITS.max_depth)
"""Assumed of an unknown network, as `evaluate` does: measurements far beyond have another unit."""


class SigmaNode(PredictingNode[SigmaNodeConfig]):
    """Publishes the sigma of every pair of a depth image and its confidence.

    No network is loaded, and torch is not imported.
    """

    def __init__(self, **options: Any) -> None:
        """Create the publishers; with `autostart` read the map, then subscribe."""
        super().__init__(
            "sigma_node", "sigma", SigmaNodeConfig, CAMERA_INFO, is_own_depth=False, **options
        )
        self._interpreter: Interpreter | None = None
        self._pairs = ExactPairs(PAIRS_WAITING)
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
        if measuring.lidar:
            description["held_out_fraction"] = config.held_out_fraction
        self._predictions.publish_model(description)
        self._interpreter = interpreter
        has_confidence = len(self._topics()) > 1
        origin = description["confidence_type"] if has_confidence else "the depth alone"
        self.get_logger().info(f"sigma from {origin}")

    def _activate(self) -> None:
        self._pairs = ExactPairs(PAIRS_WAITING)
        for side, topic in enumerate(self._topics()):
            self.inputs.subscribe(
                Image,
                topic,
                partial(self._on_image, side),
                depth=PAIRS_WAITING,
                counted=True,
                purpose="sigma",
            )
        purpose = "points and the camera infos of the maps"
        add = self._camera.add
        self.inputs.subscribe(CameraInfo, CAMERA_INFO, add, once=True, purpose=purpose)
        measuring = parse_live(self.config.measurements)
        self._sources = tuple(
            measurement_sources(
                self.inputs,
                self.config,
                measuring,
                DEPTH_RANGE,
                self._camera,
                has_images=False,
            )
        )

    def _deactivate(self) -> None:
        for item in self._pairs.flush():
            self.health.leave(item.item, f"dropped.{UNMATCHED_REASONS[item.side]}")
        super()._deactivate()

    def _free(self) -> None:
        self._interpreter = None

    def _on_image(self, side: int, message: Image) -> None:
        if len(self._topics()) == 1:
            self.health.enter(message)
            self._worker.put(Images(message, (message, None)))
            return
        try:
            check_stamp(message.header, f"an image on {TOPICS[side]}")
        except MessageError as error:  # no other can be paired with it
            if side == 0:  # a depth is a frame
                self.health.enter(message)
                self.drop(message, error)
                return
            self.health.count(f"refused.{TOPICS[side]}")
            self.get_logger().warning(
                f"refused ({error.reason}): {error}", throttle_duration_sec=LOG_EVERY_S
            )
            return
        pair, unmatched = self._pairs.add(side, stamp_ns(message.header), message)
        for item in unmatched:
            reason = UNMATCHED_REASONS[item.side]
            self.health.leave(item.item, f"dropped.{reason}")
            self.get_logger().warning(
                f"dropped ({reason}): {reason.replace('_', ' ')}: their stamps differ",
                throttle_duration_sec=LOG_EVERY_S,
            )
        if pair is None:  # the first image of its stamp: a frame is counted once
            self.health.enter(message)
        else:
            self._worker.put(Images(pair[1 - side], pair))

    def _predict(self, images: Images, start_s: float) -> None:
        interpreter = self._interpreter
        if interpreter is None:  # the node was deactivated meanwhile
            return
        depth_image, confidence_image = images.sides
        depth, confidence = decode_maps(depth_image, confidence_image, interpreter.config)
        prediction = interpreter.metric(depth, confidence)
        height, width = depth.shape
        time_ns = stamp_ns(depth_image.header)
        rectifier = self._camera.rectifier(time_ns)
        camera = None if rectifier is None else rectifier.camera(width, height)
        header = self._camera.header(depth_image)
        frame = Frame(time_ns, frame_name(time_ns), camera, prediction=prediction)
        frame = self._measured(frame, header)
        if self._sources:
            from uncertainty_depth.sigma.posterior import corrected  # SciPy loads slowly

            frame = replace(frame, prediction=corrected(prediction, frame, DEPTH_RANGE))
        name = sigma_name(interpreter.sigma_name, self.config.measurements)
        made = PredictionInfo(name, ONE_SAMPLE, passes=1)
        self._predictions.publish(
            images.first, header, frame, made, interpreter.half_widths, start_s
        )

    def _topics(self) -> tuple[str, ...]:
        """Return the topics of the depth, and of its confidence if sigma is of one too."""
        interpreter = self._interpreter
        has_confidence = interpreter is None or interpreter.config.confidence_type != NONE
        return TOPICS if has_confidence else TOPICS[:1]

    def _expected_counters(self) -> tuple[str, ...]:
        return (*(f"received.{topic}" for topic in self._topics()), "processed")

    def _diagnostic_values(self) -> dict[str, object]:
        interpreter = self._interpreter
        sigma = {} if interpreter is None else {"sigma": interpreter.sigma_name}
        return {**sigma, **self._predictions.diagnostic_values()}
