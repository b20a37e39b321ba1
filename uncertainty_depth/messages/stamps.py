# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Message times: integer nanoseconds, which rounding cannot change."""

from __future__ import annotations

from typing import Any

SECOND_NS = 1_000_000_000


def stamp_ns(header: Any) -> int:
    """Return a message's time, nanoseconds, from its `std_msgs/Header`."""
    return header.stamp.sec * SECOND_NS + header.stamp.nanosec


def frame_name(time_ns: int) -> str:
    """Return a frame's name: its stamp in seconds with all nine digits."""
    return f"{time_ns // SECOND_NS}.{time_ns % SECOND_NS:09d}"
