# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Entities of the launch files: every parameter of a node is a launch argument."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain
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

from uncertainty_depth.config import (
    DepthNodeConfig,
    EvaluatorNodeConfig,
    ProjectionConfig,
    SigmaNodeConfig,
)
from uncertainty_depth.options import element_type
from uncertainty_depth.ros.camera_names import (
    arguments_of_camera,
    camera_names,
    refuse_camera_in,
    topics_of_camera,
)
from uncertainty_depth.ros.ground_truth_topics import IMAGE_TOPIC, LIDAR_TOPICS

PACKAGE = "uncertainty_depth"
CAMERAS = "cameras"
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
CONFIG = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])
RESPAWN_DELAY_S = 2.0
STOP_S = "60"
"""Time a node has to end after SIGINT: the evaluator writes its report."""


class NodeLaunch(NamedTuple):
    """A node of the launch files.

    `topics` maps launch arguments to the node's input topics. Launch arguments that the evaluator
    shares with the node before it start with `prefix`: one bringup can include the files of both.
    """

    executable: str
    params_file: str
    config_type: type
    topics: dict[str, str]
    prefix: str = ""

    def argument(self, name: str) -> str:
        """Return the launch argument of a parameter."""
        shared = {"params_file", "respawn", *names_of(DepthNodeConfig), *names_of(SigmaNodeConfig)}
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
SIGMA = NodeLaunch(
    "sigma_node",
    "sigma.yaml",
    SigmaNodeConfig,
    {
        "depth": "depth/image_rect",
        "confidence": "confidence/image",
        "depth_camera_info": "depth/camera_info",
    },
)
EVALUATOR = NodeLaunch(
    "evaluator_node",
    "evaluator.yaml",
    EvaluatorNodeConfig,
    {
        "depth": "depth/image_rect",
        "uncertainty": "uncertainty/image_rect",
        "depth_camera_info": "depth/camera_info",
        **{topic.removesuffix("/points"): topic for topic in LIDAR_TOPICS},
        "ground_truth": IMAGE_TOPIC,
    },
    prefix="evaluator_",
)
TF_TOPICS = {"tf": "/tf", "tf_static": "/tf_static"}


def describe(*nodes: NodeLaunch) -> list[Any]:
    """Return the entities of a launch file: arguments, RViz, then nodes in their namespace.

    RViz comes first: where it is not installed, nothing is left running.
    """
    node_arguments = chain.from_iterable(map(arguments_of, nodes))
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
        CAMERAS: (
            "",
            "names, e.g. 'front rear': start the nodes once for each, in a namespace of its name; "
            "{camera} in any argument stands for it; empty: one camera",
        ),
        "one_process": (
            "false",
            "true: one depth node with one model for all cameras, which predicts what has arrived "
            "in one batch; false: a process and a model for each",
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
        for item in parameters_of(node)
    ]
    return [params_file, respawn, *topics, *parameters]


def parameters_of(node: NodeLaunch) -> list[dataclasses.Field[Any]]:
    """Return the parameters that are launch arguments: `cameras` is one of all nodes."""
    return [item for item in dataclasses.fields(node.config_type) if item.name != CAMERAS]


def start_nodes(context: LaunchContext, nodes: Sequence[NodeLaunch]) -> list[Any]:
    """Return the nodes, once or once per camera, each in a namespace of its name.

    With `one_process` a node that takes several cameras is started once for all.

    Raises:
        ValueError: the argument `cameras` is no list of names, or they share one `output`.
    """
    cameras = camera_names(LaunchConfiguration(CAMERAS).perform(context))
    is_one_process = LaunchConfiguration("one_process").perform(context).lower() == "true"
    if not cameras:
        if is_one_process:
            raise ValueError("one_process is true, but cameras is empty; expected their names")
        return [OpaqueFunction(function=start_node, args=[node]) for node in nodes]
    shared = [node for node in nodes if is_one_process and CAMERAS in names_of(node.config_type)]
    apart = [node for node in nodes if node not in shared]
    started: list[Any] = [
        OpaqueFunction(function=start_node, args=[node, cameras]) for node in shared
    ]
    for camera in cameras:
        arguments = arguments_of_camera(camera, context.launch_configurations)
        settings = [SetLaunchConfiguration(name, value) for name, value in arguments.items()]
        start = [OpaqueFunction(function=start_node, args=[node]) for node in apart]
        started.append(GroupAction([PushRosNamespace(camera), *settings, *start]))
    return started


def start_node(
    context: LaunchContext, node: NodeLaunch, cameras: Sequence[str] = ()
) -> list[Node]:
    """Return the node. When it ends, `respawn` restarts it; else launch ends with it.

    Args:
        context: of the launch.
        node: to be started.
        cameras: that it serves, each in a namespace of its name below the node's; empty: one.
    """
    respawn = LaunchConfiguration(node.argument("respawn")).perform(context).lower() == "true"
    parameters = ParameterFile(
        LaunchConfiguration(node.argument("params_file")), allow_substs=True
    )
    return [
        Node(
            package=PACKAGE,
            executable=node.executable,
            name=node.executable,
            parameters=[parameters, parameter_overrides(node, context, cameras)],
            remappings=camera_remappings(node, context, cameras) or remappings(node.topics),
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


def camera_remappings(
    node: NodeLaunch, context: LaunchContext, cameras: Sequence[str]
) -> list[tuple[Any, Any]]:
    """Return the remappings of a node that serves several cameras; empty where it serves one."""
    topics = {
        topic: LaunchConfiguration(name).perform(context) for name, topic in node.topics.items()
    }
    if "image" in topics:
        topics["image/compressed"] = f"{topics['image']}/compressed"
    pairs: list[tuple[Any, Any]] = []
    for camera in cameras:
        pairs += topics_of_camera(camera, topics).items()
    return [*pairs, *remappings({})] if pairs else []


def parameter_overrides(
    node: NodeLaunch, context: LaunchContext, cameras: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the parameters whose arguments are not empty, and the cameras that share the node.

    Raises:
        ValueError: such a node has an argument that differs from camera to camera.
    """
    config_type = node.config_type
    parameters = parameters_of(node)
    types: dict[str, type] = {
        item.name: element_type(config_type, item.name) for item in parameters
    }
    types["use_sim_time"] = bool
    lists = {item.name for item in parameters if isinstance(item.default, tuple)}
    texts = {name: LaunchConfiguration(node.argument(name)).perform(context) for name in types}
    if cameras:
        refuse_camera_in(texts)
    values = {
        name: _typed(text, types[name], name in lists) for name, text in texts.items() if text
    }
    return {**values, CAMERAS: list(cameras)} if cameras else values


def _typed(text: str, scalar: type, is_list: bool) -> Any:
    """Return a value from its text. A str stays as typed: a path may look like a number."""
    if is_list:
        parts = text.strip("[]").replace(",", " ").split()
        return parts if scalar is str else [yaml.safe_load(part) for part in parts]
    return ParameterValue(text, value_type=str) if scalar is str else yaml.safe_load(text)
