# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The launch files' actions: nodes and RViz from launch arguments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch.actions import (
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

from uncertainty_depth.options import element_type
from uncertainty_depth.ros.camera_names import (
    arguments_of_camera,
    camera_names,
    refuse_camera_in,
    topics_of_camera,
)
from uncertainty_depth.ros.launch_arguments import (
    CAMERAS,
    CONFIG,
    PACKAGE,
    TF_TOPICS,
    TRANSPORTS,
    NodeLaunch,
    arguments_of,
    common_arguments,
    parameters_of,
)

RESPAWN_DELAY_S = 2.0
STOP_S = "60"
"""Time a node has to end after SIGINT: the evaluator writes its report."""


def describe(*nodes: NodeLaunch) -> list[Any]:
    """Return the entities of a launch file: arguments, RViz, then nodes in their namespace.

    RViz comes first, so that nothing is left running if it is not installed.
    """
    node_arguments = chain.from_iterable(map(arguments_of, nodes))
    group = [
        PushRosNamespace(LaunchConfiguration("namespace")),
        OpaqueFunction(function=set_transports),
        OpaqueFunction(function=start_rviz, args=[nodes]),
        OpaqueFunction(function=start_nodes, args=[nodes]),
    ]
    return [*common_arguments(), *node_arguments, GroupAction(group)]


def start_nodes(context: LaunchContext, nodes: Sequence[NodeLaunch]) -> list[Any]:
    """Return the nodes, once or once per camera, each in a namespace of its name.

    With `one_process` a node that takes several cameras is started once for all.

    Raises:
        ValueError: the argument `cameras` is not a list of names, or they share one `output`.
    """
    cameras = camera_names(LaunchConfiguration(CAMERAS).perform(context))
    is_one_process = LaunchConfiguration("one_process").perform(context).lower() == "true"
    if not cameras:
        if is_one_process:
            raise ValueError("one_process is true, but cameras is empty; expected their names")
        return [OpaqueFunction(function=start_node, args=[node]) for node in nodes]
    for_all_cameras = [
        node for node in nodes if is_one_process and hasattr(node.config_type, CAMERAS)
    ]
    per_camera = [node for node in nodes if node not in for_all_cameras]
    started: list[Any] = [
        OpaqueFunction(function=start_node, args=[node, cameras]) for node in for_all_cameras
    ]
    for camera in cameras:
        arguments = arguments_of_camera(camera, context.launch_configurations)
        settings = [SetLaunchConfiguration(name, value) for name, value in arguments.items()]
        start = [OpaqueFunction(function=start_node, args=[node]) for node in per_camera]
        started.append(GroupAction([PushRosNamespace(camera), *settings, *start]))
    return started


def start_node(
    context: LaunchContext, node: NodeLaunch, cameras: Sequence[str] = ()
) -> list[Node]:
    """Return the node. When it ends, `respawn` restarts it; else launch ends with it.

    Args:
        context: launch context.
        node: node to start.
        cameras: cameras that it serves, each in a namespace of its name below the node's; empty
            for a single camera.
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
    """Return RViz if the argument `rviz` is true.

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
    """Return the action that sets the nodes' transports, if the argument is not empty."""
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
    """Return the remappings of a node that serves several cameras; empty if it serves one."""
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
