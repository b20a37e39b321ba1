# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
r"""Start the depth node.

ros2 launch uncertainty_depth depth.launch.py model:=/path/to/model \
    image:=/camera/image_raw camera_info:=/camera/camera_info
"""

from launch import LaunchDescription
from uncertainty_depth.ros.launching import DEPTH, describe


def generate_launch_description() -> LaunchDescription:
    """Return the depth node, its launch arguments and RViz."""
    return LaunchDescription(describe(DEPTH))
