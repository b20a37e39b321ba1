"""What the node commands say on `--help`, and which arguments they refuse. Nothing here needs ROS."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from uncertainty_depth.config import DepthNodeConfig, EvaluatorNodeConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.options import add_parameters

WIDTH = 140
HELP = frozenset({"-h", "--help"})
OLD_REMAPPING = re.compile(r"(?!__params|__log)(\w+:)?[\w/~]+:=[\w/~]+")
"""What ROS takes outside `--ros-args` too, with a warning."""


class NodeCommand(NamedTuple):
    """A node as its command line knows it: class `kind` of `uncertainty_depth.ros.NAME`."""

    name: str
    kind: str
    config: type
    about: str
    example: str


DEPTH_NODE = NodeCommand(
    "depth_node",
    "DepthNode",
    DepthNodeConfig,
    """\
Turn camera images into depth maps and their standard deviation, with the network in the folder that the parameter model names.

subscribed topics:
  image                        sensor_msgs/Image                camera images
  image/compressed             sensor_msgs/CompressedImage      instead of image, with compressed_input
  camera_info                  sensor_msgs/CameraInfo           of the same camera; rectified images, points and outgoing camera infos need it

published topics:
  depth/image_rect             sensor_msgs/Image                depth, 32FC1, metres along the optical axis, NaN = no value
  uncertainty/image_rect       sensor_msgs/Image                standard deviation of the depth, 32FC1, metres, higher = less certain
  depth/camera_info            sensor_msgs/CameraInfo           of the maps
  uncertainty/camera_info      sensor_msgs/CameraInfo           the same
  points                       sensor_msgs/PointCloud2          x, y, z, rgb, uncertainty; made only while someone subscribes
  depth/image_color            sensor_msgs/Image                a picture; made only while someone subscribes
  uncertainty/image_color      sensor_msgs/Image                a picture; made only while someone subscribes
  depth/model                  std_msgs/String                  which model makes the maps, JSON
  ~/latency_ms                 std_msgs/Float64                 from an image's stamp to its maps
  ~/processing_time_ms         std_msgs/Float64                 of it, the node's own work
  /diagnostics                 diagnostic_msgs/DiagnosticArray  rates, latencies, and every dropped frame with its reason
""",
    "--ros-args -p model:=my_model -r image:=/camera/image_raw -r camera_info:=/camera/camera_info",
)

EVALUATOR_NODE = NodeCommand(
    "evaluator_node",
    "EvaluatorNode",
    EvaluatorNodeConfig,
    """\
Score depth maps and their standard deviation against LiDAR clouds or ground truth images as they come, and write a report.

subscribed topics:
  depth/image_rect             sensor_msgs/Image                depth
  uncertainty/image_rect       sensor_msgs/Image                its standard deviation, paired by exact stamp
  depth/camera_info            sensor_msgs/CameraInfo           of the maps
  depth/model                  std_msgs/String                  which model made them, for the report
  lidar/points                 sensor_msgs/PointCloud2          ground truth; the nearest stamp within max_time_difference
  ground_truth/image           sensor_msgs/Image                instead of lidar/points, with use_ground_truth_image
  ground_truth/camera_info     sensor_msgs/CameraInfo           rectifies ground_truth/image where it is raw
  /tf                          tf2_msgs/TFMessage               pose of the LiDAR, where lidar_to_camera is empty
  /tf_static                   tf2_msgs/TFMessage               the same

published topics:
  ~/metrics/*                  std_msgs/Float64                 one topic per figure, over all frames
  ~/metrics/frame/*            std_msgs/Float64                 the same of the last frame
  ~/sparsification/image       sensor_msgs/Image                a plot; made only while someone subscribes
  ~/error/image                sensor_msgs/Image                a picture; made only while someone subscribes
  ~/ground_truth/image         sensor_msgs/Image                a picture; made only while someone subscribes
  /diagnostics                 diagnostic_msgs/DiagnosticArray  rates, and every frame that was not scored with its reason

services:
  ~/reset                      std_srvs/Trigger                 start all scores anew
  ~/save                       std_srvs/Trigger                 write the report to the folder output
""",
    "--ros-args -p output:=my_report -r lidar/points:=/velodyne_points",
)


def print_help(command: NodeCommand) -> None:
    """Print what the node does, its topics and services, every parameter, and an example."""
    made = argparse.ArgumentParser(
        command.name,
        usage="%(prog)s --ros-args -p PARAMETER:=VALUE -r TOPIC:=OTHER_TOPIC --params-file FILE ...",
        description=command.about,
        epilog=f"example: {command.name} {command.example}",
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=32, width=WIDTH
        ),
    )
    add_parameters(made, command.config)
    common = made.add_argument_group("parameters of ROS")
    common.add_argument(
        "time",
        metavar="use_sim_time:=BOOL",
        help="take the time from /clock, as where a bag is played with one (default: False)",
    )
    policies = "quality of service of an image, cloud or camera info topic, its full name; POLICY: history, depth, reliability, durability"
    common.add_argument(
        "qos",
        metavar="qos_overrides.TOPIC.subscription.POLICY:=VALUE, qos_overrides.TOPIC.publisher.POLICY:=VALUE",
        help=policies,
    )
    made.print_help()


def refuse_ignored(command: NodeCommand, arguments: Sequence[str]) -> None:
    """Raise `ConfigError` naming the first argument that ROS would silently ignore, or take for a topic where it is a parameter."""
    parameters = {item.name for item in dataclasses.fields(command.config)} | {"use_sim_time"}
    for argument in without_ros_arguments(arguments):
        name = re.sub(r"^-*|[:=].*", "", argument).replace("-", "_")
        if argument in ("", "--") or (
            OLD_REMAPPING.fullmatch(argument) and name not in parameters
        ):
            continue
        meant = get_close_matches(name, parameters, 1)
        expected = f"--ros-args -p {meant[0]}:=X" if meant else command.example
        raise ConfigError(
            f"argument {argument!r} is outside --ros-args, where it has no effect; expected {expected}"
        )


def without_ros_arguments(arguments: Sequence[str]) -> list[str]:
    """What is left without everything from each `--ros-args` to the next `--` or the end, as `rclpy.utilities.remove_ros_args`.

    That one also takes away every `NAME:=VALUE`, as an old way to remap topics: `model:=my_model` would be lost.
    """
    left, of_ros = [], False
    for argument in arguments:
        if argument == "--ros-args":
            of_ros = True
        elif of_ros:
            of_ros = argument != "--"
        else:
            left.append(argument)
    return left
