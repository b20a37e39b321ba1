# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages from arrays.

Headers are passed on unchanged. Image data is copied as one block of bytes, never as a list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField
from std_msgs.msg import Header

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.frames.messages.camera_info import fields_from_camera
from uncertainty_depth.frames.messages.decoding import stamp_ns

if TYPE_CHECKING:
    from rclpy.node import Node

CALIBRATION_TOPIC = "uncertainty/calibration"
INFO_TOPIC = "depth/prediction_info"
CLOCK_MISSING_AGE_S = 3600.0
"""Older stamps come from another clock, a bag's."""
ENCODINGS = {(np.dtype(np.float32), 2): "32FC1", (np.dtype(np.uint8), 3): "rgb8"}


def age_s(node: Node, header: Header) -> float:
    """Return a message's age by the node's clock, seconds; NaN before the first /clock."""
    now_ns = node.get_clock().now().nanoseconds
    return math.nan if now_ns == 0 else (now_ns - stamp_ns(header)) * 1e-9


def check_age(node: Node, header: Header, max_age_s: float) -> None:
    """Raise `MessageError` if an image is older than `max_frame_age`; 0 allows any age."""
    age = age_s(node, header)
    if 0 < max_age_s < age:
        is_other_clock = age > CLOCK_MISSING_AGE_S
        hint = "; playing a bag needs use_sim_time and /clock" if is_other_clock else ""
        raise MessageError(
            "stale",
            f"an image was {age:.3f} s old, more than max_frame_age {max_age_s} s{hint}",
        )


def image_message(values: NDArray, header: Header) -> Image:
    """Return (H, W) float32 as 32FC1, (H, W, 3) uint8 RGB as rgb8; little-endian, no padding."""
    height, width = values.shape[:2]
    message = Image(
        header=header, height=height, width=width, encoding=ENCODINGS[values.dtype, values.ndim]
    )
    message.step = width * values.itemsize * (values.shape[2] if values.ndim == 3 else 1)
    message.is_bigendian = 0
    _copy_to(message, values.astype(values.dtype.newbyteorder("<"), copy=False))
    return message


def _copy_to(message: Image | PointCloud2, values: NDArray) -> None:
    """Fill `data` in place: an array that is assigned to it is copied once more."""
    message.data.frombytes(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def camera_info_message(camera: Camera, header: Header) -> CameraInfo:
    """Return the camera info of a camera, without region of interest and binning."""
    fields = fields_from_camera(camera)._asdict()
    return CameraInfo(header=header, **(fields | {"d": fields["d"].tolist()}))


def points_message(points: NDArray[np.void], header: Header) -> PointCloud2:
    """Return a cloud: (H, W) points, organised with NaN, or (N,) finite ones; float32 fields."""
    height, width = np.atleast_2d(points).shape
    message = PointCloud2(
        header=header, height=height, width=width, is_dense=points.ndim == 1, is_bigendian=False
    )
    layout: Mapping[str, Any] = points.dtype.fields or {}
    message.fields = [
        PointField(name=name, offset=field[1], datatype=PointField.FLOAT32, count=1)
        for name, field in layout.items()
    ]
    message.point_step = points.dtype.itemsize
    message.row_step = points.dtype.itemsize * width
    _copy_to(message, points)
    return message


def status_message(
    header: Header, name: str, sentence: str, values: Mapping[str, str]
) -> DiagnosticArray:
    """Return a DiagnosticArray with one status."""
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    status = DiagnosticStatus(level=DiagnosticStatus.OK, name=name, message=sentence, values=pairs)
    return DiagnosticArray(header=header, status=[status])


def type_name(message_type: type[Any]) -> str:
    """Return a message class's name in the graph, e.g. sensor_msgs/msg/Image."""
    package, interface, _ = message_type.__module__.split(".", 2)
    return f"{package}/{interface}/{message_type.__name__}"
