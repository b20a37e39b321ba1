# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The subscriptions of one camera: images, its camera info, and the LiDAR of its model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.extrinsics import close as close_extrinsics
from uncertainty_depth.ros.guarded import GuardedNode
from uncertainty_depth.ros.lidar_input import LidarInput
from uncertainty_depth.ros.qos import sensor_qos
from uncertainty_depth.ros.watched_input import WatchedInput

MIN_DDS_DEPTH = 10
"""Messages the middleware keeps at least: the queue, which counts what it drops, gets bursts."""
IMAGE_TOPICS = {False: (Image, "image"), True: (CompressedImage, "image/compressed")}
"""Type and name of the image topic by the parameter `compressed_input`."""


def image_qos(config: DepthNodeConfig) -> QoSProfile:
    """Return the quality of service of the camera image subscription."""
    return sensor_qos(max(MIN_DDS_DEPTH, config.queue_size), config.reliable_input)


class CameraInputs:
    """The subscriptions of a camera while the node is active."""

    def __init__(
        self,
        node: GuardedNode,
        health: Health,
        config: DepthNodeConfig,
        on_image: Callable[[Any], None],
        on_camera_info: Callable[[Any], None],
    ) -> None:
        """Declare the parameters of the quality of service.

        Args:
            node: in whose namespace the topics are.
            health: counts what is lost in transport.
            config: parameters at the start.
            on_image: takes each image.
            on_camera_info: takes each camera info.
        """
        self._node = node
        self._health = health
        self._on_image = on_image
        self._on_camera_info = on_camera_info
        self._images: WatchedInput | None = None
        self._camera_info: WatchedInput | None = None
        self._lidar: LidarInput | None = None

    @property
    def is_subscribed(self) -> bool:
        """Whether images are subscribed to."""
        return self._images is not None

    def watched(self) -> tuple[WatchedInput, ...]:
        """Return the subscriptions."""
        lidar = None if self._lidar is None else self._lidar.watched
        return tuple(item for item in (self._images, self._camera_info, lidar) if item is not None)

    def subscribe(
        self, config: DepthNodeConfig, lidar_range: tuple[float, ...] | None = None
    ) -> None:
        """Subscribe to images and their camera info, and to the LiDAR where the model takes it.

        Args:
            config: options in use.
            lidar_range: min and max depth of a model that takes the LiDAR, metres; None for none.
        """
        if lidar_range is not None:
            self._lidar = LidarInput(self._node, self._health, config, lidar_range)
        self._camera_info = WatchedInput(
            self._node,
            self._health,
            CameraInfo,
            "camera_info",
            self._on_camera_info,
            sensor_qos(MIN_DDS_DEPTH, config.reliable_input),
            once=True,
            purpose="rectified images, points and the camera infos of the maps",
        )
        message_type, topic = IMAGE_TOPICS[config.compressed_input]
        self._images = WatchedInput(
            self._node, self._health, message_type, topic, self._on_image, image_qos(config)
        )

    def unsubscribe(self) -> None:
        """End all subscriptions."""
        inputs = self.watched()
        lidar = self._lidar
        self._images = None
        self._camera_info = None
        self._lidar = None
        for watched in inputs:
            watched.close()
        if lidar is not None:
            close_extrinsics(lidar.extrinsics)

    def sparse_depth(
        self, header: Header, camera: Camera | None, config: DepthNodeConfig
    ) -> NDArray[np.float32] | None:
        """Return the LiDAR's depth in an image, see `LidarInput`; None where none is taken."""
        lidar = self._lidar
        return None if lidar is None else lidar.sparse_depth(header, camera, config)

    def facts(self) -> dict[str, object]:
        """Return facts for the diagnostics."""
        images = self._images
        if images is None:
            return {}
        return {
            "image_publishers": self._node.count_publishers(images.name),
            "image_stamp_age_s": f"{images.last_age_s:.3f}",
        }
