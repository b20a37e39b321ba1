# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The camera of a node's images, from the latest camera info."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.rectification import Rectifier
from uncertainty_depth.messages.camera_info import (
    calibration_from_info,
    description_key,
    is_uncalibrated,
)

FIRST_INFO_TIMEOUT_S = 1.0


class NodeCamera:
    """Rectifies images. Camera infos arrive on the executor's thread, images on a worker's.

    Attributes:
        info: the latest camera info; None before the first.
    """

    def __init__(self, node: Node) -> None:
        self.info: CameraInfo | None = None
        self._node = node
        self._topic = node.resolve_topic_name("camera_info")
        self._has_info = threading.Event()
        self._may_wait = True
        self._key: tuple[Any, ...] = ()
        self._rectifier: Rectifier | None = None

    def add(self, message: CameraInfo) -> None:
        """Store a camera info; the latest counts."""
        self.info = message
        self._has_info.set()

    def description(self) -> str:
        """Return the type of camera info and how images are rectified, for diagnostics."""
        if self.info is None:
            return f"missing: nothing on {self._topic}"
        if is_uncalibrated(self.info):
            return "uncalibrated: its focal length is 0; calibrate the camera"
        rectifier = self._rectifier
        return "received" if rectifier is None else rectifier.describe()

    def view(
        self, image: NDArray[np.uint8], distorted_images: str
    ) -> tuple[NDArray[np.uint8], Camera | None]:
        """Return the image as `distorted_images` asks, and its camera.

        The first image waits shortly for its camera info. Where nobody publishes one, the image
        is returned unchanged, without a camera. The camera of an uncalibrated camera info has
        focal length 0.

        Raises:
            MessageError: the camera info is invalid, or does not fit the image.
        """
        self._wait_for_first_info()
        info = self.info
        if info is None:
            return image, None
        if is_uncalibrated(info):
            height, width = image.shape[:2]
            return image, Camera(width, height, np.zeros((3, 3)))
        return self._latest_rectifier(info, distorted_images, image).image(image)

    def _wait_for_first_info(self) -> None:
        if self.info is None and self._may_wait and self._node.count_publishers(self._topic):
            self._has_info.wait(FIRST_INFO_TIMEOUT_S)
            self._may_wait = False

    def _latest_rectifier(
        self, info: CameraInfo, distorted_images: str, image: NDArray[np.uint8]
    ) -> Rectifier:
        """Return the rectifier; create and log it where camera info or option have changed."""
        key = (distorted_images, *description_key(info))
        if key != self._key or self._rectifier is None:
            self._rectifier = Rectifier(calibration_from_info(info), distorted_images)
            self._key = key
            self._log(self._rectifier, image)
        return self._rectifier

    def _log(self, rectifier: Rectifier, image: NDArray[np.uint8]) -> None:
        logger = self._node.get_logger()
        logger.info(f"{self._topic} is {rectifier.describe()}")
        if note := rectifier.describe_size(image.shape[1], image.shape[0]):
            logger.warning(note)
