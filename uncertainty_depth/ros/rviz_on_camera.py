# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Start RViz on this package's displays, with the frame of the first depth map as fixed frame."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from uncertainty_depth.core.errors import UncertaintyDepthError
from uncertainty_depth.ros.main import RosMissingError, require_ros

if TYPE_CHECKING:
    from rclpy.node import Node

TOPIC = "depth/image_rect"
IMAGE_TYPE = "sensor_msgs/msg/Image"
TELL_EVERY_S = 5.0


def main() -> int:
    """Wait for the first map if `--frame` is empty, then become RViz; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frame", default="", help="fixed frame; empty: that of the first map")
    parser.add_argument(
        "--show", action="append", default=[], help="name of a display that is off in the file"
    )
    options, rviz_arguments = parser.parse_known_args()
    try:
        require_ros()
        rviz = _prefix("rviz2", "`apt install ros-$ROS_DISTRO-rviz2`") / "lib" / "rviz2" / "rviz2"
        own = _prefix("uncertainty_depth", "`colcon build`, and source install/setup.bash")
    except UncertaintyDepthError as error:
        print(f"rviz_on_camera: {error}", file=sys.stderr)
        return 1
    config = own / "share" / "uncertainty_depth" / "config" / "uncertainty_depth.rviz"
    if options.show:
        config = with_shown(config, options.show)
    frame = options.frame or frame_of_first_map()
    if not frame:
        return 0
    os.execv(rviz, [str(rviz), "-d", str(config), "-f", frame, *rviz_arguments])


def _prefix(package: str, remedy: str) -> Path:
    from ament_index_python.packages import get_package_prefix

    try:
        return Path(get_package_prefix(package))
    except (LookupError, OSError) as error:  # no such package; no distribution is sourced
        raise RosMissingError(
            f"the ROS package {package} is not found; expected a sourced ROS distribution that "
            f"has it: {remedy}"
        ) from error


def with_shown(config: Path, names: Sequence[str]) -> Path:
    """Return a copy of the displays, in a temporary file, with these images shown."""
    content = yaml.safe_load(config.read_text())
    for display in content["Visualization Manager"]["Displays"]:
        if display["Name"] in names:
            display["Enabled"] = display["Value"] = True
    window = content["Window Geometry"]
    state = bytes.fromhex(window["QMainWindow State"])
    for name in names:
        dock = name.encode("utf-16-be")
        before, _, after = state.partition(dock)
        state = before + dock + b"\x01" + after[1:]  # Qt: visible
    window["QMainWindow State"] = state.hex()
    # RViz takes this process's place, and its number: nobody deletes the file after it.
    copy = Path(tempfile.gettempdir()) / f"uncertainty_depth_{os.getuid()}_{os.getpid()}.rviz"
    copy.unlink(missing_ok=True)
    with copy.open("x") as file:
        yaml.safe_dump(content, file)
    return copy


def frame_of_first_map() -> str:
    """Return the frame of the first depth map, empty if stopped; ROS arguments may remap it."""
    import rclpy
    from rclpy.clock import Clock, ClockType
    from rclpy.executors import ExternalShutdownException
    from rclpy.task import Future
    from sensor_msgs.msg import Image

    rclpy.init(args=sys.argv)
    try:
        node = rclpy.create_node("rviz_on_camera")
        first_map: Future = Future()
        node.create_subscription(Image, TOPIC, first_map.set_result, 1)
        node.get_logger().info(
            f"RViz starts with the first map on {node.resolve_topic_name(TOPIC)}"
        )

        def tell() -> None:
            node.get_logger().warning(what_is_missing(node))

        node.create_timer(TELL_EVERY_S, tell, clock=Clock(clock_type=ClockType.STEADY_TIME))
        rclpy.spin_until_future_complete(node, first_map)
        message = first_map.result()
        return "" if message is None else message.header.frame_id
    except (KeyboardInterrupt, ExternalShutdownException):
        return ""
    finally:
        rclpy.try_shutdown()


def what_is_missing(node: Node) -> str:
    """Return why there is no map yet: nobody publishes it, or whoever does receives no image."""
    topic = node.resolve_topic_name(TOPIC)
    if node.count_publishers(topic):
        return f"no map on {topic} yet: its node's /diagnostics say what it waits for"
    images = [
        name
        for name, types in node.get_topic_names_and_types()
        if IMAGE_TYPE in types and node.count_publishers(name)
    ]
    return (
        f"nobody publishes {topic}: start a depth node in this namespace; "
        f"images that are published: {', '.join(images) or 'none'}"
    )
