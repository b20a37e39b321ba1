# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Convert a bag's messages to CDR bytes, whatever their recorded format."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from rosbags.convert.converter import migrate_bytes
from rosbags.typesys import Stores, get_typestore

from uncertainty_depth.frames.recording import Record


def cdr_converter() -> Callable[[Record], bytes]:
    """Return a function that converts records to CDR.

    ROS 1 messages become those of the same name in ROS 2, whose headers have no `seq`.
    """
    plans: dict[str, object] = {}

    def convert(record: Record) -> bytes:
        if not record.is_ros1:
            return bytes(record.data)
        ros1, ros2 = _stores()
        return bytes(
            migrate_bytes(
                ros1,
                ros2,
                record.message_type,
                record.message_type,
                plans,
                record.data,
                src_is2=False,
                dst_is2=True,
            )
        )

    return convert


@cache
def _stores() -> tuple[Any, Any]:
    return get_typestore(Stores.ROS1_NOETIC), get_typestore(Stores.ROS2_HUMBLE)
