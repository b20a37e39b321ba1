"""What the launch files are made of: every parameter of a node as a launch argument."""

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
    Shutdown,
)
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext
from uncertainty_depth.config import DepthNodeConfig, EvaluatorNodeConfig
from uncertainty_depth.options import element_type

PACKAGE = "uncertainty_depth"
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
CONFIG = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])
RESPAWN_DELAY_S = 2.0
STOP_S = "60"
"""What a node may take to end: the evaluator writes its report."""


class NodeLaunch(NamedTuple):
    """A node as the launch files know it.

    `topics` are the names of its inputs: argument to the node's own. Arguments that both nodes
    have start with `prefix` for one of them: one bringup can include the files of both.
    """

    executable: str
    params_file: str
    config_type: type
    topics: dict[str, str]
    prefix: str = ""

    def argument(self, name: str) -> str:
        """The launch argument of a parameter."""
        others = {"params_file", "respawn", *names_of(DepthNodeConfig)}
        return f"{self.prefix}{name}" if name in others else name


def names_of(config_type: type) -> set[str]:
    """The options of a config class."""
    return {item.name for item in dataclasses.fields(config_type)}


DEPTH = NodeLaunch(
    "depth_node",
    "depth.yaml",
    DepthNodeConfig,
    {"image": "image", "camera_info": "camera_info"},
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
    """The entities of a launch file: all arguments, then nodes and RViz in their namespace.

    RViz comes first: where it is not installed, nothing is left running.
    """
    node_arguments = [argument for node in nodes for argument in arguments_of(node)]
    start = [OpaqueFunction(function=start_node, args=[node]) for node in nodes]
    group = [
        PushRosNamespace(LaunchConfiguration("namespace")),
        OpaqueFunction(function=set_transports),
        OpaqueFunction(function=start_rviz, args=[nodes]),
        *start,
    ]
    return [*common_arguments(), *node_arguments, GroupAction(group)]


def common_arguments() -> list[DeclareLaunchArgument]:
    """What means the same for every node: included files may share it."""
    values = {
        "namespace": ("", "namespace of the nodes and their topics"),
        "use_sim_time": ("", "true: take the time from /clock; empty: as in the parameter file"),
        "transports": (
            "",
            f"sets {TRANSPORTS}, e.g. LARGE_DATA, which every process must then have, the camera "
            "driver too: they do not see others; empty: as in the environment",
        ),
        "rviz": ("false", "true: show everything in RViz"),
        "frame": ("", "fixed frame of RViz; empty: the camera's, once its first map has come"),
        **{name: (own, f"topic taken as {own}") for name, own in TF_TOPICS.items()},
    }
    return [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in values.items()
    ]


def arguments_of(node: NodeLaunch) -> list[DeclareLaunchArgument]:
    """A node's own arguments: its files, its topics, and each of its parameters."""
    respawn = DeclareLaunchArgument(
        node.argument("respawn"),
        default_value="false",
        description=f"true: start {node.executable} again when it ends; else launch ends with it",
    )
    params_file = DeclareLaunchArgument(
        node.argument("params_file"),
        default_value=PathJoinSubstitution([CONFIG, node.params_file]),
        description=f"parameters of {node.executable}",
    )
    topics = [
        DeclareLaunchArgument(name, default_value=own, description=f"topic taken as {own}")
        for name, own in node.topics.items()
    ]
    parameters = [
        DeclareLaunchArgument(
            node.argument(item.name),
            default_value="",
            description=f"{item.metadata['help']}; left empty: as in the parameter file",
        )
        for item in dataclasses.fields(node.config_type)
    ]
    return [params_file, respawn, *topics, *parameters]


def start_node(context: LaunchContext, node: NodeLaunch) -> list[Node]:
    """The node. When it ends, it starts again with `respawn`, else launch ends as it did."""
    respawn = LaunchConfiguration(node.argument("respawn")).perform(context).lower() == "true"
    parameters = ParameterFile(
        LaunchConfiguration(node.argument("params_file")), allow_substs=True
    )
    return [
        Node(
            package=PACKAGE,
            executable=node.executable,
            name=node.executable,
            parameters=[parameters, given_parameters(node, context)],
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
        RuntimeError: the node failed: only an exception gives launch an exit code.
    """
    if event.returncode and not context.is_shutdown:
        raise RuntimeError(f"{event.process_name} ended with exit code {event.returncode}")
    return [Shutdown(reason=f"{event.process_name} ended")]


def start_rviz(context: LaunchContext, nodes: Sequence[NodeLaunch]) -> list[Node]:
    """RViz, where it is asked for.

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
    topics = {name: own for node in nodes for name, own in node.topics.items()}
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
    """The transports that were asked for, for the nodes of the group alone."""
    transports = LaunchConfiguration("transports").perform(context)
    return [SetEnvironmentVariable(TRANSPORTS, transports)] if transports else []


def remappings(topics: dict[str, str]) -> list[tuple[Any, Any]]:
    """Each input, and /tf, from the topic its argument names."""
    pairs = [(own, LaunchConfiguration(name)) for name, own in {**topics, **TF_TOPICS}.items()]
    if "image" in topics:
        pairs.append(("image/compressed", [LaunchConfiguration("image"), "/compressed"]))
    return pairs


def given_parameters(node: NodeLaunch, context: LaunchContext) -> dict[str, Any]:
    """The parameters whose arguments are not empty."""
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
    """A text as it is (a path may look like a number); a list from blanks or commas."""
    if is_list:
        return [yaml.safe_load(part) for part in text.strip("[]").replace(",", " ").split()]
    return ParameterValue(text, value_type=str) if scalar is str else yaml.safe_load(text)
