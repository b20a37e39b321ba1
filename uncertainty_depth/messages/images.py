# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Image messages as arrays, from rclpy and rosbags alike.

This module checks the fields, removes padding and byte order, and reduces 16 bits to 8. cv_bridge
converts colours if the ROS distribution has it, else rosbags-image does: both give the same
pixels.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config.choices import MAX_PIXELS
from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.compressed import decode_compressed
from uncertainty_depth.messages.guard import check_pixels, total

_BAYER = ("rggb", "bggr", "gbrg", "grbg")
# Encoding: bytes per channel, channels, name of the same pixels with 8 bits. OpenCV's own names
# without a colour order are BGR, as OpenCV keeps them.
COLOR_ENCODINGS: dict[str, tuple[int, int, str]] = {
    **{f"{order}8": (1, len(order), f"{order}8") for order in ("rgb", "bgr", "rgba", "bgra")},
    **{f"{order}16": (2, len(order), f"{order}8") for order in ("rgb", "bgr", "rgba", "bgra")},
    **{f"bayer_{pattern}8": (1, 1, f"bayer_{pattern}8") for pattern in _BAYER},
    **{f"bayer_{pattern}16": (2, 1, f"bayer_{pattern}8") for pattern in _BAYER},
    **{name: (1, 1, "mono8") for name in ("mono8", "8UC1")},
    "mono16": (2, 1, "mono8"),
    **{name: (1, 2, "yuv422") for name in ("yuv422", "uyvy")},
    **{name: (1, 2, "yuv422_yuy2") for name in ("yuv422_yuy2", "yuyv")},
    "8UC3": (1, 3, "bgr8"),
    "8UC4": (1, 4, "bgra8"),
}
PLANAR_ENCODINGS = {"nv12": cv2.COLOR_YUV2RGB_NV12, "nv21": cv2.COLOR_YUV2RGB_NV21}
"""YUV 4:2:0: rows of brightness, then half as many rows of colour, one for two by two pixels."""


CV_BRIDGE_TRIAL_S = 30.0
CV_BRIDGE_TRIAL = """
from cv_bridge import CvBridge
from cv_bridge.boost import cv_bridge_boost
from sensor_msgs.msg import Image
image = Image(height=1, width=1, encoding="bgr8", step=3, data=b"\\x01\\x02\\x03")
assert CvBridge().imgmsg_to_cv2(image, "rgb8").tolist() == [[[3, 2, 1]]]
"""


@dataclass(frozen=True)
class _Packed:
    """The fields of `sensor_msgs/Image` that a back end reads: 8 bits a channel, no padding."""

    height: int
    width: int
    encoding: str
    step: int
    data: NDArray[np.uint8]
    is_bigendian: int = 0


@total("image_undecodable", "an image")
def decode_image(message: Any, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Return (H, W, 3) uint8 RGB of a `sensor_msgs` Image or CompressedImage.

    An unpadded rgb8 image is a view of the message.

    Args:
        message: the image.
        max_pixels: maximum size to decode, according to the header.

    Raises:
        MessageError: image_zero_size, image_too_large, image_wrong_step, image_short_data,
            image_unknown_encoding or image_undecodable.
    """
    if hasattr(message, "format"):
        flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
        image = decode_compressed(message, flags, max_pixels=max_pixels)
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=image)
    if message.encoding in PLANAR_ENCODINGS:
        return _planar_to_rgb(message, max_pixels)
    rows = image_rows(message, COLOR_ENCODINGS, max_pixels)
    if message.encoding == "rgb8":
        return rows.reshape(message.height, message.width, 3)
    return to_rgb()(_packed(message, rows))


def _planar_to_rgb(message: Any, max_pixels: int) -> NDArray[np.uint8]:
    height, width, step = message.height, message.width, message.step
    check_pixels(width, height, max_pixels)
    if height % 2 or width % 2 or step < width:
        raise MessageError(
            "image_wrong_step",
            f"an image {message.encoding} is {width}x{height} with step {step}; expected even "
            "sizes, and a step of at least the width",
        )
    rows = height + height // 2
    if len(message.data) < rows * step:
        raise MessageError(
            "image_short_data",
            f"an image has {len(message.data)} bytes; expected {rows * step}, 3/2 height {height} "
            f"times step {step}",
        )
    data = np.frombuffer(message.data, np.uint8)[: rows * step].reshape(rows, step)[:, :width]
    return cv2.cvtColor(np.ascontiguousarray(data), PLANAR_ENCODINGS[message.encoding])


def image_rows(
    message: Any, encodings: dict[str, tuple[int, int, str]], max_pixels: int = MAX_PIXELS
) -> NDArray[np.uint8]:
    """Return (H, bytes per row) without padding; a view if the message has none."""
    if message.encoding not in encodings:
        raise MessageError(
            "image_unknown_encoding",
            f"an image has encoding {message.encoding!r}{_hint(message.encoding, encodings)}; "
            f"expected one of {', '.join(encodings)}",
        )
    size, channels, _ = encodings[message.encoding]
    height = message.height
    step = message.step
    row = message.width * size * channels
    check_pixels(message.width, height, max_pixels)
    if step < row:
        raise MessageError(
            "image_wrong_step",
            f"an image has step {step}; expected at least {row} for {message.width} pixels "
            f"{message.encoding}",
        )
    data = np.frombuffer(message.data, np.uint8) if len(message.data) else np.empty(0, np.uint8)
    if data.size < height * step:
        raise MessageError(
            "image_short_data",
            f"an image has {data.size} bytes; expected {height * step}, height {height} times "
            f"step {step}",
        )
    return np.ascontiguousarray(data[: height * step].reshape(height, step)[:, :row])


def _hint(encoding: str, encodings: Collection[str]) -> str:
    is_depth = encoding in ("16UC1", "32FC1") and "rgb8" in encodings
    return ", which holds depth and is no camera image" if is_depth else ""


def _packed(message: Any, rows: NDArray[np.uint8]) -> _Packed:
    size, channels, encoding = COLOR_ENCODINGS[message.encoding]
    if encoding.startswith("yuv422") and message.width % 2:
        raise MessageError(
            "image_undecodable",
            f"an image {message.encoding} has width {message.width}; expected an even number: "
            "two pixels share their colour",
        )
    if size == 2:
        values = rows.view(">u2" if message.is_bigendian else "<u2").astype(np.uint16, copy=False)
        # 65535 becomes 255, rounded to the nearest as cv_bridge does
        rows = cv2.convertScaleAbs(values, alpha=1 / 257)
    return _Packed(
        message.height, message.width, encoding, message.width * channels, rows.reshape(-1)
    )


def rosbags_to_rgb(message: Any) -> NDArray[np.uint8]:
    """Convert an image to RGB by rosbags-image."""
    from rosbags.image import ImageError, message_to_cvimage

    try:
        return message_to_cvimage(message, "rgb8")
    except (ImageError, cv2.error) as error:
        raise _unconvertible(message, error) from error


def cv_bridge_to_rgb(message: Any) -> NDArray[np.uint8]:
    """Convert an image to RGB by cv_bridge."""
    from cv_bridge import CvBridge, CvBridgeError

    try:
        return CvBridge().imgmsg_to_cv2(message, "rgb8")
    except (CvBridgeError, cv2.error) as error:
        raise _unconvertible(message, error) from error


def _unconvertible(message: Any, error: Exception) -> MessageError:
    image = f"a {message.width}x{message.height} {message.encoding} image"
    return MessageError("image_undecodable", f"{image} cannot be converted to RGB: {error}")


@cache
def to_rgb() -> Callable[[Any], NDArray[np.uint8]]:
    """Return this installation's converter: cv_bridge if it works, else rosbags-image."""
    has_bridge = importlib.util.find_spec("cv_bridge") is not None
    return cv_bridge_to_rgb if has_bridge and cv_bridge_works() else rosbags_to_rgb


def cv_bridge_works() -> bool:
    """Return whether cv_bridge converts one pixel, tried in a separate process.

    A cv_bridge built for another NumPy imports without complaint, but ends the process at the
    first image; ROS 1's cannot be imported.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        trial = subprocess.run(
            [sys.executable, "-c", CV_BRIDGE_TRIAL],
            env=environment,
            capture_output=True,
            timeout=CV_BRIDGE_TRIAL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0
