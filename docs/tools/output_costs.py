# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure what each output made from sigma costs, as a ratio to publishing the maps themselves.

    python docs/tools/output_costs.py

Real publishers and subscribers in one process; the subscribers are matched and never taken from,
so that the times are those of making, serialising and sending a message alone.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")

import numpy as np
import rclpy
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2
from std_msgs.msg import Header

from uncertainty_depth.config import OutputConfig
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.ros.depth_outputs import DepthOutputs
from uncertainty_depth.ros.sigma_outputs import CLOUDS, COLORS, COMPRESSED, IMAGES

SIZES = ((320, 240), (640, 480))
REPEATS = 40
MAPS = {
    "depth/image_rect": Image,
    "uncertainty/image_rect": Image,
    "depth/camera_info": CameraInfo,
    "uncertainty/camera_info": CameraInfo,
}
OUTPUTS = {
    **{f"{name}/image_rect": Image for name in IMAGES},
    **dict.fromkeys(CLOUDS, PointCloud2),
    **dict.fromkeys(COLORS, Image),
    **dict.fromkeys(COMPRESSED, CompressedImage),
}
STRIDE = 4


def scene(width: int, height: int) -> tuple[DepthPrediction, np.ndarray, Camera]:
    """Return smooth maps with some noise, as a network's are, an image and its camera."""
    random = np.random.default_rng(0)
    rows, columns = np.mgrid[:height, :width]
    depth = 3 + 2 * np.sin(columns / width * 6) + rows / height
    depth += random.normal(0, 0.002, depth.shape)
    sigma = 0.05 * depth + random.uniform(0, 0.002, depth.shape)
    image = random.integers(0, 256, (height, width, 3), np.uint8)
    intrinsics = np.array([[width, 0, width / 2], [0, width, height / 2], [0, 0, 1.0]])
    maps = DepthPrediction(depth.astype(np.float32), sigma.astype(np.float32))
    return maps, image, Camera(width, height, intrinsics)


def median_ms(work) -> float:
    """Return the median duration of a call, after two that warm up."""
    durations = []
    for _ in range(REPEATS + 2):
        start = time.perf_counter()
        work()
        durations.append(1e3 * (time.perf_counter() - start))
    return float(np.median(durations[2:]))


class Costs:
    """A node with the depth node's outputs, and subscribers that come and go."""

    def __init__(self) -> None:
        self._publishing = rclpy.create_node("publishing")
        self._listening = rclpy.create_node("listening")
        self._outputs = DepthOutputs(self._publishing)
        for topic, message_type in MAPS.items():
            self._listen(topic, message_type)

    def _listen(self, topic, message_type):
        subscription = self._listening.create_subscription(message_type, topic, id, 1)
        while not subscription.get_publisher_count():
            time.sleep(0.01)
        return subscription

    def of_maps(self, maps, image, camera) -> float:
        """Return the time to publish the maps and their camera infos, milliseconds."""
        return median_ms(lambda: self._outputs.publish(maps, Header(), camera))

    def of_outputs(self, topics, config, maps, image, camera) -> float:
        """Return the time to publish these outputs, milliseconds."""
        subscriptions = [self._listen(topic, OUTPUTS[topic]) for topic in topics]
        time.sleep(0.5)  # the publisher counts its subscribers by discovery
        cost = median_ms(
            lambda: self._outputs.views.publish(maps, Header(), camera, config, 1.96, image)
        )
        for subscription in subscriptions:
            self._listening.destroy_subscription(subscription)
        time.sleep(0.5)
        return cost


def main() -> None:
    """Print the table."""
    rclpy.init()
    costs = Costs()
    configs = {"": OutputConfig(), f", point_stride {STRIDE}": OutputConfig(point_stride=STRIDE)}
    rows: dict[str, list[str]] = {}
    for width, height in SIZES:
        frame = scene(width, height)
        base = costs.of_maps(*frame)
        cells = {"the maps and their camera infos": f"{base:.2f} ms"}
        for suffix, config in configs.items():
            for topic in OUTPUTS:
                if suffix and topic not in CLOUDS:
                    continue
                cost = costs.of_outputs([topic], config, *frame)
                cells[f"`{topic}`{suffix}"] = f"{cost / base:.1f}"
        every = costs.of_outputs(list(OUTPUTS), configs[""], *frame)
        cells["all of them at once"] = f"{every / base:.1f}"
        for name, cell in cells.items():
            rows.setdefault(name, []).append(cell)
    print("| output | " + " | ".join(f"{width}x{height}" for width, height in SIZES) + " |")
    print("| --- | --- | --- |")
    for name, found in rows.items():
        print(f"| {name} | " + " | ".join(found) + " |")
    rclpy.shutdown()


if __name__ == "__main__":
    main()
