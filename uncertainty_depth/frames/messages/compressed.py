# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compressed images in ROS messages: JPEG, PNG, and what image_transport writes.

OpenCV chooses its decoder by the first bytes. The check keeps untrusted data from its decoders for
TIFF, BMP, JPEG 2000 and others, and sizes are checked before anything is decoded.

A CompressedImage's format is the raw image's encoding, a semicolon, the codec, and the encoding of
what was compressed if it is another: "rgb8; png compressed bgr8". Others write the codec alone.
Source: ros-perception/image_transport_plugins.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import MAX_PIXELS
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.messages.decoding import check_pixels, octets

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
JPEG_MAGIC = b"\xff\xd8\xff"
MAX_JPEG_SCANS = 16
"""Scans allowed in an image of the maximum size, more in a smaller one: each passes over all
pixels, whatever its few bytes hold. Encoders write about 10."""
_JPEG_SCAN = b"\xff\xda"  # SOS; image data never have it, for their 0xff is followed by 0
_PNG_SIZE = struct.Struct(">8s4x4sII")  # magic, length, IHDR, width, height
_PNG_GRAY16 = bytes([16, 0])  # bits, colour type; they follow the height
_PNG_CHUNK = struct.Struct(">I4s")  # length, type; the content and a CRC of both follow
_PNG_HEAD = frozenset({b"IHDR", b"PLTE", b"tRNS", b"eXIf"})  # what the pixels need but IDAT
_PNG_PIXEL_BYTES = 9  # at most: four channels of 16 bits, and a filter byte for a row of one pixel
_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {
    0xC4,
    0xC8,
    0xCC,
}  # SOF0 ... SOF15; ITU T.81 table B.1
_JPEG_SKIPPED = frozenset({0xC4, 0xCC, 0xDB, 0xDD, 0xFE, *range(0xE0, 0xF0)})
"""DHT, DAC, DQT, DRI, COM, APPn: what may come before the frame header. libjpeg looks for the next
marker in what is none, as FF 00, so its header may be another than the one after that."""
ZSTD = "zstd"
_ZSTD_HEADER = struct.Struct("<IIBII")  # height, width, byte order, step, length of the encoding
_MAX_PIXEL_BYTES = 32
_GZIP_OR_ZLIB = 47  # zlib's window bits: whichever the data begin as
_RVL_HEADER = struct.Struct("<II")  # columns, rows
_MAX_NIBBLES = 10  # of a number of 30 bits


def compressed_size(message: Any, max_pixels: int, skip: int = 0) -> tuple[int, int]:
    """Return the width and height in a JPEG's or PNG's header, before anything is decoded.

    The header comes after `skip` bytes of the `sensor_msgs/CompressedImage`.

    Raises `MessageError` image_undecodable, image_zero_size or image_too_large.
    """
    size = image_size(octets(message.data)[skip:].tobytes())
    if size is None:
        raise _undecodable(_subject(message), "it does not begin as a JPEG or PNG")
    check_pixels(*size, max_pixels, _subject(message))
    return size


def decode_compressed(
    message: Any, flags: int, skip: int = 0, max_pixels: int = MAX_PIXELS
) -> NDArray[Any]:
    """Decode the JPEG or PNG after `skip` bytes of a message; raise as `compressed_size`."""
    size = compressed_size(message, max_pixels, skip)
    data = octets(message.data)[skip:].tobytes()
    return decode_bytes(data, _subject(message), size, flags, max_pixels)


def decode_bytes(
    data: bytes, subject: str, size: tuple[int, int], flags: int, max_pixels: int
) -> NDArray[Any]:
    """Decode an image whose header gives an allowed size, which it must have.

    With flags `IMREAD_COLOR` alone it is turned upright, as its Exif data say. `subject` begins
    the error's sentence. Raises as `compressed_size`.
    """
    check_pixels(*size, max_pixels, subject)
    scans = data.count(_JPEG_SCAN) if data.startswith(JPEG_MAGIC) else 0
    if scans > (allowed := MAX_JPEG_SCANS * max_pixels // (size[0] * size[1])):
        raise _undecodable(subject, f"it has {scans} scans; expected at most {allowed}")
    try:
        if data.startswith(PNG_MAGIC):
            data = _within_header(data)
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error as error:
        raise _undecodable(subject, error.err) from error
    except (ValueError, struct.error, zlib.error) as error:
        raise _undecodable(subject, f"its data are damaged: {error}") from error
    if image is None:
        raise _undecodable(subject, "its data are damaged")
    made = (image.shape[1], image.shape[0])
    may_turn = flags == cv2.IMREAD_COLOR
    if made != size and not (may_turn and made[::-1] == size):
        sizes = "x".join(map(str, made)), "x".join(map(str, size))
        raise _undecodable(subject, f"it has {sizes[0]} pixels, its header says {sizes[1]}")
    return image


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height from a JPEG or PNG header; None without such a header."""
    if data.startswith(PNG_MAGIC):
        if len(data) < _PNG_SIZE.size:
            return None
        _, chunk, width, height = _PNG_SIZE.unpack_from(data)
        return (width, height) if chunk == b"IHDR" else None
    return _jpeg_size(data) if data.startswith(JPEG_MAGIC) else None


def _png_row_bytes(data: bytes) -> int:
    """Return all rows' bytes by a PNG's header, or the most there may be."""
    _, _, width, height = _PNG_SIZE.unpack_from(data)
    bits, color, _, _, is_interlaced = data[_PNG_SIZE.size : _PNG_SIZE.size + 5]
    if is_interlaced or color not in _PNG_CHANNELS:
        return int(_PNG_PIXEL_BYTES * width * height)
    return int(height * (1 + -(-width * _PNG_CHANNELS[color] * bits // 8)))


def _within_header(data: bytes) -> bytes:
    """Return a PNG inflated once, without all that libpng would inflate beside its pixels."""
    head = []
    packed = []
    end = len(PNG_MAGIC)
    kind = b""
    while kind != b"IEND":
        start = end
        length, kind = _PNG_CHUNK.unpack_from(data, start)
        end = start + _PNG_CHUNK.size + length + 4
        if kind in _PNG_HEAD:
            head.append(data[start:end])
        elif kind == b"IDAT":
            content = data[start + _PNG_CHUNK.size : end - 4]
            if zlib.crc32(kind + content).to_bytes(4, "big") != data[end - 4 : end]:
                raise ValueError("a checksum is wrong")
            packed.append(content)
    packed_rows = b"".join(packed)
    rows = zlib.decompressobj().decompress(packed_rows, _png_row_bytes(data))
    stored = zlib.compress(rows, level=0)
    del rows  # of a large image each copy counts
    return b"".join((PNG_MAGIC, *head, *_png_chunk(b"IDAT", stored), *_png_chunk(b"IEND", b"")))


def _png_chunk(kind: bytes, content: bytes) -> tuple[bytes, ...]:
    checksum = zlib.crc32(content, zlib.crc32(kind)).to_bytes(4, "big")
    return _PNG_CHUNK.pack(len(content), kind), content, checksum


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        length = int.from_bytes(data[position + 2 : position + 4], "big")
        if marker == 0xFF:  # fill byte
            position += 1
        elif marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        elif marker in _JPEG_SKIPPED and length >= 2:
            position += 2 + length
        else:
            return None
    return None


def _subject(message: Any) -> str:
    return f"a compressed image of {len(message.data)} bytes, format {message.format!r},"


def _undecodable(subject: str, cause: str) -> MessageError:
    return MessageError("image_undecodable", f"{subject} cannot be decoded: {cause}")


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
    head = octets(message.data)[: _PNG_SIZE.size + 2].tobytes()
    is_gray16_png = head.startswith(PNG_MAGIC) and head[_PNG_SIZE.size :] == _PNG_GRAY16
    if not semicolon and is_gray16_png:
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
    """Return an image's width and height by its header; raise as `compressed_size`."""
    if getattr(message, "format", "") == ZSTD:
        message = _unpacked_header(message)
    if hasattr(message, "format"):
        return compressed_size(message, max_pixels)
    check_pixels(message.width, message.height, max_pixels)
    return message.width, message.height


def unpacked(message: Any, max_pixels: int = MAX_PIXELS) -> Any:
    """Return the Image in a zstd_image_transport's message (zlib's data), others as they are."""
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


def decode_rvl(data: bytes) -> NDArray[np.uint16]:
    """Return a depth image's (H, W) numbers that RVL compressed.

    Source: Wilson, "Fast Lossless Depth Image Compression", ISS 2017: pairs of a run of zeros and
    a run of others, which are differences to the last one, in numbers of three bits a nibble. The
    data are columns, rows, and words of eight nibbles.
    """
    if len(data) < _RVL_HEADER.size:
        raise _damaged_rvl(f"{len(data)} bytes hold no size")
    width, height = _RVL_HEADER.unpack_from(data)
    check_pixels(width, height, MAX_PIXELS)
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
