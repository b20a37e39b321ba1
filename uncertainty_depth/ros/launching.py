# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The launch files' arguments, and their actions: nodes and RViz."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import chain
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
from launch.launch_context import LaunchContext
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

from uncertainty_depth.core.config.nodes import (
    DepthNodeConfig,
    EvaluatorNodeConfig,
    SigmaNodeConfig,
)
from uncertainty_depth.core.options import element_type, parameters_of
from uncertainty_depth.ros.camera_names import arguments_of_camera, check_names
from uncertainty_depth.ros.live_scores import LIDARS, TRUTH_CAMERA_INFO, TRUTH_IMAGE

PACKAGE = "uncertainty_depth"
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
CONFIG = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])
PER_NODE = {"params_file", "respawn", "autostart"}
LIDAR_POSE = ("lidar_to_camera", "fixed_frame")
"""Arguments of one name for two nodes: both look at the same LiDAR."""
MEASURING = ("measurements", "odometry_frame")
MEASURING_TOPICS = {
    "lidar": "lidar/points",
    "measured_points": "measured/points",
    "measured_depth": "measured/depth",
}


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
        """Return a parameter's launch argument."""
        return f"{self.prefix}{name}" if name in PER_NODE else name

    def fields(self) -> list[dataclasses.Field[Any]]:
        """Return the fields of the parameters that are launch arguments."""
        fields = {item.name: item for item in parameters_of(self.config_type)}
        return [fields[name] for name in self.parameters]


DEPTH = NodeLaunch(
    "depth_node",
    "depth.yaml",
    DepthNodeConfig,
    {
        "image": "image",
        "camera_info": "camera_info",
        **MEASURING_TOPICS,
    },
    (
        "model",
        "samples",
        *MEASURING,
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
        **MEASURING_TOPICS,
        "image": "image",
    },
    (
        "sigma_map",
        "confidence_type",
        "depth_type",
        *MEASURING,
        "use_online_calibration",
        *LIDAR_POSE,
        "autostart",
    ),
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
        "ground_truth_camera_info": TRUTH_CAMERA_INFO,
    },
    ("output", "overwrite", "lidars", "use_ground_truth_image", *LIDAR_POSE, "autostart"),
    prefix="evaluator_",
)
TF_TOPICS = {"tf": "/tf", "tf_static": "/tf_static"}
RESPAWN_DELAY_S = 2.0
PLOT, GROUND_TRUTH = "Sparsification plot", "Ground truth"
"""Displays of RViz that are off in its file: of an evaluator, and of its depth image."""
STOP_S = "60"
"""Time a node has to end after SIGINT: the evaluator writes its report."""


def describe(*nodes: NodeLaunch) -> list[Any]:
    """Return a launch file's entities: arguments, RViz, then nodes in their namespace."""
    node_arguments = chain.from_iterable(map(arguments_of, nodes))
    namespace = PushRosNamespace(LaunchConfiguration("namespace"))
    group = GroupAction([namespace, OpaqueFunction(function=start, args=[nodes])])
    return [*common_arguments(), *node_arguments, group]


def start(context: LaunchContext, nodes: Sequence[NodeLaunch]) -> list[Any]:
    """Return the transports, RViz and the nodes, each once or once per camera in its namespace.

    RViz comes first, so that nothing is left running if it is not installed.
    """
    arguments = dict(context.launch_configurations)
    cameras = check_names(arguments["cameras"].replace(",", " ").split())
    views = {camera: arguments_of_camera(camera, arguments) for camera in cameras}
    views = views or {"": arguments}
    actions: list[Any] = []
    if transports := arguments["transports"]:
        actions.append(SetEnvironmentVariable(TRANSPORTS, transports))
    if arguments["rviz"].lower() == "true":
        actions += [rviz(nodes, *view) for view in views.items()]
    return actions + [start_node(node, *view) for node in nodes for view in views.items()]


def start_node(node: NodeLaunch, namespace: str, arguments: Mapping[str, str]) -> Node:
    """Return the node, in its namespace; when it ends, `respawn` restarts it, or launch ends."""
    respawn = arguments[node.argument("respawn")].lower() == "true"
    parameters = ParameterFile(arguments[node.argument("params_file")], allow_substs=True)
    return Node(
        package=PACKAGE,
        executable=node.executable,
        name=node.executable,
        namespace=namespace or None,
        parameters=[parameters, parameter_overrides(node, arguments)],
        remappings=remappings(node.topics, arguments),
        output="screen",
        emulate_tty=True,
        sigterm_timeout=STOP_S,
        respawn=respawn,
        respawn_delay=RESPAWN_DELAY_S,
        on_exit=None if respawn else end_launch,
    )


def end_launch(event: ProcessExited, context: LaunchContext) -> list[Shutdown]:
    """End launch with the node: only an exception sets launch's exit code if the node failed."""
    if event.returncode and not context.is_shutdown:
        raise RuntimeError(f"{event.process_name} ended with exit code {event.returncode}")
    return [Shutdown(reason=f"{event.process_name} ended")]


def rviz(nodes: Sequence[NodeLaunch], namespace: str, arguments: Mapping[str, str]) -> Node:
    """Return RViz on these nodes' topics, see `start_node`; `RuntimeError` without RViz."""
    try:
        get_package_prefix("rviz2")
    except PackageNotFoundError as error:
        raise RuntimeError(
            "rviz is true, but rviz2 is not installed; "
            "install ros-$ROS_DISTRO-rviz2 or leave rviz out"
        ) from error
    topics = dict(chain.from_iterable(node.topics.items() for node in nodes))
    clock = arguments["use_sim_time"].lower()
    title = f"{namespace.strip('/') or PACKAGE} - RViz"
    shown = [PLOT] if EVALUATOR in nodes else []
    if arguments.get("use_ground_truth_image", "").lower() == "true":
        shown.append(GROUND_TRUTH)
    show = [text for name in shown for text in ("--show", name)]
    return Node(
        package=PACKAGE,
        executable="rviz_on_camera",
        namespace=namespace or None,
        arguments=["--frame", arguments["frame"], *show, "-t", title],
        remappings=remappings(topics, arguments),
        parameters=[{"use_sim_time": clock == "true"}] if clock else [],
        output="screen",
    )


def remappings(topics: Mapping[str, str], arguments: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the remappings of inputs and tf to the topics that their arguments name."""
    names = {topic: arguments[name] for name, topic in topics.items()}
    if "image" in names:
        names["image/compressed"] = f"{names['image']}/compressed"
    tf = [(topic, arguments[name]) for name, topic in TF_TOPICS.items()]
    return [*names.items(), *tf]


def parameter_overrides(node: NodeLaunch, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters whose arguments are not empty."""
    config_type = node.config_type
    parameters = node.fields()
    types: dict[str, type] = {
        item.name: element_type(config_type, item.name) for item in parameters
    }
    types["use_sim_time"] = bool
    lists = {item.name for item in parameters if isinstance(item.default, tuple)}
    texts = {name: arguments[node.argument(name)] for name in types}
    return {name: _typed(text, types[name], name in lists) for name, text in texts.items() if text}


def _typed(text: str, scalar: type, is_list: bool) -> Any:
    """Return a value from its text. A str stays as typed: a path may look like a number."""
    if is_list:
        parts = text.strip("[]").replace(",", " ").split()
        return parts if scalar is str else [yaml.safe_load(part) for part in parts]
    return ParameterValue(text, value_type=str) if scalar is str else yaml.safe_load(text)


def common_arguments() -> list[DeclareLaunchArgument]:
    """Return the arguments that all nodes share: included launch files may share them too."""
    arguments = {
        "namespace": ("", "namespace of the nodes and their topics"),
        "cameras": (
            "",
            "names, e.g. 'front rear': start the nodes once per camera, in a namespace of its "
            "name, which replaces {camera} in any argument; empty: one camera",
        ),
        "use_sim_time": ("", "true: take the time from /clock; empty: as in the parameter file"),
        "transports": (
            "",
            f"sets {TRANSPORTS}, e.g. LARGE_DATA, which every process must then have, the camera "
            "driver too: they do not see others; empty: as in the environment",
        ),
        "rviz": ("false", "true: show everything in RViz, each camera in a window of its own"),
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
        for item in node.fields()
    ]
    return [params_file, respawn, *topics, *parameters]


def _shown(default: Any) -> str:
    """Return a default as typed in a launch argument."""
    return "empty" if default in ("", ()) else str(default).lower()
