# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Camera images in ROS messages as RGB arrays: fields checked, padding and byte order removed.

A ROS distribution's cv_bridge converts colours of 8 bits; without it OpenCV does, which cv_bridge
calls too: both give the same pixels.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import MAX_PIXELS
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.messages.compressed import decode_compressed
from uncertainty_depth.frames.messages.decoding import check_pixels, octets, total
from uncertainty_depth.frames.messages.transports import (
    encoding_of,
    is_depth_encoding,
    is_rgb,
    mosaic_of,
    unpacked,
)

_ORDERS = {
    "rgb": None,
    "bgr": cv2.COLOR_BGR2RGB,
    "rgba": cv2.COLOR_RGBA2RGB,
    "bgra": cv2.COLOR_BGRA2RGB,
}
_BAYER = {  # ROS names the upper left pixels, OpenCV the second row's from the second on
    "rggb": cv2.COLOR_BAYER_BG2RGB,
    "bggr": cv2.COLOR_BAYER_RG2RGB,
    "gbrg": cv2.COLOR_BAYER_GR2RGB,
    "grbg": cv2.COLOR_BAYER_GB2RGB,
}
COLOR_ENCODINGS: dict[str, tuple[int, int, int | None]] = {
    **{f"{order}8": (1, len(order), code) for order, code in _ORDERS.items()},
    **{f"{order}16": (2, len(order), code) for order, code in _ORDERS.items()},
    **{f"bayer_{pattern}8": (1, 1, code) for pattern, code in _BAYER.items()},
    **{f"bayer_{pattern}16": (2, 1, code) for pattern, code in _BAYER.items()},
    **{name: (1, 1, cv2.COLOR_GRAY2RGB) for name in ("mono8", "8UC1")},
    "mono16": (2, 1, cv2.COLOR_GRAY2RGB),
    **{name: (1, 2, cv2.COLOR_YUV2RGB_UYVY) for name in ("yuv422", "uyvy")},
    **{name: (1, 2, cv2.COLOR_YUV2RGB_YUY2) for name in ("yuv422_yuy2", "yuyv")},
    "8UC3": (1, 3, cv2.COLOR_BGR2RGB),  # OpenCV keeps colours in this order
    "8UC4": (1, 4, cv2.COLOR_BGRA2RGB),
}
"""Bytes per channel, channels, and OpenCV's conversion to RGB."""
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


@total("image_undecodable", "an image")
def decode_image(message: Any, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Return (H, W, 3) uint8 RGB from a `sensor_msgs` Image or CompressedImage.

    An unpadded rgb8 image is a view of the message.

    Raises:
        MessageError: image_zero_size, image_too_large, image_wrong_step, image_short_data,
            image_unknown_encoding or image_undecodable.
    """
    message = unpacked(message, max_pixels)
    if hasattr(message, "format"):
        return _decompressed(message, max_pixels)
    if message.encoding in PLANAR_ENCODINGS:
        return _planar_to_rgb(message, max_pixels)
    rows = image_rows(message, COLOR_ENCODINGS, max_pixels)
    size, channels, code = COLOR_ENCODINGS[message.encoding]
    if channels == 2 and message.width % 2:
        raise MessageError(
            "image_undecodable",
            f"an image {message.encoding} has width {message.width}; expected an even number: "
            "two pixels share their colour",
        )
    if size == 2:
        values = rows.view(">u2" if message.is_bigendian else "<u2").astype(np.uint16, copy=False)
        rows = _eight_bits(values)
    elif code is not None and (name := _bridge_name(message.encoding)) and has_cv_bridge():
        return _by_cv_bridge(message, name, rows)
    pixels = rows if channels == 1 else rows.reshape(message.height, message.width, channels)
    return pixels if code is None else cv2.cvtColor(pixels, code)


def _decompressed(message: Any, max_pixels: int) -> NDArray[np.uint8]:
    """Return a JPEG's or PNG's colours."""
    if is_depth_encoding(encoding := encoding_of(message)):
        raise _unknown_encoding(encoding, COLOR_ENCODINGS)
    if (mosaic := mosaic_of(message)) in _BAYER:
        values = decode_compressed(message, cv2.IMREAD_UNCHANGED, max_pixels=max_pixels)
        if values.ndim == 2:
            return cv2.cvtColor(_eight_bits(values), _BAYER[mosaic])
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    image = decode_compressed(message, flags, max_pixels=max_pixels)
    return image if is_rgb(message) else cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=image)


def _eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return 65535 as 255, rounded to the nearest as cv_bridge does; 8 bits as they are."""
    return values if values.dtype == np.uint8 else cv2.convertScaleAbs(values, alpha=1 / 257)


def _bridge_name(encoding: str) -> str:
    """Return cv_bridge's name of an encoding of 8 bits; empty if it has none."""
    names = {"8UC1": "mono8", "8UC3": "bgr8", "8UC4": "bgra8"}
    return names.get(encoding, encoding if encoding.endswith("8") else "")


def _by_cv_bridge(message: Any, encoding: str, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    from cv_bridge import CvBridge

    packed = SimpleNamespace(
        height=message.height,
        width=message.width,
        encoding=encoding,
        step=rows.shape[1],
        data=rows.reshape(-1),
        is_bigendian=0,
    )
    return np.asarray(CvBridge().imgmsg_to_cv2(packed, "rgb8"), np.uint8)


@cache
def has_cv_bridge() -> bool:
    """Return whether there is a cv_bridge that converts one pixel, tried in a separate process.

    One that was built for another NumPy imports without complaint, but ends the process at the
    first image; ROS 1's cannot be imported.
    """
    if importlib.util.find_spec("cv_bridge") is None:
        return False
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
    data = octets(message.data)[: rows * step].reshape(rows, step)[:, :width]
    return cv2.cvtColor(np.ascontiguousarray(data), PLANAR_ENCODINGS[message.encoding])


def image_rows(
    message: Any, encodings: Mapping[str, tuple[int, int, Any]], max_pixels: int = MAX_PIXELS
) -> NDArray[np.uint8]:
    """Return (H, bytes per row) without padding; a view if the message has none."""
    if message.encoding not in encodings:
        raise _unknown_encoding(message.encoding, encodings)
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
    data = octets(message.data)
    if data.size < height * step:
        raise MessageError(
            "image_short_data",
            f"an image has {data.size} bytes; expected {height * step}, height {height} times "
            f"step {step}",
        )
    return np.ascontiguousarray(data[: height * step].reshape(height, step)[:, :row])


def _unknown_encoding(encoding: str, encodings: Collection[str]) -> MessageError:
    is_depth = is_depth_encoding(encoding) and "rgb8" in encodings
    hint = ", which holds depth and is no camera image" if is_depth else ""
    return MessageError(
        "image_unknown_encoding",
        f"an image has encoding {encoding!r}{hint}; expected one of {', '.join(encodings)}",
    )
