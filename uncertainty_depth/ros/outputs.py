# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a prediction publishes: its maps, how it was made, and on demand what follows from them."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import ReliabilityPolicy
from rclpy.utilities import get_rmw_implementation_identifier
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2
from std_msgs.msg import Header, String

from uncertainty_depth.core.config.nodes import OutputConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import FORMAT, encode_compressed_depth
from uncertainty_depth.frames.published import PREDICTION, status_values
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS, color_scales, colorize
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S
from uncertainty_depth.ros.inputs import TRANSPORTS
from uncertainty_depth.ros.messages import (
    CALIBRATION_TOPIC,
    ESTIMATE,
    INFO_TOPIC,
    PredictionInfo,
    age_s,
    camera_info_message,
    image_message,
    info_values,
    points_message,
    read_estimate,
    status_message,
)
from uncertainty_depth.ros.node import ManagedNode
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS
from uncertainty_depth.ros.worker import Worker
from uncertainty_depth.sigma.calibration.half_widths import HalfWidths
from uncertainty_depth.sigma.gating import SigmaProducts
from uncertainty_depth.sigma.online.correction import CorrectionFilter

MAPS: dict[str, Callable[[DepthPrediction], NDArray[np.float32]]] = {
    "depth": attrgetter("depth_m"),
    "uncertainty": attrgetter("sigma_m"),
}
"""What is published as `image_rect` under these names, beside its `camera_info`."""
DERIVED: dict[str, Callable[[SigmaProducts], NDArray[np.float32]]] = {
    "depth/confident": attrgetter("confident_depth_m"),
    "depth/lower": attrgetter("lower_m"),
    "depth/upper": attrgetter("upper_m"),
}
"""Maps that are computed only while someone subscribes."""
CORRECTED = "depth/corrected"
"""The depth of a node behind another one, which has published it as it was before measurements."""
CLOUDS: dict[str, Callable[[SigmaProducts], NDArray[np.void]]] = {
    "points": attrgetter("points"),
    "points/confident": attrgetter("confident_points"),
    "points/clearing": attrgetter("clearing_points"),
}
COLORED_POINTS = "points/uncertainty_color"
"""`points` in the colours of `uncertainty/image_color`: RViz has no such palette of its own."""
COLORS = ("depth/image_color", "uncertainty/image_color")
SCALES = "color_scales/image"
"""The color images' legend."""
QUANTIZATION = {"depth": 100.0, "uncertainty": 10.0}
"""Depth and sigma, metres, at which neighbouring codes of compressedDepth are 1 metre apart."""

MAX_BEST_EFFORT_BYTES = 512 * 1024
"""Fast DDS's default shared memory: of larger messages best-effort subscribers get hardly any."""


class DerivedOutputs:
    """Publishes gated and bounded depth, clouds, and color and compressed images of the maps.

    Nothing is computed without a subscriber. It needs no network: anything with depth, sigma and a
    camera can use it.
    """

    def __init__(self, node: Node, *, is_own_depth: bool = True) -> None:
        """Create the publishers; depth that is not the node's own is `CORRECTED`."""
        depth = "depth" if is_own_depth else CORRECTED

        def publishers(message_type: type, topics: Any) -> dict[str, Publisher]:
            return {
                topic: node.create_publisher(message_type, topic, OUTPUT_QOS) for topic in topics
            }

        self._node = node
        self._derived = dict(DERIVED)
        if not is_own_depth:
            self._derived[CORRECTED] = attrgetter("depth_m")
        self._images = publishers(Image, [f"{name}/image_rect" for name in self._derived])
        self._infos = publishers(CameraInfo, [f"{name}/camera_info" for name in self._derived])
        self._clouds = publishers(PointCloud2, (*CLOUDS, COLORED_POINTS))
        self._colors = publishers(Image, (*COLORS, SCALES))
        self._compressed = publishers(
            CompressedImage,
            [f"{name}/image_rect/compressedDepth" for name in (depth, "uncertainty")],
        )

    def publish(
        self,
        prediction: DepthPrediction,
        header: Header,
        camera: Camera | None,
        config: OutputConfig,
        half_width: float,
        image: NDArray[np.uint8] | None = None,
    ) -> None:
        """Publish what has subscribers.

        Clouds need a calibrated camera, their colours the image, (H, W, 3) uint8 RGB.
        `depth/lower` and `depth/upper` lie `half_width` sigmas from the depth.
        """
        products = SigmaProducts(
            prediction.depth_m, prediction.sigma_m, config, half_width, camera, image
        )
        max_depth, max_sigma = config.color_max_depth, config.color_max_sigma
        color_sigma = partial(colorize, prediction.sigma_m, max_sigma, SIGMA_COLORS)
        clouds = CLOUDS | {COLORED_POINTS: lambda products: products.painted(color_sigma())}
        if camera is not None:  # first: a subscriber of maps then has their camera info
            for publisher in _heard(self._infos).values():
                publisher.publish(camera_info_message(camera, header))
        for topic, publisher in _heard(self._images).items():
            values = self._derived[topic.removesuffix("/image_rect")](products)
            publisher.publish(image_message(values, header))
        if products.has_points:
            for topic, publisher in _heard(self._clouds).items():
                cloud = points_message(clouds[topic](products), header)
                publisher.publish(cloud)
                self._warn_of_size(topic, len(cloud.data), config.point_stride)
        depth, sigma = COLORS
        colored = {
            depth: partial(colorize, prediction.depth_m, max_depth, DEPTH_COLORS),
            sigma: color_sigma,
            SCALES: partial(color_scales, max_depth, max_sigma),
        }
        for topic, publisher in _heard(self._colors).items():
            publisher.publish(image_message(colored[topic](), header))
        for topic, publisher in _heard(self._compressed).items():
            name = topic.partition("/")[0]
            data = encode_compressed_depth(MAPS[name](prediction), QUANTIZATION[name])
            publisher.publish(CompressedImage(header=header, format=FORMAT, data=data))

    def _warn_of_size(self, topic: str, size: int, stride: int) -> None:
        """Warn of a cloud that best-effort subscribers, as Nav2's costmaps, will not get."""
        if size <= MAX_BEST_EFFORT_BYTES or os.environ.get(TRANSPORTS):
            return
        if "fastrtps" not in get_rmw_implementation_identifier():
            return
        name = self._node.resolve_topic_name(topic)
        subscribers = self._node.get_subscriptions_info_by_topic(name)
        asked = {subscriber.qos_profile.reliability for subscriber in subscribers}
        if ReliabilityPolicy.BEST_EFFORT in asked:
            enough = math.ceil(stride * math.sqrt(size / MAX_BEST_EFFORT_BYTES))
            self._node.get_logger().warning(
                f"{name}: a cloud has {size / 1e6:.1f} MB; of more than "
                f"{MAX_BEST_EFFORT_BYTES / 1e6:.1f} MB a best-effort subscriber, as Nav2's "
                f"costmap, gets next to nothing: set point_stride to {enough} or more, or export "
                f"{TRANSPORTS}=LARGE_DATA for every process",
                throttle_duration_sec=LOG_EVERY_S,
            )


def _heard(publishers: dict[str, Publisher]) -> dict[str, Publisher]:
    """Return the publishers with subscribers."""
    return {
        topic: publisher
        for topic, publisher in publishers.items()
        if publisher.get_subscription_count()
    }


class PredictionPublisher:
    """Corrects a camera's predictions, and publishes them, their model, and how each was made."""

    def __init__(self, node: ManagedNode[Any], *, is_own_depth: bool = True) -> None:
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
        self._correction = CorrectionFilter()
        self._last: PredictionInfo | None = None
        self._info = node.create_publisher(DiagnosticArray, INFO_TOPIC, OUTPUT_QOS)
        node.create_subscription(
            DiagnosticArray, CALIBRATION_TOPIC, self._on_estimate, LATCHED_QOS
        )

    def publish(
        self,
        message: object,
        header: Header,
        frame: Frame,
        made: PredictionInfo,
        half_widths: HalfWidths,
        start_s: float,
    ) -> float | None:
        """Publish a frame's maps; its message then leaves `health`, as processed.

        Sigma is corrected by what is in force, depth is scaled. What is derived from the maps
        follows on a thread of its own, while the next frame is computed; no frame's is left out.
        The camera is None if no info is published. Returns the milliseconds since `start_s`; None
        if the node was deactivated meanwhile, and nothing is published.
        """
        health = self._node.health
        config = self._node.config
        if not health.is_inside(message):
            return None
        prediction, camera = frame.need_prediction(), frame.camera
        self._correction.config = config
        in_force = self._correction.at(stamp_ns(header), made.sigma)
        if self._correction.warning:
            self._node.get_logger().warning(
                self._correction.warning, throttle_duration_sec=LOG_EVERY_S
            )
        if prediction.scale_log_sigma is not None:
            in_force = replace(in_force, scale_sigma=prediction.scale_log_sigma)
        measured: tuple[int, ...] = ()
        if (measurements := frame.measurements) is not None:
            width = prediction.depth_m.shape[1]
            measured = tuple((measurements.rows * width + measurements.columns).tolist())
        unfamiliarity = prediction.unfamiliarity
        info = replace(made, in_force=in_force, unfamiliarity=unfamiliarity, measured=measured)
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
        health.leave(message)
        health.duration("latency", age_s(self._node, header) * 1e3)
        milliseconds = (time.perf_counter() - start_s) * 1e3
        health.duration("processing", milliseconds)
        if unfamiliarity is not None and unfamiliarity > 1:
            health.count("unfamiliar")
        half_width = (info.half_widths or half_widths).at(config.coverage)

        self._views.wait()  # for those of the frame before
        self._views.put(
            partial(
                self._derived.publish, corrected, header, camera, config, half_width, frame.image
            )
        )
        return milliseconds

    def _publish_views(self, publish: Callable[[], None]) -> None:
        try:
            publish()
        except Exception as error:  # the maps are published: no frame is dropped
            if self._node.context.ok():  # else a signal struck meanwhile
                self._node.health.count("views_failed")
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
            self._node.health.count(f"received.{CALIBRATION_TOPIC}")
        except MessageError as error:
            self._node.health.count(f"refused.{CALIBRATION_TOPIC}")
            self._node.get_logger().warning(
                f"{CALIBRATION_TOPIC} is ignored: {error}", throttle_duration_sec=LOG_EVERY_S
            )
