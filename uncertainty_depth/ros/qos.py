# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Quality of service of subscriptions and publishers, and its overrides by parameter."""

from __future__ import annotations

from copy import copy
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from uncertainty_depth.core.errors import ConfigError

ENUMS = {
    "history": HistoryPolicy,
    "reliability": ReliabilityPolicy,
    "durability": DurabilityPolicy,
}
POLICIES = ("history", "depth", "reliability", "durability")
OUTPUT_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
SUBSCRIPTION = "subscription"
PUBLISHER = "publisher"
LATCHED_QOS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


def override_name(node: Node, topic: str, entity: str, policy: str) -> str:
    """Return the name of a topic's override, before remaps, as rclcpp and rclpy call it."""
    return f"qos_overrides.{node.resolve_topic_name(topic)}.{entity}.{policy}"


def overridden(node: Node, topic: str, entity: str, qos: QoSProfile) -> QoSProfile:
    """Return a copy of `qos` with what the parameters `qos_overrides` say of the topic.

    Only overrides that were given are parameters: a dump of all parameters, taken for the next
    start, then pins no policy that the node chose itself.
    """
    qos = copy(qos)
    for policy in POLICIES:
        name = override_name(node, topic, entity, policy)
        if node.has_parameter(name):
            setattr(qos, policy, _policy(name, policy, node.get_parameter(name).value))
    return qos


def _policy(name: str, policy: str, value: Any) -> Any:
    """Return a policy from the value of its parameter `name`."""
    if policy == "depth":
        if type(value) is not int or value < 0:
            raise ConfigError(f"parameter {name} is {value!r}; expected a whole number")
        return value
    policies = {item.name.lower(): item for item in ENUMS[policy]}
    if value not in policies:
        raise ConfigError(f"parameter {name} is {value!r}; expected one of {', '.join(policies)}")
    return policies[value]
