# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The launch arguments: topics, and the parameters that differ between starts."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from launch.actions import DeclareLaunchArgument
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

from uncertainty_depth import options
from uncertainty_depth.config import (
    DepthNodeConfig,
    EvaluatorNodeConfig,
    SigmaNodeConfig,
)
from uncertainty_depth.ros.live_scores import LIDARS, TRUTH_IMAGE

PACKAGE = "uncertainty_depth"
CAMERAS = "cameras"
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
CONFIG = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])
PER_NODE = {"params_file", "respawn", "autostart"}
LIDAR_POSE = ("lidar_to_camera", "fixed_frame")
"""Of one name for two nodes: both look at the same LiDAR."""


class NodeLaunch(NamedTuple):
    """A node of the launch files.

    `topics` maps launch arguments to the node's input topics. `parameters` are launch arguments
    too; all others are set in `params_file`. The evaluator's own arguments start with `prefix`, so
    one bringup can include its launch file and another node's.
    """

    executable: str
    params_file: str
    config_type: type
    topics: dict[str, str]
    parameters: tuple[str, ...]
    prefix: str = ""

    def argument(self, name: str) -> str:
        """Return the launch argument of a parameter."""
        return f"{self.prefix}{name}" if name in PER_NODE else name


DEPTH = NodeLaunch(
    "depth_node",
    "depth.yaml",
    DepthNodeConfig,
    {"image": "image", "camera_info": "camera_info", "lidar": "lidar/points"},
    (
        "model",
        "samples",
        "compressed_input",
        "distorted_images",
        "use_online_calibration",
        "use_depth_scale",
        *LIDAR_POSE,
        "autostart",
    ),
)
SIGMA = NodeLaunch(
    "sigma_node",
    "sigma.yaml",
    SigmaNodeConfig,
    {
        "depth": "depth/image_rect",
        "confidence": "confidence/image",
        "depth_camera_info": "depth/camera_info",
    },
    ("sigma_map", "confidence_type", "depth_type", "use_online_calibration", "autostart"),
)
EVALUATOR = NodeLaunch(
    "evaluator_node",
    "evaluator.yaml",
    EvaluatorNodeConfig,
    {
        "depth": "depth/image_rect",
        "uncertainty": "uncertainty/image_rect",
        "depth_camera_info": "depth/camera_info",
        **{topic.removesuffix("/points"): topic for topic in LIDARS},
        "ground_truth": TRUTH_IMAGE,
    },
    ("output", "overwrite", "lidars", "use_ground_truth_image", *LIDAR_POSE, "autostart"),
    prefix="evaluator_",
)
TF_TOPICS = {"tf": "/tf", "tf_static": "/tf_static"}


def common_arguments() -> list[DeclareLaunchArgument]:
    """Return the arguments that all nodes share: included launch files may share them too."""
    arguments = {
        "namespace": ("", "namespace of the nodes and their topics"),
        CAMERAS: (
            "",
            "names, e.g. 'front rear': start the nodes once per camera, in a namespace of its "
            "name, which replaces {camera} in any argument; empty: one camera",
        ),
        "one_process": (
            "false",
            "true: one depth node with one model for all cameras, which predicts their waiting "
            "images in one batch; false: a process and a model for each",
        ),
        "use_sim_time": ("", "true: take the time from /clock; empty: as in the parameter file"),
        "transports": (
            "",
            f"sets {TRANSPORTS}, e.g. LARGE_DATA, which every process must then have, the camera "
            "driver too: they do not see others; empty: as in the environment",
        ),
        "rviz": ("false", "true: show everything in RViz"),
        "frame": ("", "fixed frame of RViz; empty: the camera's, once its first map has come"),
        **{name: (topic, f"topic used as {topic}") for name, topic in TF_TOPICS.items()},
    }
    return [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in arguments.items()
    ]


def arguments_of(node: NodeLaunch) -> list[DeclareLaunchArgument]:
    """Return a node's own arguments: parameter file, respawn, topics and parameters."""
    respawn = DeclareLaunchArgument(
        node.argument("respawn"),
        default_value="false",
        description=f"true: restart {node.executable} when it ends; false: end launch with it",
    )
    params_file = DeclareLaunchArgument(
        node.argument("params_file"),
        default_value=PathJoinSubstitution([CONFIG, node.params_file]),
        description=f"parameters of {node.executable}",
    )
    topics = [
        DeclareLaunchArgument(name, default_value=topic, description=f"topic used as {topic}")
        for name, topic in node.topics.items()
    ]
    parameters = [
        DeclareLaunchArgument(
            node.argument(item.name),
            default_value="",
            description=f"{item.metadata['help']}; default: as in {node.argument('params_file')}, "
            f"else {_shown(item.default)}",
        )
        for item in parameters_of(node)
    ]
    return [params_file, respawn, *topics, *parameters]


def parameters_of(node: NodeLaunch) -> list[dataclasses.Field[Any]]:
    """Return the parameters that are launch arguments."""
    fields = {item.name: item for item in options.parameters_of(node.config_type)}
    return [fields[name] for name in node.parameters]


def _shown(default: Any) -> str:
    """Return a default as typed in a launch argument."""
    return "empty" if default in ("", ()) else str(default).lower()
