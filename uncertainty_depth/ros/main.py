# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The node commands: start, spin, and stop cleanly on SIGINT and SIGTERM.

Errors become one sentence and exit code 1.
"""

from __future__ import annotations

import importlib
import signal
import sys
import threading
from collections.abc import Sequence

from uncertainty_depth.errors import ConfigError, UncertaintyDepthError
from uncertainty_depth.ros.command_line import (
    DEPTH_NODE,
    EVALUATOR_NODE,
    HELP,
    NodeCommand,
    print_help,
    refuse_ignored,
)
from uncertainty_depth.ros.requirements import require_ros
from uncertainty_depth.ros.teardown import exit_if_stuck, take_down


def depth_node(args: Sequence[str] | None = None) -> int:
    """Run the depth node until it is stopped; return the exit code."""
    return run(DEPTH_NODE, args)


def evaluator_node(args: Sequence[str] | None = None) -> int:
    """Run the evaluator node until it is stopped; return the exit code."""
    return run(EVALUATOR_NODE, args)


def run(command: NodeCommand, args: Sequence[str] | None) -> int:
    """Run a node, or print its help; return the exit code.

    Args:
        command: the node.
        args: arguments after the command's name; None for those of the process.
    """
    arguments = sys.argv[1:] if args is None else list(args)
    if not HELP.isdisjoint(arguments):
        print_help(command)
        return 0
    try:
        # as SIGINT, until ROS handles both
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        require_ros()
        refuse_ignored(command, arguments)
        spin(command, arguments)
    except KeyboardInterrupt:
        exit_if_stuck(0)
        return 0
    except UncertaintyDepthError as error:
        print(f"{command.name}: {error}", file=sys.stderr)
        return 1
    exit_if_stuck(0)
    return 0


def spin(command: NodeCommand, arguments: Sequence[str]) -> None:
    """Start the node and spin it until shutdown; close it whatever ends it."""
    import rclpy
    from rclpy.executors import ExternalShutdownException

    module = importlib.import_module(f"uncertainty_depth.ros.{command.name}")
    node_class = getattr(module, command.class_name)
    node = None
    started = initialize(arguments)
    try:
        # before the node: no executor can be created after a signal
        executor = node_class.create_executor()
        node = node_class()
        started.set()
        executor.add_node(node)
        executor.spin()
    except ExternalShutdownException:
        pass
    except Exception:
        if rclpy.ok():  # else a signal ended the context while the node was starting
            raise
    finally:
        if node is not None:
            print(node.close(), flush=True)
        take_down(rclpy.try_shutdown)


def initialize(arguments: Sequence[str]) -> threading.Event:
    """Initialize ROS so that SIGINT and SIGTERM shut its context down.

    The caller sets the returned event once the node has started. Before that, a signal also
    raises KeyboardInterrupt: there is nothing to lose, and loading a model takes long. Afterwards
    it does not: it could interrupt anything, e.g. the writing of the report. rclpy calls Python's
    handlers after its own.
    """
    import rclpy

    started = threading.Event()

    def on_signal(*_: object) -> None:
        if not started.is_set():
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    try:
        rclpy.init(args=list(arguments))
    except Exception as error:  # rclpy raises several types of exceptions for bad arguments
        raise ConfigError(f"ROS arguments cannot be used: {error}") from error
    return started
