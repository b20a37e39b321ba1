"""`sensor_msgs/CameraInfo` as a pinhole camera, from rclpy and rosbags, ROS 1 and ROS 2 alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from uncertainty_depth.errors import MessageError
from uncertainty_depth.geometry.camera import Camera


def camera_from_info(message: Any) -> Camera:
    """The rectified camera: the left 3x3 of P where it is set, else K, moved to the region of interest where there is one.

    Raises:
        MessageError: camera_info_zero where neither has a focal length, camera_info_zero_size where width or height is zero.
    """
    projection, matrix = (
        np.asarray(_field(message, name), dtype=np.float64).reshape(3, -1)[:, :3] for name in "pk"
    )
    intrinsics = projection if projection[0, 0] > 0 else matrix
    if not (np.isfinite(intrinsics).all() and intrinsics[0, 0] > 0 and intrinsics[1, 1] > 0):
        raise MessageError(
            "camera_info_zero",
            "a camera info has no focal length in P or K; is the camera calibrated?",
        )
    if message.width == 0 or message.height == 0:
        raise MessageError(
            "camera_info_zero_size",
            f"a camera info has size {message.width}x{message.height}; expected the image's",
        )
    return _cropped(
        Camera(message.width, message.height, intrinsics), getattr(message, "roi", None)
    )


def is_distorted(message: Any) -> bool:
    """Whether the lens of this camera distorts its raw images."""
    return bool(np.any(np.asarray(_field(message, "d"), dtype=np.float64)))


def _field(message: Any, name: str) -> Any:
    return (
        getattr(message, name) if hasattr(message, name) else getattr(message, name.upper())
    )  # ROS 1 has capitals


def _cropped(camera: Camera, roi: Any) -> Camera:
    if roi is None or roi.width == 0 or roi.height == 0:
        return camera
    offset = np.array([[0, 0, roi.x_offset], [0, 0, roi.y_offset], [0, 0, 0]], dtype=np.float64)
    return Camera(roi.width, roi.height, camera.intrinsics - offset)
