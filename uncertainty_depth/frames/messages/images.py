# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Images in ROS messages as arrays: camera images as RGB, depth in metres, from rclpy and rosbags.

A ROS distribution's cv_bridge converts colours of 8 bits; without it OpenCV does, which cv_bridge
calls too: both give the same pixels.

compressedDepth is quantised inverse depth in a PNG. The code of v is `q = round(A / v + B)`,
`A = z (z + 1)` with the quantization z, `B = 1 - A / MAX_VALUE`; 0 is NaN. Source: `codec.cpp` of
ros-perception/image_transport_plugins, which truncates instead of rounding.
"""

from __future__ import annotations

import importlib.util
import os
import struct
import subprocess
import sys
from array import array
from collections.abc import Collection, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats32
from uncertainty_depth.core.config.source import MAX_PIXELS, PredictionConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.resampling import pixel_at_centre
from uncertainty_depth.frames.messages.compressed import (
    decode_compressed,
    decode_rvl,
    encoding_of,
    is_depth_encoding,
    is_rgb,
    mosaic_of,
    unpacked,
)
from uncertainty_depth.frames.messages.decoding import check_pixels, octets, total

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
    "nv12": (1, 1, cv2.COLOR_YUV2RGB_NV12),
    "nv21": (1, 1, cv2.COLOR_YUV2RGB_NV21),
}
"""Bytes per channel, channels, and OpenCV's conversion to RGB."""
PLANAR = ("nv12", "nv21")
"""YUV 4:2:0: rows of brightness, then half as many rows of colour, one for two by two pixels."""
BRIDGED = {name: name for name in COLOR_ENCODINGS if name.endswith("8")}
BRIDGED |= {"8UC1": "mono8", "8UC3": "bgr8", "8UC4": "bgra8"}
"""cv_bridge's names of encodings."""
CV_BRIDGE_TRIAL_S = 30.0
CV_BRIDGE_TRIAL = """
from cv_bridge import CvBridge
from cv_bridge.boost import cv_bridge_boost
from sensor_msgs.msg import Image
image = Image(height=1, width=1, encoding="bgr8", step=3, data=b"\\x01\\x02\\x03")
assert CvBridge().imgmsg_to_cv2(image, "rgb8").tolist() == [[[3, 2, 1]]]
"""
SATURATED = np.array([65535, 65.535], np.float32)
"""A 16-bit sensor saw nothing, or too far: as millimetres and in metres."""
DEPTH_ENCODINGS: dict[str, tuple[int, int, str]] = {
    "32FC1": (4, 1, "f"),
    "16UC1": (2, 1, "u"),
    "mono16": (2, 1, "u"),
}
VALUE_ENCODINGS: dict[str, tuple[int, int, str]] = {
    **DEPTH_ENCODINGS,
    "64FC1": (8, 1, "f"),
    "mono8": (1, 1, "u"),
    "8UC1": (1, 1, "u"),
}
"""Encodings with one number a pixel, whatever it means."""
ASPECT_TOLERANCE = 0.02  # 848x480 of 1280x720
FORMAT = "32FC1; compressedDepth png"
"""Format for quantised inverse depth in a `sensor_msgs/CompressedImage`."""
COMPRESSED_DEPTH_HEADER = struct.Struct("<iff")
"""ConfigHeader: the compression format, and A and B."""
INVERSE_DEPTH = 0
MAX_VALUE = 10_000.0
"""Greater values have no code, and become NaN. It takes nothing from the precision of others."""
MAX_CODE = 65535
PNG_LEVEL = 1
"""zlib's level: fast; higher ones are smaller and slower."""
UNMATCHED_REASONS = ("depth_without_uncertainty", "uncertainty_without_depth")
"""What a depth image without its confidence is counted under, and the reverse."""


@total("image_undecodable", "an image")
def decode_image(message: Any, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Return (H, W, 3) uint8 RGB from a `sensor_msgs` Image or CompressedImage.

    An unpadded rgb8 image is a view of the message.

    Raises `MessageError`: image_zero_size, image_too_large, image_wrong_step, image_short_data,
    image_unknown_encoding or image_undecodable.
    """
    message = unpacked(message, max_pixels)
    if hasattr(message, "format"):
        return _decompressed(message, max_pixels)
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
    elif code is not None and message.encoding in BRIDGED and has_cv_bridge():
        return _by_cv_bridge(message, rows)
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


def _by_cv_bridge(message: Any, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    from cv_bridge import CvBridge

    packed = SimpleNamespace(
        height=message.height,
        width=message.width,
        encoding=BRIDGED[message.encoding],
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


def image_rows(
    message: Any, encodings: Mapping[str, tuple[int, int, Any]], max_pixels: int = MAX_PIXELS
) -> NDArray[np.uint8]:
    """Return (rows, bytes per row) without padding; a view if the message has none.

    There are as many rows as the image has, and of `PLANAR` ones half as many more.
    """
    if message.encoding not in encodings:
        raise _unknown_encoding(message.encoding, encodings)
    size, channels, _ = encodings[message.encoding]
    step = message.step
    row = message.width * size * channels
    check_pixels(message.width, message.height, max_pixels)
    is_planar = message.encoding in PLANAR
    if is_planar and (message.width % 2 or message.height % 2):
        raise MessageError(
            "image_wrong_step",
            f"an image {message.encoding} is {message.width}x{message.height}; expected even "
            "sizes: four pixels share their colour",
        )
    rows = message.height + (message.height // 2 if is_planar else 0)
    if step < row:
        raise MessageError(
            "image_wrong_step",
            f"an image has step {step}; expected at least {row} for {message.width} pixels "
            f"{message.encoding}",
        )
    data = octets(message.data)
    if data.size < rows * step:
        raise MessageError(
            "image_short_data",
            f"an image has {data.size} bytes; expected {rows * step}, "
            f"{'3/2 ' if is_planar else ''}height {message.height} times step {step}",
        )
    return np.ascontiguousarray(data[: rows * step].reshape(rows, step)[:, :row])


def _unknown_encoding(encoding: str, encodings: Collection[str]) -> MessageError:
    is_depth = is_depth_encoding(encoding) and "rgb8" in encodings
    hint = ", which holds depth and is no camera image" if is_depth else ""
    return MessageError(
        "image_unknown_encoding",
        f"an image has encoding {encoding!r}{hint}; expected one of {', '.join(encodings)}",
    )


def holes(values: NDArray[Any], is_inverse: bool = False) -> NDArray[np.bool_]:
    """Return which pixels of a stored depth map hold no depth: the one answer for every reader.

    They are NaN, 0 or below, whatever the type: drivers and data sets write 0 or -1. `SATURATED`,
    and an integer type's largest number, are a sensor's end, not in inverse depth, which
    networks stretch over all 16 bits. Infinity is no hole: it is beyond the range (REP 117); in
    inverse depth it is one, for nothing is at the camera.
    """
    none = ~(values > 0)
    if is_inverse:
        return none | np.isinf(values)
    return none | _is_saturated(values)


def _is_saturated(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind in "iu":
        return (values == np.iinfo(values.dtype).max) | (values == SATURATED[0])
    return np.isin(values.astype(np.float32), SATURATED)


def depth_of(
    values: NDArray[Any], is_inverse: bool = False, per_metre: float = 1000
) -> NDArray[np.float32]:
    """Return a stored depth map in metres or, if it is inverse, unchanged; NaN for holes.

    Whole numbers are `per_metre` to the metre (REP 118), others are metres.
    """
    numbers = values.astype(np.float32)
    if values.dtype.kind in "iu" and not is_inverse:
        numbers /= np.float32(per_metre)
    return np.where(holes(values, is_inverse), np.float32(np.nan), numbers)


def sigma_of(values: NDArray[Any], per_metre: float = 1000) -> NDArray[np.float32]:
    """Return a map of sigma as it is stored in metres.

    Whole numbers have holes and units as depth has; of others 0 is a claim, `SATURATED` is none.
    """
    if values.dtype.kind in "iu":
        return depth_of(values, per_metre=per_metre)
    return np.where(_is_saturated(values), np.float32(np.nan), values.astype(np.float32))


@total("image_undecodable", "a depth image")
def decode_depth(message: Any) -> NDArray[np.float32]:
    """Return (H, W) float32 metres, NaN for `holes`; raise as `decode_image`."""
    return depth_of(_stored_depth(message))


@total("image_undecodable", "an image of sigma")
def decode_sigma(message: Any) -> NDArray[np.float32]:
    """Return (H, W) float32 metres, see `sigma_of`; raise as `decode_image` does."""
    return sigma_of(_stored_depth(message))


@total("image_undecodable", "an image of values")
def decode_values(message: Any) -> NDArray[np.float32]:
    """Return the unchanged numbers in one channel, (H, W) float32; raise as `decode_image`."""
    message = unpacked(message)
    if hasattr(message, "format"):
        return _decompressed_values(message).astype(np.float32)
    return _raw_values(message, VALUE_ENCODINGS).astype(np.float32)


def _stored_depth(message: Any) -> NDArray[Any]:
    """Return a depth image's (H, W) numbers: metres, or 16-bit millimetres."""
    message = unpacked(message)
    if not hasattr(message, "format"):
        return _raw_values(message, DEPTH_ENCODINGS)
    encoding = encoding_of(message)
    if encoding not in DEPTH_ENCODINGS:
        raise MessageError(
            "image_unknown_encoding",
            f"a compressed depth image has format {message.format!r}; expected one that begins "
            f"with {', '.join(DEPTH_ENCODINGS)}, or a PNG of 16 bits",
        )
    values = _decompressed_values(message)
    expected = np.float32 if encoding == "32FC1" else np.uint16
    if values.dtype != expected:
        raise MessageError(
            "image_undecodable",
            f"a depth image of format {message.format!r} holds {values.dtype} pixels; expected "
            f"{np.dtype(expected)}, 32FC1 as compressedDepth",
        )
    return values


def _raw_values(message: Any, encodings: dict[str, tuple[int, int, str]]) -> NDArray[Any]:
    """Return an uncompressed image's (H, W) numbers in its own type and byte order."""
    rows = image_rows(message, encodings)
    size, _, number = encodings[message.encoding]
    return rows.view(f"{'>' if message.is_bigendian else '<'}{number}{size}")


def as_ground_truth(depth_m: NDArray[np.float32], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return the ground truth for an image's shape from its registered depth, (H, W) metres.

    Depth of another size is scaled: each pixel takes the depth pixel that contains its centre,
    because interpolated depth at an edge belongs to neither side. Pixels without depth are NaN.

    Raises `MessageError`: ground_truth_wrong_aspect, or ground_truth_image_empty.
    """
    if not has_aspect(depth_m.shape, shape):
        raise MessageError(
            "ground_truth_wrong_aspect",
            f"the depth image is {depth_m.shape[1]}x{depth_m.shape[0]} pixels, the camera image "
            f"{shape[1]}x{shape[0]}; expected the same aspect, of a depth image registered to "
            "the camera image",
        )
    if depth_m.shape != shape:
        rows = pixel_at_centre(shape[0], depth_m.shape[0])
        depth_m = depth_m[np.ix_(rows, pixel_at_centre(shape[1], depth_m.shape[1]))]
    valid = np.isfinite(depth_m)
    if not valid.any():
        raise MessageError(
            "ground_truth_image_empty", "the depth image has no pixel with a finite depth above 0"
        )
    return np.where(valid, depth_m, np.float32(np.nan))


def has_aspect(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether two images, (H, W, ...) each, have about the same aspect."""
    ratio = (shape[1] * other[0]) / (shape[0] * other[1])
    return abs(ratio - 1) <= ASPECT_TOLERANCE


def encode_compressed_depth(values: NDArray[np.float32], quantization: float) -> array[int]:
    """Return the data for a `sensor_msgs/CompressedImage` in format `FORMAT`, from (H, W) metres.

    A value v is read back within `v^2 / (2 A)`, A = quantization (quantization + 1). Values below
    `A / MAX_CODE` are read back as `A / MAX_CODE`, so that a near obstacle does not vanish. NaN,
    infinity and negative values become NaN. Neighbouring codes are 1 metre apart at the
    quantization.
    """
    scale = quantization * (quantization + 1)
    offset = 1 - scale / MAX_VALUE
    valid = (values >= 0) & (values < np.float32(MAX_VALUE))
    codes = np.zeros(values.shape, np.uint16)
    with np.errstate(divide="ignore"):
        inverse = np.rint(np.float32(scale) / values[valid] + np.float32(offset))
    codes[valid] = np.minimum(inverse, np.float32(MAX_CODE))
    succeeded, png = cv2.imencode(".png", codes, [cv2.IMWRITE_PNG_COMPRESSION, PNG_LEVEL])
    if not succeeded:
        shape = "x".join(map(str, values.shape[::-1]))
        raise MessageError("image_unencodable", f"a {shape} image cannot be written as PNG")
    data = array("B", COMPRESSED_DEPTH_HEADER.pack(INVERSE_DEPTH, scale, offset))
    data.frombytes(png.data)
    return data


def _decompressed_values(message: Any) -> NDArray[Any]:
    """Return the (H, W) numbers in a PNG, or in compressedDepth's PNG or RVL."""
    is_quantised = "compressedDepth" in message.format
    skip = COMPRESSED_DEPTH_HEADER.size if is_quantised else 0
    if is_quantised and message.format.rstrip().endswith("rvl"):
        codes: NDArray[Any] = decode_rvl(octets(message.data)[skip:].tobytes())
    else:
        codes = decode_compressed(message, cv2.IMREAD_UNCHANGED, skip)
    if codes.ndim != 2:
        raise MessageError(
            "image_undecodable",
            f"a compressed image holds {codes.shape[2]} channels; expected one",
        )
    if not is_quantised or encoding_of(message) != "32FC1":
        return codes
    _, scale, offset = COMPRESSED_DEPTH_HEADER.unpack(octets(message.data)[:skip].tobytes())
    with np.errstate(divide="ignore", invalid="ignore"):
        depth_m = np.float32(scale) / (codes.astype(np.float32) - np.float32(offset))
    return np.where(codes == 0, np.float32(np.nan), depth_m)


def decode_maps(
    depth: Any, confidence: Any | None, config: PredictionConfig
) -> tuple[Floats32, Floats32 | None]:
    """Return depth and confidence, (H, W) each, decoded by their types; None for no confidence.

    Whole numbers are millimetres (REP 118) for depth and sigma, and unchanged for other types.
    """
    is_inverse = config.depth_type == "inverse_depth"
    depth_map = depth_of(decode_values(depth), True) if is_inverse else decode_depth(depth)
    if confidence is None:
        return depth_map, None
    is_sigma = config.confidence_type in ("", "sigma")
    confidence_map = decode_sigma(confidence) if is_sigma else decode_values(confidence)
    check_sizes(depth_map, confidence_map)
    return depth_map, confidence_map


def check_sizes(depth: Floats32, confidence: Floats32) -> None:
    """Raise `MessageError` "uncertainty_wrong_size" unless both maps have the same size."""
    if confidence.shape != depth.shape:
        raise MessageError(
            "uncertainty_wrong_size",
            f"the uncertainty image has {confidence.shape[::-1]} pixels; expected as many as the "
            f"depth image, {depth.shape[::-1]}: the confidence of this depth, or its driver's "
            "option to publish both at one resolution",
        )
