# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Entities of the launch files: every parameter of a node is a launch argument."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch.actions import (
    DeclareLaunchArgument,
    GroupAction,
    OpaqueFunction,
    SetEnvironmentVariable,
    SetLaunchConfiguration,
    Shutdown,
)
from launch.events.process import ProcessExited
from launch.launch_context import LaunchContext
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

from uncertainty_depth.config import DepthNodeConfig, EvaluatorNodeConfig, ProjectionConfig
from uncertainty_depth.options import element_type
from uncertainty_depth.ros.camera_names import arguments_of_camera, camera_names

PACKAGE = "uncertainty_depth"
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
CONFIG = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])
RESPAWN_DELAY_S = 2.0
STOP_S = "60"
"""Time a node has to end after SIGINT: the evaluator writes its report."""


class NodeLaunch(NamedTuple):
    """A node of the launch files.

    `topics` maps launch arguments to the node's input topics. Launch arguments that both nodes
    have start with `prefix` for the evaluator: one bringup can include the files of both.
    """

    executable: str
    params_file: str
    config_type: type
    topics: dict[str, str]
    prefix: str = ""

    def argument(self, name: str) -> str:
        """Return the launch argument of a parameter."""
        shared = {"params_file", "respawn", *names_of(DepthNodeConfig)}
        shared -= names_of(ProjectionConfig)  # both nodes look at the same LiDAR
        return f"{self.prefix}{name}" if name in shared else name


def names_of(config_type: type) -> set[str]:
    """Return the option names of a config class."""
    return {item.name for item in dataclasses.fields(config_type)}


DEPTH = NodeLaunch(
    "depth_node",
    "depth.yaml",
    DepthNodeConfig,
    {"image": "image", "camera_info": "camera_info", "lidar": "lidar/points"},
)
EVALUATOR = NodeLaunch(
    "evaluator_node",
    "evaluator.yaml",
    EvaluatorNodeConfig,
    {
        "depth": "depth/image_rect",
        "uncertainty": "uncertainty/image_rect",
        "depth_camera_info": "depth/camera_info",
        "lidar": "lidar/points",
        "ground_truth": "ground_truth/image",
    },
    prefix="evaluator_",
)
TF_TOPICS = {"tf": "/tf", "tf_static": "/tf_static"}


def describe(*nodes: NodeLaunch) -> list[Any]:
    """Return the entities of a launch file: arguments, RViz, then nodes in their namespace.

    RViz comes first: where it is not installed, nothing is left running.
    """
    node_arguments = [argument for node in nodes for argument in arguments_of(node)]
    group = [
        PushRosNamespace(LaunchConfiguration("namespace")),
        OpaqueFunction(function=set_transports),
        OpaqueFunction(function=start_rviz, args=[nodes]),
        OpaqueFunction(function=start_nodes, args=[nodes]),
    ]
    return [*common_arguments(), *node_arguments, GroupAction(group)]


def common_arguments() -> list[DeclareLaunchArgument]:
    """Return the arguments that all nodes share: included launch files may share them too."""
    arguments = {
        "namespace": ("", "namespace of the nodes and their topics"),
        "cameras": (
            "",
            "names, e.g. 'front rear': start the nodes once for each, in a namespace of its name; "
            "{camera} in any argument stands for it; empty: one camera",
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
            description=f"{item.metadata['help']}; empty: as in the parameter file",
        )
        for item in dataclasses.fields(node.config_type)
    ]
    return [params_file, respawn, *topics, *parameters]


def start_nodes(context: LaunchContext, nodes: Sequence[NodeLaunch]) -> list[Any]:
    """Return the nodes, once or once per camera, each in a namespace of its name.

    Raises:
        ValueError: the argument `cameras` is no list of names, or they share one `output`.
    """
    cameras = camera_names(LaunchConfiguration("cameras").perform(context))
    if not cameras:
        return [OpaqueFunction(function=start_node, args=[node]) for node in nodes]
    groups = []
    for camera in cameras:
        arguments = arguments_of_camera(camera, context.launch_configurations)
        settings = [SetLaunchConfiguration(name, value) for name, value in arguments.items()]
        start = [OpaqueFunction(function=start_node, args=[node]) for node in nodes]
        groups.append(GroupAction([PushRosNamespace(camera), *settings, *start]))
    return groups


def start_node(context: LaunchContext, node: NodeLaunch) -> list[Node]:
    """Return the node. When it ends, `respawn` restarts it; else launch ends with it."""
    respawn = LaunchConfiguration(node.argument("respawn")).perform(context).lower() == "true"
    parameters = ParameterFile(
        LaunchConfiguration(node.argument("params_file")), allow_substs=True
    )
    return [
        Node(
            package=PACKAGE,
            executable=node.executable,
            name=node.executable,
            parameters=[parameters, parameter_overrides(node, context)],
            remappings=remappings(node.topics),
            output="screen",
            emulate_tty=True,
            sigterm_timeout=STOP_S,
            respawn=respawn,
            respawn_delay=RESPAWN_DELAY_S,
            on_exit=None if respawn else end_launch,
        )
    ]


def end_launch(event: ProcessExited, context: LaunchContext) -> list[Shutdown]:
    """End launch with the node.

    Raises:
        RuntimeError: the node failed; only an exception sets the exit code of launch.
    """
    if event.returncode and not context.is_shutdown:
        raise RuntimeError(f"{event.process_name} ended with exit code {event.returncode}")
    return [Shutdown(reason=f"{event.process_name} ended")]


def start_rviz(context: LaunchContext, nodes: Sequence[NodeLaunch]) -> list[Node]:
    """Return RViz where the argument `rviz` is true.

    Raises:
        RuntimeError: RViz is not installed.
    """
    if LaunchConfiguration("rviz").perform(context).lower() != "true":
        return []
    try:
        get_package_prefix("rviz2")
    except PackageNotFoundError as error:
        raise RuntimeError(
            "rviz is true, but rviz2 is not installed; "
            "install ros-$ROS_DISTRO-rviz2 or leave rviz out"
        ) from error
    topics: dict[str, str] = {}
    for node in nodes:
        topics |= node.topics
    frame = LaunchConfiguration("frame").perform(context)
    rviz_file = PathJoinSubstitution([CONFIG, "uncertainty_depth.rviz"])
    return [
        Node(
            package=PACKAGE,
            executable="rviz_on_camera",
            arguments=["--frame", frame, "-d", rviz_file],
            remappings=remappings(topics),
            output="screen",
        )
    ]


def set_transports(context: LaunchContext) -> list[SetEnvironmentVariable]:
    """Return the action that sets the transports of the nodes, where the argument is not empty."""
    transports = LaunchConfiguration("transports").perform(context)
    return [SetEnvironmentVariable(TRANSPORTS, transports)] if transports else []


def remappings(topics: dict[str, str]) -> list[tuple[Any, Any]]:
    """Return the remappings of inputs and tf to the topics that their arguments name."""
    pairs: list[tuple[Any, Any]] = [
        (topic, LaunchConfiguration(name)) for name, topic in {**topics, **TF_TOPICS}.items()
    ]
    if "image" in topics:
        pairs.append(("image/compressed", [LaunchConfiguration("image"), "/compressed"]))
    return pairs


def parameter_overrides(node: NodeLaunch, context: LaunchContext) -> dict[str, Any]:
    """Return the parameters whose arguments are not empty."""
    config_type = node.config_type
    types: dict[str, type] = {
        item.name: element_type(config_type, item.name) for item in dataclasses.fields(config_type)
    }
    types["use_sim_time"] = bool
    lists = {
        item.name for item in dataclasses.fields(config_type) if isinstance(item.default, tuple)
    }
    texts = {name: LaunchConfiguration(node.argument(name)).perform(context) for name in types}
    return {name: _typed(text, types[name], name in lists) for name, text in texts.items() if text}


def _typed(text: str, scalar: type, is_list: bool) -> Any:
    """Return a value from its text. A str stays as typed: a path may look like a number."""
    if is_list:
        return [yaml.safe_load(part) for part in text.strip("[]").replace(",", " ").split()]
    return ParameterValue(text, value_type=str) if scalar is str else yaml.safe_load(text)
