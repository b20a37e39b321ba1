# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What image_transport's plugins write into a `sensor_msgs/CompressedImage`, and in which format.

The format is the raw image's encoding, a semicolon, the codec, and the encoding of what was
compressed if it is another: "rgb8; png compressed bgr8". Others write the codec alone. Source:
ros-perception/image_transport_plugins.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import MAX_PIXELS
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.messages.compressed import compressed_size, is_gray16_png
from uncertainty_depth.frames.messages.decoding import check_pixels, octets

ZSTD = "zstd"
_ZSTD_HEADER = struct.Struct("<IIBII")  # height, width, byte order, step, length of the encoding
_MAX_PIXEL_BYTES = 32
_GZIP_OR_ZLIB = 47  # zlib's window bits: whichever the data begin as
_RVL_HEADER = struct.Struct("<II")  # columns, rows
_MAX_NIBBLES = 10  # of a number of 30 bits


class Unpacked(NamedTuple):
    """A `sensor_msgs/Image` without its header."""

    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: bytes


def encoding_of(message: Any) -> str:
    """Return the encoding of an Image, or of the one that a CompressedImage was made of.

    cv_bridge writes a depth image as "png": one channel of 16 bits under it is 16UC1.
    """
    if not hasattr(message, "format"):
        return str(message.encoding)
    if message.format == ZSTD:
        return _unpacked_header(message).encoding
    encoding, semicolon, _ = message.format.partition(";")
    if not semicolon and is_gray16_png(message.data):
        return "16UC1"
    return str(encoding).strip()


def is_depth_encoding(encoding: str) -> bool:
    """Return whether this encoding holds depth; mono16 may, but usually comes from a camera."""
    return encoding in ("16UC1", "32FC1")


def is_rgb(message: Any) -> bool:
    """Return whether red comes first in a compressed image, where blue does by OpenCV's custom.

    image_transport's plugin wrote PNG so ("compressed rgb8"), and reads every colour format so
    that does not say "compressed bgr".
    """
    encoding, semicolon, codec = message.format.partition(";")
    is_color = encoding.strip().startswith(("rgb", "bgr"))
    return bool(semicolon) and is_color and "compressed bgr" not in codec


def mosaic_of(message: Any) -> str:
    """Return "rggb" or its like if a compressed image's pixels are the mosaic itself, else ""."""
    encoding, _, codec = message.format.partition(";")
    is_mosaic = encoding.startswith("bayer_") and not codec.strip().endswith(("mono8", "mono16"))
    return encoding[6:10] if is_mosaic else ""


def claimed_size(message: Any, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Return an image's width and height by its header, before anything is decoded.

    Raises:
        MessageError: image_undecodable, image_zero_size or image_too_large.
    """
    if getattr(message, "format", "") == ZSTD:
        message = _unpacked_header(message)
    if hasattr(message, "format"):
        return compressed_size(message, max_pixels)
    check_pixels(message.width, message.height, max_pixels)
    return message.width, message.height


def unpacked(message: Any, max_pixels: int = MAX_PIXELS) -> Any:
    """Return the Image in a CompressedImage of zstd_image_transport; any other message as it is.

    Its data are zlib's, whatever its name.

    Raises:
        MessageError: image_undecodable, image_zero_size or image_too_large.
    """
    if getattr(message, "format", "") != ZSTD:
        return message
    image = _unpacked_header(message)
    check_pixels(image.width, image.height, max_pixels)
    size = min(image.height * image.step, image.height * image.width * _MAX_PIXEL_BYTES)
    packed = octets(message.data)[_ZSTD_HEADER.size + len(image.encoding) :].tobytes()
    try:
        data = zlib.decompressobj(_GZIP_OR_ZLIB).decompress(packed, size)
    except zlib.error as error:
        raise MessageError(
            "image_undecodable", f"an image of format zstd cannot be inflated: {error}"
        ) from error
    return image._replace(data=data)


def _unpacked_header(message: Any) -> Unpacked:
    data = octets(message.data).tobytes()
    start = _ZSTD_HEADER.size
    if len(data) < start:
        raise MessageError(
            "image_undecodable", f"an image of format zstd has {len(data)} bytes; expected more"
        )
    height, width, is_bigendian, step, length = _ZSTD_HEADER.unpack_from(data)
    encoding = data[start : start + length].decode("ascii", "replace")
    return Unpacked(height, width, encoding, is_bigendian, step, b"")


def decode_rvl(data: bytes, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint16]:
    """Return a depth image's (H, W) numbers that RVL compressed.

    Source: Wilson, "Fast Lossless Depth Image Compression", ISS 2017: pairs of a run of zeros and
    a run of others, which are differences to the last one, in numbers of three bits a nibble. The
    data are columns, rows, and words of eight nibbles.

    Raises:
        MessageError: image_undecodable, image_zero_size or image_too_large.
    """
    if len(data) < _RVL_HEADER.size:
        raise _damaged_rvl(f"{len(data)} bytes hold no size")
    width, height = _RVL_HEADER.unpack_from(data)
    check_pixels(width, height, max_pixels)
    words = np.frombuffer(data, "<u4", (len(data) - _RVL_HEADER.size) // 4, _RVL_HEADER.size)
    octets = words.astype(">u4").view(np.uint8)
    nibbles: NDArray[np.uint8] = np.stack([octets >> 4, octets & 15], axis=1).reshape(-1)
    ends = np.flatnonzero(nibbles < 8) + 1  # the highest bit says that more of a number follow
    starts = np.append(0, ends[:-1])
    if not len(ends) or (ends - starts).max() > _MAX_NIBBLES:
        raise _damaged_rvl("a number has no end")
    nibbles = nibbles[: int(ends[-1])]
    place = np.arange(len(nibbles)) - np.repeat(starts, ends - starts)
    numbers = np.add.reduceat((nibbles & 7).astype(np.int64) << (3 * place), starts)

    pixels = width * height
    runs: list[int] = []
    heads: list[int] = []
    position = known = 0
    while known < pixels:
        if position + 1 >= len(numbers):
            raise _damaged_rvl(f"{known} of {pixels} pixels are there")
        zeros, others = numbers[position : position + 2].tolist()
        runs += (zeros, others)
        heads += (position, position + 1)
        known += zeros + others
        position += 2 + others
    if known > pixels or position > len(numbers):
        raise _damaged_rvl(f"{known} pixels are there for {pixels}")
    is_difference = np.ones(position, bool)
    is_difference[heads] = False
    zigzag = numbers[:position][is_difference]
    values = np.zeros(pixels, np.uint16)
    is_other = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    values[is_other] = np.cumsum((zigzag >> 1) ^ -(zigzag & 1)).astype(np.uint16)
    return values.reshape(height, width)


def _damaged_rvl(cause: str) -> MessageError:
    return MessageError("image_undecodable", f"an RVL image is damaged: {cause}")
