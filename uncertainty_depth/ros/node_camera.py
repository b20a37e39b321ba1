# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The camera of a node's images, from the latest camera info."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo

from uncertainty_depth.errors import MessageError
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.rectification import Calibration, Rectifier
from uncertainty_depth.messages.camera_info import (
    calibration_from_info,
    description_key,
    is_fisheye_without_distortion,
    is_uncalibrated,
)
from uncertainty_depth.messages.compressed import claimed_size
from uncertainty_depth.messages.images import decode_image

DISCOVERY_S = 0.5
FIRST_INFO_TIMEOUT_S = 1.0


class NodeCamera:
    """Rectifies images. Camera infos arrive on the executor's thread, images on a worker's.

    A camera info is checked when it arrives: nothing else in the node reads its fields.

    Attributes:
        info: the latest usable camera info; None before the first.
    """

    def __init__(self, node: Node) -> None:
        self.info: CameraInfo | None = None
        self._node = node
        self._topic = node.resolve_topic_name("camera_info")
        self._has_info = threading.Event()
        self._may_wait = True
        self._key: tuple[Any, ...] | None = None
        self._calibration: Calibration | None = None
        self._problem: MessageError | None = None
        self._rectifier: Rectifier | None = None

    def add(self, message: CameraInfo) -> None:
        """Check a camera info, and use it for the following images."""
        try:
            key = description_key(message)
            if key != self._key or self._problem is not None:
                self._calibration = (
                    None if is_uncalibrated(message) else calibration_from_info(message)
                )
            if key != self._key and is_fisheye_without_distortion(message):
                self._node.get_logger().warning(
                    f"{self._topic} has distortion model equidistant with D = 0: its images are "
                    "taken for those of a pinhole; expected the four coefficients of the lens, or "
                    "plumb_bob if the images are rectified"
                )
            self._problem = None
            self._key = key
            self.info = message
        except MessageError as error:  # the frames that need it are dropped for this reason
            self._problem = error
        self._has_info.set()

    def description(self) -> str:
        """Return the type of camera info and how images are rectified, for diagnostics."""
        if self._problem is not None:
            return f"unusable: {self._problem}"
        if self.info is None:
            return f"missing: nothing on {self._topic}"
        if self._calibration is None:
            return "uncalibrated: its focal length is 0; calibrate the camera"
        rectifier = self._rectifier
        return "received" if rectifier is None else rectifier.describe()

    def view(
        self, message: Any, max_pixels: int, distorted_images: str
    ) -> tuple[NDArray[np.uint8], Camera | None]:
        """Return an image message's pixels as `distorted_images` asks, and their camera.

        The first image waits shortly for its camera info. If none is published, the image is
        returned unchanged, without a camera: it is assumed to be rectified. The camera of an
        uncalibrated camera info has focal length 0.

        Raises:
            MessageError: as `decode_image`; "no_camera_info", one is published but has not come;
                or it is invalid, or does not fit the image, which is then not decoded.
        """
        size = claimed_size(message, max_pixels)
        self._wait_for_first_info()
        if self._problem is not None:
            raise MessageError(self._problem.reason, str(self._problem))
        if self.info is None:
            if self._node.count_publishers(self._topic):
                raise MessageError(
                    "no_camera_info",
                    f"nothing has come on {self._topic}, which is published: whether the image "
                    "is rectified is not known",
                )
            return decode_image(message, max_pixels), None
        calibration = self._calibration
        if calibration is None:
            return decode_image(message, max_pixels), Camera(*size, np.zeros((3, 3)))
        rectifier = self._latest_rectifier(calibration, distorted_images, size)
        rectifier.camera(*size)
        return rectifier.image(decode_image(message, max_pixels))

    def _wait_for_first_info(self) -> None:
        if not self._may_wait:
            return
        self._has_info.wait(DISCOVERY_S)  # images may be discovered before their camera infos
        if self._node.count_publishers(self._topic):
            self._has_info.wait(FIRST_INFO_TIMEOUT_S)
        self._may_wait = False

    def _latest_rectifier(
        self, calibration: Calibration, distorted_images: str, size: tuple[int, int]
    ) -> Rectifier:
        """Return the rectifier; create and log it if camera info or option have changed."""
        rectifier = self._rectifier
        if (
            rectifier is None
            or rectifier.calibration is not calibration
            or rectifier.distorted_images != distorted_images
        ):
            rectifier = Rectifier(calibration, distorted_images)
            self._rectifier = rectifier
            self._log(rectifier, size)
        return rectifier

    def _log(self, rectifier: Rectifier, size: tuple[int, int]) -> None:
        logger = self._node.get_logger()
        logger.info(f"{self._topic} is {rectifier.describe()}")
        if note := rectifier.describe_size(*size):
            logger.warning(note)
