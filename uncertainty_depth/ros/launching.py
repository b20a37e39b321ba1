"""What both launch files are made of: every parameter of a node as a launch argument, straight from its config class."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import yaml
from launch.actions import (
    DeclareLaunchArgument,
    GroupAction,
    OpaqueFunction,
    SetEnvironmentVariable,
)
from launch.conditions import IfCondition
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext
from uncertainty_depth.options import element_type

PACKAGE = "uncertainty_depth"
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
CONFIG = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])


def describe_node(executable: str, config: str, kind: type, topics: dict[str, str]) -> list[Any]:
    """The launch description's entities: the node with its arguments, in its namespace, and RViz where it is asked for.

    Args:
        executable: of this package.
        config: default parameter file, in the package's config folder.
        kind: config class; each of its fields is an argument that, left empty, leaves the parameter file's value alone.
        topics: argument name to the node's own topic name: where each input comes from.
    """
    remappings = [(own, LaunchConfiguration(argument)) for argument, own in topics.items()]
    remappings += [
        (f"{own}/compressed", [LaunchConfiguration(argument), "/compressed"])
        for argument, own in topics.items()
        if own == "image"
    ]

    def start(context: LaunchContext) -> list[Node]:
        parameters = [
            ParameterFile(LaunchConfiguration("params_file"), allow_substs=True),
            given_parameters(kind, context),
        ]
        node = Node(
            package=PACKAGE,
            executable=executable,
            name=executable,
            parameters=parameters,
            remappings=remappings,
            output="screen",
            emulate_tty=True,
            sigterm_timeout="60",  # the evaluator writes its report when it is stopped
        )
        return [node]

    rviz = Node(
        package="rviz2",
        executable="rviz2",
        arguments=[
            "-d",
            PathJoinSubstitution([CONFIG, "uncertainty_depth.rviz"]),
            "-f",
            LaunchConfiguration("frame"),
        ],
        remappings=remappings,
        condition=IfCondition(LaunchConfiguration("rviz")),
    )
    return [
        *_arguments(executable, config, topics),
        *(parameter_argument(kind, item) for item in dataclasses.fields(kind)),
        SetEnvironmentVariable(TRANSPORTS, LaunchConfiguration("transports")),
        GroupAction(
            [
                PushRosNamespace(LaunchConfiguration("namespace")),
                OpaqueFunction(function=start),
                rviz,
            ]
        ),
    ]


def _arguments(executable: str, config: str, topics: Iterable[str]) -> list[DeclareLaunchArgument]:
    return (
        [
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of the node and its topics"
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=PathJoinSubstitution([CONFIG, config]),
                description=f"parameters of {executable}",
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="",
                description="true: take the time from /clock; empty: as in params_file",
            ),
            DeclareLaunchArgument(
                "transports",  # with its own default, Fast DDS loses nearly every large best-effort image
                default_value=EnvironmentVariable(TRANSPORTS, default_value="LARGE_DATA"),
                description=f"{TRANSPORTS}: must be the same in every process, the camera driver's too: LARGE_DATA and DEFAULT do not see each other",
            ),
            DeclareLaunchArgument(
                "rviz", default_value="false", description="true: show everything in RViz"
            ),
            DeclareLaunchArgument(
                "frame", default_value="camera", description="fixed frame of RViz"
            ),
        ]
        + [
            DeclareLaunchArgument(
                name, default_value=own, description=f"topic the node takes as {own}"
            )
            for name, own in topics.items()
        ]
    )


def parameter_argument(kind: type, item: dataclasses.Field) -> DeclareLaunchArgument:
    """A field of a config class as a launch argument."""
    return DeclareLaunchArgument(
        item.name,
        default_value="",
        description=f"{item.metadata['help']}; left empty: as in params_file",
    )


def given_parameters(kind: type, context: LaunchContext) -> dict[str, Any]:
    """The parameters whose arguments are not empty."""
    kinds = {item.name: element_type(kind, item.name) for item in dataclasses.fields(kind)} | {
        "use_sim_time": bool
    }
    lists = {item.name for item in dataclasses.fields(kind) if isinstance(item.default, tuple)}
    values = {name: LaunchConfiguration(name).perform(context) for name in kinds}
    return {
        name: _typed(text, kinds[name], name in lists)
        for name, text in values.items()
        if text != ""
    }


def _typed(text: str, kind: type, is_list: bool) -> Any:
    """A text is taken as it is (a path may look like a number); numbers of a list are parted by blanks or commas."""
    if is_list:
        return [yaml.safe_load(part) for part in text.strip("[]").replace(",", " ").split()]
    return ParameterValue(text, value_type=str) if kind is str else yaml.safe_load(text)
