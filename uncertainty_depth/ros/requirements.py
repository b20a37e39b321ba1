# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Check that ROS 2 is installed, and new enough, before a ROS command runs."""

from __future__ import annotations

import importlib
import importlib.util

from uncertainty_depth.core.errors import UncertaintyDepthError

REQUIRED_MODULES = (
    "rclpy",
    "rclpy.lifecycle",
    "sensor_msgs.msg",
    "std_msgs.msg",
    "std_srvs.srv",
    "diagnostic_msgs.msg",
    "rosgraph_msgs.msg",
)


SINCE = "rclpy.event_handler"
"""In Iron and newer; Humble counts lost messages by another module."""


class RosMissingError(UncertaintyDepthError):
    """ROS 2, or one of the message packages, cannot be imported."""


def require_ros() -> None:
    """Raise `RosMissingError` unless rclpy and message packages are there, and not too old."""
    for module in REQUIRED_MODULES:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise RosMissingError(
                f"ROS 2 is not available ({error}): source a ROS distribution, "
                "or pip install '.[ros]' in a clone of uncertainty_depth"
            ) from error
    if importlib.util.find_spec(SINCE) is None:
        raise RosMissingError(
            f"this rclpy has no {SINCE}: it is of Humble or older; expected ROS 2 Jazzy, Kilted "
            "or Lyrical"
        )
