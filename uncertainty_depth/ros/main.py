# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The node commands: start, spin, and stop cleanly on SIGINT and SIGTERM.

Errors become one sentence and exit code 1.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any

from uncertainty_depth.core.blas import single_threaded_blas, wait_passively
from uncertainty_depth.core.errors import ConfigError, UncertaintyDepthError
from uncertainty_depth.ros.command_line import (
    DEPTH_NODE,
    EVALUATOR_NODE,
    HELP,
    SIGMA_NODE,
    NodeCommand,
    print_help,
    refuse_ignored,
)
from uncertainty_depth.ros.requirements import require_ros

THREADS = ("worker", "views", "teardown")
"""Threads that may outlast a node: its frames', their views', and `take_down`'s."""


def depth_node(args: Sequence[str] | None = None) -> int:
    """Run the depth node until it is stopped; return the exit code."""
    return run(DEPTH_NODE, args)


def evaluator_node(args: Sequence[str] | None = None) -> int:
    """Run the evaluator node until it is stopped; return the exit code."""
    return run(EVALUATOR_NODE, args)


def sigma_node(args: Sequence[str] | None = None) -> int:
    """Run the sigma node until it is stopped; return the exit code."""
    return run(SIGMA_NODE, args)


def run(command: NodeCommand, args: Sequence[str] | None) -> int:
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


def spin(command: NodeCommand, arguments: Sequence[str]) -> None:
    """Start the node and spin it until shutdown; close it whatever ends it."""
    import rclpy
    from rclpy.executors import ExternalShutdownException

    from uncertainty_depth.ros.node import take_down

    module = importlib.import_module(f"uncertainty_depth.ros.{command.name}")
    node_class = getattr(module, command.class_name)
    node = None
    signals = Signals(command.name)
    initialize(arguments, signals)
    try:
        # before the node: no executor can be created after a signal
        executor = node_class.create_executor()
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
            close(node, signals)
        take_down(rclpy.try_shutdown)
    if node is not None and node.fatal_error is not None:
        raise node.fatal_error


def close(node: Any, signals: Signals) -> None:
    """Close a node and print its summary; a second Ctrl-C meanwhile ends the process."""
    signals.is_closing = True
    print(node.close(), flush=True)


class Signals:
    """Handles SIGINT and SIGTERM beside rclpy, whose own handler shuts the context down.

    While the node starts, a signal raises `KeyboardInterrupt`: there is nothing to lose, and a
    model takes long to load. Once it runs, the first signal only shuts it down, because an
    exception could strike anywhere, for example in the middle of a frame. A Ctrl-C while the node
    closes ends the process; a SIGTERM does not: launch sends one 5 s after its SIGINT, while plots
    may still be drawn.

    Attributes:
        name: the node's name.
        is_started: whether the node runs.
        is_closing: whether the node shuts down.
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
