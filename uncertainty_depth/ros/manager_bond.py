# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The bond to Nav2's lifecycle manager, which stops the robot if a node's process is gone."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node

TOPIC = "bond"
HEARTBEAT_PERIOD_S = 0.1
HEARTBEAT_TIMEOUT_S = 4.0
"""As of Nav2's own nodes."""


def bonded(node: Node) -> Any | None:
    """Return a node's `bondpy.bondpy.Bond`, started; None without bondpy, which is logged.

    It has threads of its own: its heartbeats go on in a long callback.
    """
    try:
        from bondpy.bondpy import Bond
    except ImportError:
        node.get_logger().info(
            "bondpy is not installed: no bond to a lifecycle manager; for Nav2's, install "
            "ros-$ROS_DISTRO-bondpy, or set its bond_timeout to 0.0"
        )
        return None
    bond = Bond(node, TOPIC, node.get_name())
    bond.set_heartbeat_period(HEARTBEAT_PERIOD_S)
    bond.set_heartbeat_timeout(HEARTBEAT_TIMEOUT_S)
    bond.start()
    return bond


def end_bond(node: Node, bond: Any) -> None:
    """Tell the manager that the node stops on purpose; on the executor's thread, or at the end."""
    bond.shutdown()
    # It destroys both itself, but a node still waits for their events, and rclpy raises.
    node.destroy_publisher(bond.pub)
    node.destroy_subscription(bond.sub)
