# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Start RViz with the frame of the first depth map as its fixed frame."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.task import Future
from sensor_msgs.msg import Image

TOPIC = "depth/image_rect"


def main() -> int:
    """Wait for the first map if `--frame` is empty, then become RViz; return 0 if stopped."""
    from ament_index_python.packages import get_package_prefix

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frame", default="", help="fixed frame; empty: that of the first map")
    options, rviz_arguments = parser.parse_known_args()
    try:
        frame = options.frame or frame_of_first_map()
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    rviz = Path(get_package_prefix("rviz2")) / "lib" / "rviz2" / "rviz2"
    os.execv(rviz, [str(rviz), "-f", frame, *rviz_arguments])


def frame_of_first_map() -> str:
    """Return the frame of the first depth map; ROS arguments may remap its topic."""
    rclpy.init(args=sys.argv)
    try:
        node = rclpy.create_node("rviz_on_camera")
        first_map: Future = Future()
        node.create_subscription(Image, TOPIC, first_map.set_result, 1)
        node.get_logger().info(
            f"RViz starts with the first map on {node.resolve_topic_name(TOPIC)}"
        )
        rclpy.spin_until_future_complete(node, first_map)
        message = first_map.result()
        if message is None:
            raise ExternalShutdownException
        return message.header.frame_id
    finally:
        rclpy.try_shutdown()
