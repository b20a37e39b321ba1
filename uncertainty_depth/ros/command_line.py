# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The help of the node commands, and the arguments that they refuse. Nothing here needs ROS."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from uncertainty_depth.config.nodes import DepthNodeConfig, EvaluatorNodeConfig, SigmaNodeConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.options import add_parameters, parameters_of

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
that the parameter model names.

subscribed topics:
  image                      sensor_msgs/Image                camera images
  image/compressed           sensor_msgs/CompressedImage      instead, with compressed_input
  camera_info                sensor_msgs/CameraInfo           of the same camera: rectified images,
                                                              points and camera infos need it
  lidar/points               sensor_msgs/PointCloud2          known depth, if the model takes it
  uncertainty/calibration    diagnostic_msgs/DiagnosticArray  the evaluator's estimate of sigma's
                                                              size
  /tf                        tf2_msgs/TFMessage               pose of the LiDAR, if
                                                              lidar_to_camera is empty
  /tf_static                 tf2_msgs/TFMessage               the same

published topics:
  depth/image_rect           sensor_msgs/Image                depth along the optical axis, metres,
                                                              32FC1, NaN = no value
  uncertainty/image_rect     sensor_msgs/Image                standard deviation of the depth,
                                                              metres, 32FC1, higher = less certain
  depth/camera_info          sensor_msgs/CameraInfo           of the maps
  uncertainty/camera_info    sensor_msgs/CameraInfo           the same
  points                     sensor_msgs/PointCloud2          x, y, z, rgb, uncertainty,
                                                              confidence_ratio; on demand
  points/confident           sensor_msgs/PointCloud2          the trusted ones; on demand
  points/clearing            sensor_msgs/PointCloud2          where free space ends; on demand
  depth/confident/image_rect sensor_msgs/Image                depth where trusted; on demand
  depth/lower/image_rect     sensor_msgs/Image                the interval that holds coverage of
  depth/upper/image_rect     sensor_msgs/Image                the true depths; on demand
  depth/*/camera_info        sensor_msgs/CameraInfo           of these three
  */image_rect/compressedDepth
                             sensor_msgs/CompressedImage      the maps compressed; on demand
  depth/image_color          sensor_msgs/Image                color image of depth; on demand
  uncertainty/image_color    sensor_msgs/Image                color image of sigma; on demand
  color_scales/image         sensor_msgs/Image                legend of both; on demand
  depth/model                std_msgs/String                  description of the model, JSON
  depth/prediction_info      diagnostic_msgs/DiagnosticArray  samples used, correction of sigma
  /diagnostics               diagnostic_msgs/DiagnosticArray  rates, latencies, and every dropped
                                                              frame with its reason

on demand: published only while someone subscribes. With the parameter cameras all but
/diagnostics are once in the namespace of each camera.

services, beside those of a lifecycle node:
  ~/enable                   std_srvs/SetBool                 load the model, subscribe; false:
                                                              unsubscribe, keep the model
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
arrive, and write a report.

subscribed topics:
  depth/image_rect           sensor_msgs/Image                depth
  uncertainty/image_rect     sensor_msgs/Image                its standard deviation, same stamp
  depth/camera_info          sensor_msgs/CameraInfo           of the maps
  depth/model                std_msgs/String                  description of the model, JSON
  depth/prediction_info      diagnostic_msgs/DiagnosticArray  correction of sigma in force
  lidar/points               sensor_msgs/PointCloud2          ground truth, nearest stamp within
                                                              max_time_difference
  lidar*/points              sensor_msgs/PointCloud2          lidar2/points and so on: of further
                                                              LiDARs, with the parameter lidars,
                                                              merged with the first
  ground_truth/image         sensor_msgs/Image                instead, with use_ground_truth_image
  ground_truth/camera_info   sensor_msgs/CameraInfo           rectifies raw ground_truth/image
  /tf                        tf2_msgs/TFMessage               pose of the LiDAR, where
                                                              lidar_to_camera is empty
  /tf_static                 tf2_msgs/TFMessage               the same

published topics:
  ~/metrics                  diagnostic_msgs/DiagnosticArray  all metrics, of each frame and of all
  ~/metrics/*                std_msgs/Float64                 four to plot, of each frame
  uncertainty/calibration    diagnostic_msgs/DiagnosticArray  how large sigma must be, latched
  ~/sparsification/image     sensor_msgs/Image                sparsification plot; on demand
  ~/error/image              sensor_msgs/Image                color image of the error; on demand
  ~/ground_truth/image       sensor_msgs/Image                color image of depth; on demand
  /diagnostics               diagnostic_msgs/DiagnosticArray  rates, and every frame that was not
                                                              scored with its reason

on demand: published only while someone subscribes.

services, beside those of a lifecycle node:
  ~/enable                   std_srvs/SetBool                 subscribe, start a run; false: end
                                                              it, write its report to output
  ~/reset                    std_srvs/Trigger                 discard all scores
  ~/save                     std_srvs/Trigger                 write the report so far to output
""",
    "--ros-args -p output:=my_report -r lidar/points:=/velodyne_points",
)

SIGMA_NODE = NodeCommand(
    "sigma_node",
    "SigmaNode",
    SigmaNodeConfig,
    """\
Put the confidence of any depth camera or network in metres, by the map that `calibrate` fitted to
a LiDAR, and publish what a robot makes of it. No network is loaded.

subscribed topics:
  depth/image_rect           sensor_msgs/Image                depth, 32FC1 in metres or 16UC1 in
                                                              millimetres
  confidence/image           sensor_msgs/Image                its confidence, same stamp and size
  depth/camera_info          sensor_msgs/CameraInfo           of the depth: points need it
  uncertainty/calibration    diagnostic_msgs/DiagnosticArray  the evaluator's estimate of how large
                                                              sigma must be

published topics:
  uncertainty/image_rect     sensor_msgs/Image                standard deviation of the depth,
                                                              metres, 32FC1, higher = less certain
  uncertainty/camera_info    sensor_msgs/CameraInfo           of it
  points*                    sensor_msgs/PointCloud2          points, points/confident and
                                                              points/clearing; on demand
  depth/*/image_rect         sensor_msgs/Image                confident: depth where trusted;
                                                              lower, upper: the interval that
                                                              holds coverage; on demand
  depth/*/camera_info        sensor_msgs/CameraInfo           of these; on demand
  */image_color              sensor_msgs/Image                color images; on demand
  color_scales/image         sensor_msgs/Image                legend of both; on demand
  */compressedDepth          sensor_msgs/CompressedImage      the maps compressed; on demand
  depth/model                std_msgs/String                  description of the sigma, JSON
  depth/prediction_info      diagnostic_msgs/DiagnosticArray  correction of sigma in force
  /diagnostics               diagnostic_msgs/DiagnosticArray  rates, latencies, and every dropped
                                                              pair with its reason

on demand: published only while someone subscribes.

services, beside those of a lifecycle node:
  ~/enable                   std_srvs/SetBool                 read the map, subscribe; false:
                                                              unsubscribe
""",
    "--ros-args -p sigma_map:=map.json -r depth/image_rect:=/camera/depth "
    "-r confidence/image:=/camera/confidence -r depth/camera_info:=/camera/camera_info",
)


def print_help(command: NodeCommand) -> None:
    """Print what the node does, its topics and services, every parameter, and an example."""
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
    """Refuse arguments that ROS would ignore, or take for a topic where they are a parameter.

    Raises:
        ConfigError: the first such argument.
    """
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
