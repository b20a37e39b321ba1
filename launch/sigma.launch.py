# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
r"""Start the sigma node: any depth and its confidence in, sigma in metres out.

ros2 launch uncertainty_depth sigma.launch.py sigma_map:=/path/to/map.json \
    depth:=/camera/depth confidence:=/camera/confidence depth_camera_info:=/camera/camera_info
"""

from launch import LaunchDescription
from uncertainty_depth.ros.launching import SIGMA, describe


def generate_launch_description() -> LaunchDescription:
    """Return the sigma node, its launch arguments and RViz."""
    return LaunchDescription(describe(SIGMA))
