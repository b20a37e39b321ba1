# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Point cloud messages as arrays, from rclpy and rosbags alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.messages.decoding import octets, total

_FORMATS = {7: "f4", 8: "f8"}  # sensor_msgs/PointField FLOAT32, FLOAT64
_SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 8: 8}  # bytes of INT8 to FLOAT64

PREDICTED_FIELDS = ({"uncertainty", "confidence_ratio"}, {"clearing_sigmas"})
"""The clouds that the nodes publish: points, and where free space ends."""


def is_predicted(message: Any) -> bool:
    """Return whether a cloud's fields show that this package's nodes made it."""
    names = {field.name for field in message.fields}
    return any(names >= fields for fields in PREDICTED_FIELDS)


def lidar_points(message: Any) -> NDArray[np.float32]:
    """Return a LiDAR's `cloud_points`; raise `MessageError` cloud_of_prediction, or as it does."""
    points = cloud_points(message)
    if is_predicted(message):
        raise MessageError(
            "cloud_of_prediction",
            "a point cloud has fields that only predicted points have (uncertainty and "
            "confidence_ratio, or clearing_sigmas): it is no ground truth; expected the cloud of "
            "a LiDAR",
        )
    return points


@total("cloud_undecodable", "a point cloud")
def cloud_points(message: Any) -> NDArray[np.float32]:
    """Return (N, 3) float32 x y z in metres for the points in a `sensor_msgs/PointCloud2`.

    What is not finite is no point, nor is (0, 0, 0): drivers write it for a beam without return.

    Raises `MessageError`: cloud_without_xyz, cloud_wrong_field_type, cloud_wrong_size or
    cloud_undecodable.
    """
    fields = {field.name: field for field in message.fields}
    if missing := [axis for axis in "xyz" if axis not in fields]:
        names = ", ".join(fields) or "none"
        raise MessageError(
            "cloud_without_xyz",
            f"a point cloud has no field {missing[0]!r}, only {names}; expected x, y and z",
        )
    if len(fields) < len(message.fields):
        names = ", ".join(field.name for field in message.fields)
        raise MessageError(
            "cloud_without_xyz", f"a point cloud has the fields {names}; expected each name once"
        )
    axes = [fields[axis] for axis in "xyz"]
    if wrong := [field for field in axes if field.datatype not in _FORMATS]:
        raise MessageError(
            "cloud_wrong_field_type",
            f"a point cloud has field {wrong[0].name!r} of datatype {wrong[0].datatype}; "
            "expected 7 (FLOAT32) or 8 (FLOAT64)",
        )
    row_step = _row_step(message)
    order = ">" if message.is_bigendian else "<"
    layout = np.dtype(
        {
            "names": ["x", "y", "z"],
            "formats": [order + _FORMATS[field.datatype] for field in axes],
            "offsets": [field.offset for field in axes],
        }
    )
    shape = (message.height, message.width)
    strides = (row_step, message.point_step)
    if 0 in shape:
        return np.empty((0, 3), np.float32)
    cloud: NDArray[Any] = np.ndarray(shape, layout, octets(message.data), strides=strides)
    points = np.stack(
        [cloud[axis].reshape(-1) for axis in "xyz"], axis=1, dtype=np.float32, casting="same_kind"
    )
    x, y, z = points.T
    is_return = np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & ((x != 0) | (y != 0) | (z != 0))
    return points if is_return.all() else points[is_return]


def _row_step(message: Any) -> int:
    """Return the bytes between rows; filters leave row_step 0, or as it was before them."""
    size = len(message.data)
    point_step = message.point_step
    row = message.width * point_step
    sizes = (
        f"a point cloud has {size} bytes, row_step {message.row_step} and point_step {point_step}"
    )
    for field in message.fields:
        end = field.offset + _SIZES.get(field.datatype, 1) * max(1, field.count)
        if point_step < end:
            raise MessageError(
                "cloud_wrong_size",
                f"{sizes}; expected point_step at least {end} for {field.name!r}",
            )
    claimed = message.height * row
    if size == claimed or (size > claimed and message.row_step == row):
        return int(row)
    is_padded = message.height > 1 and message.row_step > row
    # Rows that are a whole number of bytes a point rather have another point_step.
    if (
        is_padded
        and size == message.height * message.row_step
        and message.row_step % message.width
    ):
        return int(message.row_step)
    raise MessageError(
        "cloud_wrong_size",
        f"{sizes}; expected height {message.height} times width {message.width} times point_step",
    )
