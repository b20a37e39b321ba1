# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Times of messages: integers of nanoseconds, which no rounding changes."""

from __future__ import annotations

from typing import Any

SECOND_NS = 1_000_000_000


def stamp_ns(header: Any) -> int:
    """Return the time of a message, nanoseconds, by its `std_msgs/Header`."""
    return header.stamp.sec * SECOND_NS + header.stamp.nanosec


def frame_name(time_ns: int) -> str:
    """Return what a frame is called: its stamp in seconds with all nine digits."""
    return f"{time_ns // SECOND_NS}.{time_ns % SECOND_NS:09d}"
