# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages as rosbags and rclpy have them, without either: written number by number."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace

import cv2
import numpy as np

from uncertainty_depth.core.errors import MessageError

DATATYPES = {"f4": 7, "f8": 8}


def image_message(
    values: np.ndarray,
    encoding: str,
    padding: int = 0,
    big_endian: bool = False,
    kind: Callable[[bytes], object] = bytes,
) -> SimpleNamespace:
    """An Image; `kind` makes its data: a NumPy array (rosbags) or array.array (rclpy), say."""
    values = values.astype(values.dtype.newbyteorder(">" if big_endian else "<"))
    rows = np.frombuffer(values.tobytes(), np.uint8).reshape(len(values), -1)
    rows = np.pad(rows, ((0, 0), (0, padding)), constant_values=77)
    height, width = values.shape[:2]
    return SimpleNamespace(
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=int(big_endian),
        step=rows.shape[1],
        data=kind(rows.tobytes()),
    )


def encoded(values: np.ndarray, suffix: str = ".png", *options: int) -> bytes:
    quality = [cv2.IMWRITE_JPEG_QUALITY, 98] * (suffix == ".jpg")
    return cv2.imencode(suffix, values, [*quality, *options])[1].tobytes()


def compressed_message(text: str, data: bytes) -> SimpleNamespace:
    return SimpleNamespace(format=text, data=data)


def decoded_or_refused(decode: Callable, message: object) -> np.ndarray | None:
    """Decode; None where it is refused. Every other exception fails the test."""
    with suppress(MessageError):
        return decode(message)
    return None


def cloud_message(
    points: np.ndarray,
    offsets: Sequence[int] = (0, 4, 8),
    formats: Sequence[str] = ("f4", "f4", "f4"),
    point_step: int = 16,
    height: int = 1,
    row_padding: int = 0,
    big_endian: bool = False,
    kind: Callable[[bytes], object] = bytes,
) -> SimpleNamespace:
    """A PointCloud2 that holds `points`, and a field `ring` before their fields."""
    width = len(points) // height
    order = ">" if big_endian else "<"
    row_step = width * point_step + row_padding
    data = bytearray(b"\x7f" * (row_step * height))
    for index, point in enumerate(points):
        start = index // width * row_step + index % width * point_step
        for value, offset, format_of in zip(point, offsets, formats, strict=True):
            number = np.array(value, order + format_of).tobytes()
            data[start + offset : start + offset + len(number)] = number
    fields = [
        SimpleNamespace(name=name, offset=offset, datatype=DATATYPES[format_of], count=1)
        for name, offset, format_of in zip("xyz", offsets, formats, strict=True)
    ]
    return SimpleNamespace(
        height=height,
        width=width,
        point_step=point_step,
        row_step=row_step,
        fields=[SimpleNamespace(name="ring", offset=0, datatype=4, count=1), *fields],
        is_bigendian=big_endian,
        data=kind(bytes(data)),
    )
