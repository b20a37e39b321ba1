"""Arrays to messages and back. Headers are copied as they are; image data travels as one block of bytes, never as a list."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField
from std_msgs.msg import Header

from uncertainty_depth.geometry import Camera

ENCODINGS = {(np.dtype(np.float32), 2): "32FC1", (np.dtype(np.uint8), 3): "rgb8"}
POINT_TYPE = np.dtype([(name, "<f4") for name in ("x", "y", "z", "rgb", "uncertainty")])


def stamp_ns(header: Header) -> int:
    """The time of a message, nanoseconds."""
    return header.stamp.sec * 1_000_000_000 + header.stamp.nanosec


def image_message(values: NDArray, header: Header) -> Image:
    """(H, W) float32 as 32FC1, or (H, W, 3) uint8 RGB as rgb8; little-endian, rows not padded."""
    height, width = values.shape[:2]
    message = Image(header=header, height=height, width=width, encoding=ENCODINGS[values.dtype, values.ndim])
    message.step = width * values.itemsize * (values.shape[2] if values.ndim == 3 else 1)
    message.is_bigendian = 0
    message.data = byte_array(values.astype(values.dtype.newbyteorder("<"), copy=False))
    return message


def byte_array(values: NDArray) -> array:
    """The array's memory as `array.array("B")`, which a message takes without looking at each byte."""
    data = array("B")
    data.frombytes(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
    return data


def camera_info_message(info: CameraInfo, header: Header, width: int, height: int) -> CameraInfo:
    """The camera info of an image cut to the region of interest and resized to `width` x `height`, under the image's own header.

    K0, K2, P0, P2, P3 scale with the width, K4, K5, P5, P6 with the height; a camera info without a size is not scaled.
    """
    roi = info.roi
    left, top, across, down = roi.x_offset, roi.y_offset, roi.width, roi.height
    if across == 0 or down == 0:
        left, top, across, down = 0, 0, info.width, info.height
    sx, sy = (width / across, height / down) if across and down else (1.0, 1.0)
    moved = np.array([[sx, 0, -left * sx], [0, sy, -top * sy], [0, 0, 1]])
    result = CameraInfo(header=header, width=width, height=height, distortion_model=info.distortion_model, d=info.d, r=info.r)
    result.k, result.p = (moved @ info.k.reshape(3, 3)).reshape(-1), (moved @ info.p.reshape(3, 4)).reshape(-1)
    return result


def points_message(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], image: NDArray[np.uint8], camera: Camera, header: Header
) -> PointCloud2:
    """Every pixel as a point: x y z (metres, optical frame), rgb (packed as RViz reads it), uncertainty (metres).

    The cloud has the image's height and width; pixels without depth are NaN.
    """
    rows = np.zeros(depth_m.shape, POINT_TYPE)
    finite = np.where(np.isfinite(depth_m), depth_m, np.float32(np.nan))
    for name, values in zip("xyz", back_projected(finite, camera), strict=True):
        rows[name] = values
    red, green, blue = (image[..., channel].astype(np.uint32) for channel in range(3))
    rows["rgb"] = (red << 16 | green << 8 | blue).view(np.float32)
    rows["uncertainty"] = sigma_m
    height, width = depth_m.shape
    message = PointCloud2(header=header, height=height, width=width, is_dense=False, is_bigendian=False)
    message.fields = [PointField(name=name, offset=POINT_TYPE.fields[name][1], datatype=PointField.FLOAT32, count=1) for name in POINT_TYPE.names]
    message.point_step, message.row_step = POINT_TYPE.itemsize, POINT_TYPE.itemsize * width
    message.data = byte_array(rows)
    return message


def back_projected(depth_m: NDArray[np.float32], camera: Camera) -> tuple[NDArray[np.float32], ...]:
    """x, y, z of each pixel centre, each (H, W), metres, for a camera of the map's size."""
    height, width = depth_m.shape
    (fx, _, cx), (_, fy, cy), _ = camera.intrinsics
    across = ((np.arange(width) - cx) / fx).astype(np.float32)
    down = ((np.arange(height) - cy) / fy).astype(np.float32)
    return depth_m * across[None, :], depth_m * down[:, None], depth_m
