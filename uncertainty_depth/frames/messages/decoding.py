# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What all decoders share: stamp, bytes, the largest image, one exception for what fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import MAX_PIXELS
from uncertainty_depth.core.errors import MessageError

SECOND_NS = 1_000_000_000
logger = logging.getLogger(__name__)
_copied: set[str] = set()
"""Kinds of data that the log has said are copied."""


def stamp_ns(header: Any) -> int:
    """Return a message's time, nanoseconds, from its `std_msgs/Header`."""
    return header.stamp.sec * SECOND_NS + header.stamp.nanosec


def check_stamp(header: Any, subject: str) -> None:
    """Raise `MessageError` unusable_stamp unless messages can be paired by a header's stamp.

    Drivers that know no time leave it 0, which any two messages share. `subject` begins the
    sentence, e.g. "an image on /camera/image".
    """
    seconds = header.stamp.sec
    nanoseconds = header.stamp.nanosec
    is_time = seconds >= 0 and 0 <= nanoseconds < SECOND_NS and (seconds or nanoseconds)
    if not is_time:
        raise MessageError(
            "unusable_stamp",
            f"{subject} has the stamp {seconds} s and {nanoseconds} ns; expected the time of its "
            f"measurement, above 0 s, with less than {SECOND_NS} ns: messages are paired by it",
        )


def frame_name(time_ns: int) -> str:
    """Return a frame's name: its stamp in seconds with all nine digits."""
    return f"{time_ns // SECOND_NS}.{time_ns % SECOND_NS:09d}"


def octets(data: Any) -> NDArray[np.uint8]:
    """Return a message's field `data` as bytes, (N,), in this computer's memory.

    They are a view where the field lets others read it, as the arrays of rclpy and rosbags do. A
    `rosidl_buffer.Buffer` of ROS 2 Lyrical, whose bytes may lie on a GPU, is no such array: by
    DLPack it is a view too if its memory is the computer's, else it is copied.
    """
    try:
        view = memoryview(data)
    except TypeError:
        return _of_a_backend(data)
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


def _of_a_backend(data: Any) -> NDArray[np.uint8]:
    """Return the bytes of what is no buffer of Python's, with a warning if they are copied."""
    if hasattr(data, "__dlpack__"):
        try:
            return np.from_dlpack(data).reshape(-1).view(np.uint8)
        except (BufferError, RuntimeError):  # on another device than the CPU
            pass
    kind = f"{type(data).__name__} of {getattr(data, 'backend_type', 'unknown memory')}"
    if kind not in _copied:
        _copied.add(kind)
        logger.warning(
            "the data of messages are a %s, which NumPy cannot read in place: they are copied to "
            "the computer's memory for every message",
            kind,
        )
    return octets(data.to_array() if hasattr(data, "to_array") else bytes(data))


@contextmanager
def total(reason: str, subject: str) -> Iterator[None]:
    """Turn a decoder's unexpected exceptions into `MessageError`, by reason; its decorator."""
    try:
        yield
    except MessageError:
        raise
    except Exception as error:  # NumPy's, OpenCV's, out of memory ...
        sentence = f"{subject} cannot be decoded: {type(error).__name__}: {error}"
        raise MessageError(reason, sentence) from error


def check_pixels(
    width: int, height: int, max_pixels: int = MAX_PIXELS, subject: str = "an image"
) -> None:
    """Raise `MessageError` image_zero_size or image_too_large, before anything is decoded."""
    if width <= 0 or height <= 0:
        raise MessageError(
            "image_zero_size", f"{subject} is {width}x{height} pixels; expected at least 1x1"
        )
    if width * height > max_pixels:
        raise MessageError(
            "image_too_large",
            f"{subject} is {width}x{height} pixels; expected at most {max_pixels}; "
            "max_pixels sets it for camera images",
        )
