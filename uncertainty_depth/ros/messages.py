"""Arrays to messages and back. Headers are copied as they are; image data travels as one block of bytes, never as a list."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField
from std_msgs.msg import Header

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.messages.camera_info import fields_from_camera
from uncertainty_depth.messages.stamps import stamp_ns

if TYPE_CHECKING:
    from rclpy.node import Node

ENCODINGS = {(np.dtype(np.float32), 2): "32FC1", (np.dtype(np.uint8), 3): "rgb8"}


def age_s(node: Node, header: Header) -> float:
    """How old a message is by the node's clock, seconds; NaN while that is a /clock that has not come."""
    now_ns = node.get_clock().now().nanoseconds
    return math.nan if now_ns == 0 else (now_ns - stamp_ns(header)) * 1e-9


def image_message(values: NDArray, header: Header) -> Image:
    """(H, W) float32 as 32FC1, or (H, W, 3) uint8 RGB as rgb8; little-endian, rows not padded."""
    height, width = values.shape[:2]
    message = Image(
        header=header, height=height, width=width, encoding=ENCODINGS[values.dtype, values.ndim]
    )
    message.step = width * values.itemsize * (values.shape[2] if values.ndim == 3 else 1)
    message.is_bigendian = 0
    message.data = byte_array(values.astype(values.dtype.newbyteorder("<"), copy=False))
    return message


def byte_array(values: NDArray) -> array:
    """The array's memory as `array.array("B")`, which a message takes without looking at each byte."""
    data = array("B")
    data.frombytes(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
    return data


def camera_info_message(camera: Camera, header: Header) -> CameraInfo:
    """The camera info of this camera's images: neither region of interest nor binning remain."""
    fields = fields_from_camera(camera)._asdict()
    return CameraInfo(header=header, **(fields | {"d": fields["d"].tolist()}))


def points_message(points: NDArray[np.void], header: Header) -> PointCloud2:
    """An organised cloud of (H, W) points with float32 fields, as `point_cloud.colored_points` makes it; NaN points are allowed."""
    height, width = points.shape
    message = PointCloud2(
        header=header, height=height, width=width, is_dense=False, is_bigendian=False
    )
    fields = ((name, points.dtype.fields[name][1]) for name in points.dtype.names)
    message.fields = [
        PointField(name=name, offset=offset, datatype=PointField.FLOAT32, count=1)
        for name, offset in fields
    ]
    message.point_step, message.row_step = points.dtype.itemsize, points.dtype.itemsize * width
    message.data = byte_array(points)
    return message
