# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Publish predictions, corrected by an evaluator's estimate, and how each was made."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header, String

from uncertainty_depth.core.config.nodes import DepthNodeConfig, SigmaNodeConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.records import DepthPrediction, SampleRange
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.published import PREDICTION, status_values
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S, Health
from uncertainty_depth.ros.messages import (
    CALIBRATION_TOPIC,
    INFO_TOPIC,
    age_s,
    camera_info_message,
    image_message,
    status_message,
)
from uncertainty_depth.ros.outputs import MAPS, DerivedOutputs
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS
from uncertainty_depth.ros.sigma_messages import (
    ESTIMATE,
    PredictionInfo,
    info_values,
    read_estimate,
)
from uncertainty_depth.ros.worker import Worker
from uncertainty_depth.sigma.calibration.half_widths import HalfWidths
from uncertainty_depth.sigma.online.correction_filter import CorrectionFilter


class PredictionSource(NamedTuple):
    """What a prediction was made with.

    Attributes:
        sigma: identifies the sigma, which an estimate must be for.
        half_widths: its intervals', in sigmas.
        samples: those that were used; the default without samples.
        passes: how many there are.
        measurements: what corrected it beside a LiDAR; None for nothing.
    """

    sigma: str
    half_widths: HalfWidths
    samples: SampleRange = SampleRange(0, 1)
    passes: int = 1
    measurements: Measurements | None = None


class PredictionPublisher:
    """Corrects a camera's predictions, and publishes them, their model, and how each was made."""

    def __init__(self, node: Node, health: Health, *, is_own_depth: bool = True) -> None:
        """Create the publishers, of sigma alone if another node has published its depth."""
        maps = tuple(MAPS) if is_own_depth else ("uncertainty",)
        self._maps = {
            name: node.create_publisher(Image, f"{name}/image_rect", OUTPUT_QOS) for name in maps
        }
        self._camera_infos = [
            node.create_publisher(CameraInfo, f"{name}/camera_info", OUTPUT_QOS) for name in maps
        ]
        self._model = node.create_publisher(String, "depth/model", LATCHED_QOS)
        self._derived = DerivedOutputs(node, is_own_depth=is_own_depth)
        self._views: Worker[Callable[[], None]] = Worker(
            self._publish_views, lambda *_: None, "views"
        )
        self._node = node
        self._health = health
        self._correction = CorrectionFilter()
        self._last: PredictionInfo | None = None
        self._info = node.create_publisher(DiagnosticArray, INFO_TOPIC, OUTPUT_QOS)
        node.create_subscription(
            DiagnosticArray, CALIBRATION_TOPIC, self._on_estimate, LATCHED_QOS
        )

    def publish(
        self,
        frame: object,
        header: Header,
        prediction: DepthPrediction,
        camera: Camera | None,
        origin: PredictionSource,
        config: DepthNodeConfig | SigmaNodeConfig,
        start_s: float,
        image: NDArray[np.uint8] | None = None,
    ) -> float:
        """Publish a frame's maps; it leaves `health`. Return its milliseconds since `start_s`.

        Sigma is corrected by what is in force, depth is scaled. What is derived from the maps
        follows on a thread of its own, while the next frame is computed; no frame's is left out.
        The camera is None if no info is published.
        """
        health = self._health
        self._correction.config = config
        unfamiliarity = prediction.unfamiliarity
        in_force = self._correction.at(stamp_ns(header), origin.sigma)
        if self._correction.warning:
            self._node.get_logger().warning(
                self._correction.warning, throttle_duration_sec=LOG_EVERY_S
            )
        if prediction.scale_log_sigma is not None:
            in_force = replace(in_force, scale_sigma=prediction.scale_log_sigma)
        measured: tuple[int, ...] = ()
        if (measurements := origin.measurements) is not None:
            width = prediction.depth_m.shape[1]
            measured = tuple((measurements.rows * width + measurements.columns).tolist())
        info = PredictionInfo(
            origin.sigma, origin.samples, origin.passes, in_force, unfamiliarity, measured
        )
        corrected = in_force.applied(prediction)
        self._last = info
        # before the maps: the evaluator then has it when they come
        self._info.publish(status_message(header, PREDICTION, "", info_values(info)))
        if camera is not None:  # first: a subscriber of maps then has their camera info
            camera_info = camera_info_message(camera, header)
            for publisher in self._camera_infos:
                publisher.publish(camera_info)
        for name, publisher in self._maps.items():
            publisher.publish(image_message(MAPS[name](corrected), header))
        health.leave(frame)
        health.duration("latency", age_s(self._node, header) * 1e3)
        milliseconds = (time.perf_counter() - start_s) * 1e3
        health.duration("processing", milliseconds)
        if unfamiliarity is not None and unfamiliarity > 1:
            health.count("unfamiliar")
        half_width = (info.half_widths or origin.half_widths).at(config.coverage)

        self._views.wait()  # for those of the frame before
        self._views.put(
            partial(self._derived.publish, corrected, header, camera, config, half_width, image)
        )
        return milliseconds

    def _publish_views(self, publish: Callable[[], None]) -> None:
        try:
            publish()
        except Exception as error:  # the maps are published: no frame is dropped
            if self._node.context.ok():  # else a signal struck meanwhile
                self._health.count("views_failed")
                self._node.get_logger().warning(
                    f"points or color images failed: {error}", throttle_duration_sec=LOG_EVERY_S
                )

    def wait(self, timeout_s: float) -> None:
        """Wait until the views of the last frame are published."""
        self._views.wait(timeout_s)

    def stop(self, timeout_s: float) -> None:
        """Finish the views in work, and end their thread."""
        self._views.stop(timeout_s)

    def publish_model(self, description: Mapping[str, Any]) -> None:
        """Publish the description of the model as JSON, to later subscribers too."""
        self._model.publish(String(data=json.dumps(description)))

    def problems(self) -> list[str]:
        """Return what the diagnostics warn of."""
        return [self._correction.warning] if self._correction.warning else []

    def diagnostic_values(self) -> dict[str, object]:
        """Return facts for the diagnostics: subscribers, samples, and the correction in force."""
        subscribers: dict[str, object] = {
            f"{name}_subscribers": publisher.get_subscription_count()
            for name, publisher in self._maps.items()
        }
        last = self._last
        if last is None:
            return subscribers
        in_force = last.in_force
        unfamiliarity = last.unfamiliarity
        extra = {} if unfamiliarity is None else {"unfamiliarity": f"{unfamiliarity:.2f}"}
        if in_force.scale_sigma is not None:
            extra["scale_sigma"] = f"{in_force.scale_sigma:.3f}"
        return {
            **subscribers,
            **extra,
            "samples_used": f"{last.samples.count} of {last.passes}",
            "calibration": in_force.source,
            "calibration_reason": in_force.reason,
            "calibration_factor": f"{in_force.correction:.3f}",
            "depth_scale": f"{in_force.depth_scale:.3f}",
            "depth_scale_reason": in_force.depth_scale_reason,
        }

    def _on_estimate(self, message: DiagnosticArray) -> None:
        try:
            values = status_values(message.status, ESTIMATE)
            self._correction.receive(read_estimate(stamp_ns(message.header), values))
            self._health.count(f"received.{CALIBRATION_TOPIC}")
        except MessageError as error:
            self._health.count(f"refused.{CALIBRATION_TOPIC}")
            self._node.get_logger().warning(
                f"{CALIBRATION_TOPIC} is ignored: {error}", throttle_duration_sec=LOG_EVERY_S
            )
