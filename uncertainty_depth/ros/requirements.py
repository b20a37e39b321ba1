"""What to say when a ROS command is called where ROS is not."""

from __future__ import annotations

import importlib

from uncertainty_depth.errors import UncertaintyDepthError

NEEDED = (
    "rclpy",
    "sensor_msgs.msg",
    "std_msgs.msg",
    "std_srvs.srv",
    "diagnostic_msgs.msg",
    "rosgraph_msgs.msg",
)


class RosMissingError(UncertaintyDepthError):
    """ROS 2, or one of the message packages, cannot be imported."""


def require_ros() -> None:
    """Raise `RosMissingError`, with what to install, when rclpy or a message package is missing. Does nothing else."""
    for module in NEEDED:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise RosMissingError(
                f"ROS 2 is not available ({error}): source a ROS distribution, or pip install 'uncertainty_depth[ros]'"
            ) from error
