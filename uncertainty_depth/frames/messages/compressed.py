# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compressed images: only JPEG and PNG, up to the allowed number of pixels.

OpenCV chooses its decoder by the first bytes. The check keeps untrusted data from its decoders for
TIFF, BMP, JPEG 2000 and others.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import MAX_PIXELS
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.messages.decoding import check_pixels, octets

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
JPEG_MAGIC = b"\xff\xd8\xff"
MAX_JPEG_SCANS = 16
"""Of an image of the maximum size, and more of a smaller one: each scan passes over all pixels,
whatever its few bytes hold. Encoders write about 10."""
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


def compressed_size(message: Any, max_pixels: int, skip: int = 0) -> tuple[int, int]:
    """Return the width and height in a JPEG's or PNG's header, before anything is decoded.

    The header comes after `skip` bytes of the `sensor_msgs/CompressedImage`.

    Raises:
        MessageError: image_undecodable, image_zero_size or image_too_large.
    """
    size = image_size(octets(message.data)[skip:].tobytes())
    if size is None:
        raise _undecodable(_subject(message), "it does not begin as a JPEG or PNG")
    check_pixels(*size, max_pixels, _subject(message))
    return size


def decode_compressed(
    message: Any, flags: int, skip: int = 0, max_pixels: int = MAX_PIXELS
) -> NDArray[Any]:
    """Decode the JPEG or PNG after `skip` bytes of a `sensor_msgs/CompressedImage`.

    Raises:
        MessageError: image_undecodable, image_zero_size or image_too_large.
    """
    size = compressed_size(message, max_pixels, skip)
    data = octets(message.data)[skip:].tobytes()
    return decode_bytes(data, _subject(message), size, flags, max_pixels)


def decode_bytes(
    data: bytes, subject: str, size: tuple[int, int], flags: int, max_pixels: int
) -> NDArray[Any]:
    """Decode an image whose header gives an allowed size, which it must have.

    Args:
        data: the image.
        subject: what it is, for the error's sentence.
        size: width and height by the header.
        flags: `cv2.IMREAD_...`; `IMREAD_COLOR` alone turns it upright, as its Exif data say.
        max_pixels: the largest image that is decoded.

    Raises:
        MessageError: image_undecodable, image_zero_size or image_too_large.
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
        return _png_size(data)
    return _jpeg_size(data) if data.startswith(JPEG_MAGIC) else None


def is_gray16_png(data: Any) -> bool:
    """Return whether data begin as a PNG with one channel in 16 bits."""
    head = octets(data)[: _PNG_SIZE.size + 2].tobytes()
    return head[: len(PNG_MAGIC)] == PNG_MAGIC and head[_PNG_SIZE.size :] == _PNG_GRAY16


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


def _png_size(data: bytes) -> tuple[int, int] | None:
    if len(data) < _PNG_SIZE.size:
        return None
    _, chunk, width, height = _PNG_SIZE.unpack_from(data)
    return (width, height) if chunk == b"IHDR" else None


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
