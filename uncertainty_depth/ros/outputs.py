# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Publishers of what is derived from depth and sigma while someone subscribes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import ReliabilityPolicy
from rclpy.utilities import get_rmw_implementation_identifier
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2
from std_msgs.msg import Header

from uncertainty_depth.core.config.nodes import OutputConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import DepthPrediction
from uncertainty_depth.frames.messages.images import FORMAT, encode_compressed_depth
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS, color_scales, colorize
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S
from uncertainty_depth.ros.inputs import TRANSPORTS
from uncertainty_depth.ros.messages import camera_info_message, image_message, points_message
from uncertainty_depth.ros.qos import OUTPUT_QOS
from uncertainty_depth.sigma.gating import SigmaProducts

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
