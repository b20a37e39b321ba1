# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The node commands: start, spin, and stop cleanly on SIGINT and SIGTERM.

Errors become one sentence and exit code 1.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from types import FrameType
from typing import NamedTuple

from uncertainty_depth.core.config.nodes import (
    DepthNodeConfig,
    EvaluatorNodeConfig,
    SigmaNodeConfig,
)
from uncertainty_depth.core.errors import ConfigError, UncertaintyDepthError
from uncertainty_depth.core.options import add_parameters, parameters_of
from uncertainty_depth.core.process import single_threaded_blas, wait_passively

REQUIRED_MODULES = (
    "rclpy",
    "rclpy.lifecycle",
    "sensor_msgs.msg",
    "std_msgs.msg",
    "std_srvs.srv",
    "diagnostic_msgs.msg",
    "rosgraph_msgs.msg",
)


SINCE = "rclpy.event_handler"
"""Module that counts lost messages in Iron and newer; Humble has another."""
WIDTH = 99
HELP = frozenset({"-h", "--help"})
OLD_REMAPPING = re.compile(r"(?!__params|__log)(\w+:)?[\w/~]+:=[\w/~]+")
"""Remapping rules that ROS also accepts outside `--ros-args`, with a warning."""
THREADS = ("worker", "views", "teardown")
"""Threads that may outlast a node: its frames', their views', and `take_down`'s."""


class RosMissingError(UncertaintyDepthError):
    """ROS 2, or one of the message packages, cannot be imported."""


def require_ros() -> None:
    """Raise `RosMissingError` unless rclpy and message packages are there, and not too old."""
    for module in REQUIRED_MODULES:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise RosMissingError(
                f"ROS 2 is not available ({error}): source a ROS distribution, "
                "or pip install '.[ros]' in a clone of uncertainty_depth"
            ) from error
    if importlib.util.find_spec(SINCE) is None:
        raise RosMissingError(
            f"this rclpy has no {SINCE}: it is of Humble or older; expected ROS 2 Jazzy, Kilted "
            "or Lyrical"
        )


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


def run(command: NodeCommand, args: Sequence[str] | None = None) -> int:
    """Run a node with these arguments, or the process's; return the exit code."""
    arguments = sys.argv[1:] if args is None else list(args)
    if not HELP.isdisjoint(arguments):
        print_help(command)
        return 0
    try:
        # as SIGINT, until ROS handles both
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        require_ros()
        refuse_ignored(command, arguments)
        wait_passively()
        single_threaded_blas()
        spin(command, arguments)
    except KeyboardInterrupt:  # while the node was starting
        pass
    except UncertaintyDepthError as error:
        print(f"{command.name}: {error}", file=sys.stderr)
        exit_if_stuck(1)
        return 1
    exit_if_stuck(0)
    return 0


depth_node = partial(run, DEPTH_NODE)
evaluator_node = partial(run, EVALUATOR_NODE)
sigma_node = partial(run, SIGMA_NODE)
"""The programs that are installed: each runs until it is stopped, and returns the exit code."""


def spin(command: NodeCommand, arguments: Sequence[str]) -> None:
    """Start the node and spin it until shutdown; close it whatever ends it."""
    import rclpy
    from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

    from uncertainty_depth.ros.node import take_down

    module = importlib.import_module(f"uncertainty_depth.ros.{command.name}")
    node_class = getattr(module, command.class_name)
    node = None
    signals = Signals(command.name)
    initialize(arguments, signals)
    try:
        # before the node: no executor can be created after a signal
        executor = SingleThreadedExecutor()
        node = node_class()
        signals.is_started = True
        executor.add_node(node)
        executor.spin()
    except ExternalShutdownException:
        pass
    except Exception as error:
        if rclpy.ok():  # else a signal ended the context while the node was starting
            refuse_without_security(error)
            raise
    finally:
        if node is not None:
            signals.is_closing = True  # a second Ctrl-C ends the process
            print(node.close(), flush=True)
        take_down(rclpy.try_shutdown)
    if node is not None and node.fatal_error is not None:
        raise node.fatal_error


class Signals:
    """Handles SIGINT and SIGTERM beside rclpy, whose own handler shuts the context down.

    While the node starts, a signal raises `KeyboardInterrupt`: there is nothing to lose, and a
    model takes long to load. Once it runs, the first signal only shuts it down, because an
    exception could strike anywhere, for example in the middle of a frame. A Ctrl-C while the node
    closes ends the process; a SIGTERM does not: launch sends one 5 s after its SIGINT, while plots
    may still be drawn.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_started = False
        self.is_closing = False

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Handle a signal."""
        if not self.is_started:
            raise KeyboardInterrupt
        if self.is_closing and number == signal.SIGINT:
            os.write(sys.stderr.fileno(), f"{self.name}: aborted\n".encode())
            os._exit(128 + signal.SIGINT)  # a normal exit would wait for running threads


def initialize(arguments: Sequence[str], signals: Signals) -> None:
    """Initialize ROS, or raise `ConfigError`; rclpy calls Python's handlers after its own."""
    import rclpy

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signals.on_signal)
    try:
        rclpy.init(args=list(arguments))
    except Exception as error:  # rclpy raises several types of exceptions for bad arguments
        refuse_without_security(error)
        raise ConfigError(f"ROS arguments cannot be used: {error}") from error


def refuse_without_security(error: Exception) -> None:
    """Raise `ConfigError` if ROS failed because enforced security lacks keys or libraries."""
    if "security" in str(error).lower():  # of rcl and the middleware, which have no type for it
        raise ConfigError(
            f"ROS cannot start: {error}; expected an enclave of this node in "
            "ROS_SECURITY_KEYSTORE, and a middleware that was built with security"
        ) from error


def exit_if_stuck(code: int) -> None:
    """Exit the process if a thread of this package still runs: Python would wait for it."""
    if any(thread.name in THREADS for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
