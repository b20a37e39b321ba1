# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
r"""Start the evaluator node, beside a depth node in the same namespace or on any other topics.

ros2 launch uncertainty_depth evaluate.launch.py lidar:=/lidar/points output:=/path/of/report
ros2 launch uncertainty_depth evaluate.launch.py depth:=/stereo/depth uncertainty:=/stereo/sigma \
    depth_camera_info:=/stereo/camera_info
"""

from launch import LaunchDescription
from uncertainty_depth.ros.launching import EVALUATOR, describe


def generate_launch_description() -> LaunchDescription:
    """Return the evaluator node, its launch arguments and RViz."""
    return LaunchDescription(describe(EVALUATOR))
