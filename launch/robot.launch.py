# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
r"""Start the depth node and the evaluator that scores it.

ros2 launch uncertainty_depth robot.launch.py model:=/path/to/model output:=/path/of/report \
    image:=/camera/image_raw camera_info:=/camera/camera_info lidar:=/lidar/points
"""

from launch import LaunchDescription
from uncertainty_depth.ros.launching import DEPTH, EVALUATOR, describe


def generate_launch_description() -> LaunchDescription:
    """Return both nodes, their launch arguments and RViz."""
    return LaunchDescription(describe(DEPTH, EVALUATOR))
