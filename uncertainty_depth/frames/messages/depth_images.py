# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth images in metres, from rclpy and rosbags: raw, or from image_transport's plugins.

compressedDepth is quantised inverse depth in a PNG. The code of v is `q = round(A / v + B)`,
`A = z (z + 1)` with the quantization z, `B = 1 - A / MAX_VALUE`; 0 is NaN. Source: `codec.cpp` of
ros-perception/image_transport_plugins, which truncates instead of rounding.
"""

from __future__ import annotations

import struct
from array import array
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats32
from uncertainty_depth.core.config.recorded import PredictionConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.resampling import pixel_at_centre
from uncertainty_depth.frames.messages.compressed import decode_compressed
from uncertainty_depth.frames.messages.decoding import octets, total
from uncertainty_depth.frames.messages.depth_values import depth_of, sigma_of
from uncertainty_depth.frames.messages.images import image_rows
from uncertainty_depth.frames.messages.transports import decode_rvl, encoding_of, unpacked

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


@total("image_undecodable", "a depth image")
def decode_depth(message: Any) -> NDArray[np.float32]:
    """Return (H, W) float32 metres, NaN for `holes`: 32FC1 is metres, 16UC1 millimetres.

    Raises `MessageError` as `decode_image` does.
    """
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
        return _decompressed(message).astype(np.float32)
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
    values = _decompressed(message)
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


@total("image_undecodable", "a depth image")
def ground_truth_from_depth_image(message: Any, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return (H, W) float32 ground truth for an image of `shape` from its registered depth image.

    A depth image of another size is scaled: each pixel takes the depth pixel that contains its
    centre, because interpolated depth at an edge belongs to neither side. Pixels without depth are
    NaN.

    Raises:
        MessageError: as `decode_depth`, ground_truth_wrong_aspect, or ground_truth_image_empty.
    """
    return as_ground_truth(decode_depth(message), shape)


def as_ground_truth(depth_m: NDArray[np.float32], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return the ground truth for an image's shape from its registered depth, (H, W) metres.

    Raises:
        MessageError: ground_truth_wrong_aspect, or ground_truth_image_empty.
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

    Raises:
        MessageError: OpenCV cannot write the image.
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


def _decompressed(message: Any) -> NDArray[Any]:
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


UNMATCHED_REASONS = ("depth_without_uncertainty", "uncertainty_without_depth")
"""What a depth image without its confidence is counted under, and the reverse."""


def decode_maps(
    depth: Any, confidence: Any | None, config: PredictionConfig
) -> tuple[Floats32, Floats32 | None]:
    """Return depth and confidence, (H, W) each, decoded by their types; None for no confidence.

    Whole numbers are millimetres (REP 118) for depth and sigma, and unchanged for other types.

    Raises:
        MessageError: one cannot be decoded; "uncertainty_wrong_size", their sizes differ.
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
