# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The node commands' help, and the arguments that they refuse. Nothing here needs ROS."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from uncertainty_depth.core.config.nodes import (
    DepthNodeConfig,
    EvaluatorNodeConfig,
    SigmaNodeConfig,
)
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import add_parameters, parameters_of

WIDTH = 99
HELP = frozenset({"-h", "--help"})
OLD_REMAPPING = re.compile(r"(?!__params|__log)(\w+:)?[\w/~]+:=[\w/~]+")
"""Remapping rules that ROS also accepts outside `--ros-args`, with a warning."""


class NodeCommand(NamedTuple):
    """A node and its help: class `class_name` of module `uncertainty_depth.ros.NAME`."""

    name: str
    class_name: str
    config_type: type
    description: str
    example: str


DEPTH_NODE = NodeCommand(
    "depth_node",
    "DepthNode",
    DepthNodeConfig,
    """\
Turn camera images into depth maps and their standard deviation, with the network in the folder
that the parameter model names. Topics and services: ros2 node info /depth_node
""",
    "--ros-args -p model:=my_model -r image:=/camera/image_raw "
    "-r camera_info:=/camera/camera_info",
)

EVALUATOR_NODE = NodeCommand(
    "evaluator_node",
    "EvaluatorNode",
    EvaluatorNodeConfig,
    """\
Score depth maps and their standard deviation against LiDAR clouds or ground truth images as they
arrive, and write a report. Topics and services: ros2 node info /evaluator_node
""",
    "--ros-args -p output:=my_report -r lidar/points:=/velodyne_points",
)

SIGMA_NODE = NodeCommand(
    "sigma_node",
    "SigmaNode",
    SigmaNodeConfig,
    """\
Put the confidence of any depth camera or network in metres, by the map that `calibrate` fitted to
a LiDAR, correct its depth by what else measures, and publish what a robot makes of both. No
network is loaded. Topics and services: ros2 node info /sigma_node
""",
    "--ros-args -p sigma_map:=map.json -r depth/image_rect:=/camera/depth "
    "-r confidence/image:=/camera/confidence -r depth/camera_info:=/camera/camera_info",
)


def print_help(command: NodeCommand) -> None:
    """Print what the node does, every parameter, and an example."""
    parser = argparse.ArgumentParser(
        command.name,
        usage="%(prog)s --ros-args -p PARAMETER:=VALUE -r TOPIC:=OTHER_TOPIC --params-file FILE",
        description=command.description,
        epilog=f"example: {command.name} {command.example}",
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=32, width=WIDTH
        ),
    )
    add_parameters(parser, command.config_type)
    group = parser.add_argument_group("parameters of ROS")
    group.add_argument(
        "time",
        metavar="use_sim_time:=BOOL",
        help="take the time from /clock, as where a bag is played with one (default: False)",
    )
    group.add_argument(
        "qos",
        metavar="qos_overrides.TOPIC.{subscription,publisher}.POLICY:=VALUE",
        help="quality of service of an image, cloud or camera info topic, by its full name; "
        "POLICY: history, depth, reliability, durability",
    )
    parser.print_help()


def refuse_ignored(command: NodeCommand, arguments: Sequence[str]) -> None:
    """Raise `ConfigError` for arguments that ROS would ignore, or take for a topic."""
    parameters = {item.name for item in parameters_of(command.config_type)} | {"use_sim_time"}
    for argument in without_ros_arguments(arguments):
        name = re.sub(r"^-*|[:=].*", "", argument).replace("-", "_")
        is_remapping = OLD_REMAPPING.fullmatch(argument) and name not in parameters
        if argument in ("", "--") or is_remapping:
            continue
        similar = get_close_matches(name, parameters, 1)
        expected = f"--ros-args -p {similar[0]}:=X" if similar else command.example
        raise ConfigError(
            f"argument {argument!r} is outside --ros-args, where it has no effect; "
            f"expected {expected}"
        )


def without_ros_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the arguments outside `--ros-args` ... `--`.

    `rclpy.utilities.remove_ros_args` also removes every `NAME:=VALUE`, as an old way to remap
    topics: `model:=my_model` would be lost.
    """
    others = []
    is_ros = False
    for argument in arguments:
        if argument == "--ros-args":
            is_ros = True
        elif is_ros:
            is_ros = argument != "--"
        else:
            others.append(argument)
    return others
