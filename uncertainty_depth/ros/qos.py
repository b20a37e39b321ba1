# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Quality of service of subscriptions and publishers, and its overrides by parameter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

from uncertainty_depth.errors import ConfigError

ENUMS = {
    "history": HistoryPolicy,
    "reliability": ReliabilityPolicy,
    "durability": DurabilityPolicy,
}
POLICIES = ("history", "depth", "reliability", "durability")
OVERRIDABLE = QoSOverridingOptions(
    (
        QoSPolicyKind.HISTORY,
        QoSPolicyKind.DEPTH,
        QoSPolicyKind.RELIABILITY,
        QoSPolicyKind.DURABILITY,
    )
)
OUTPUT_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED_QOS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


def sensor_qos(depth: int, reliable: bool) -> QoSProfile:
    """Return a reliable profile, or a best-effort one, which matches every publisher."""
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
    )


class SubscriptionQos:
    """The `qos_overrides.TOPIC.subscription.POLICY` parameters of a node.

    They hold for every subscription of a topic, later ones too. The overriding options of ROS
    cannot tell an override from the default of the first subscription, so they would undo a
    change at run time.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._overrides: dict[str, dict[str, Any]] = {}

    def declare(self, topics: Iterable[str], default: QoSProfile) -> None:
        """Declare the parameters of topics that are subscribed to now or later, once each.

        Raises:
            ConfigError: the value of an override is not a policy of ROS.
        """
        for topic in topics:
            if topic in self._overrides:
                continue
            name = self._node.resolve_topic_name(topic)
            values = {policy: self._declare(name, policy, default) for policy in POLICIES}
            self._overrides[topic] = {
                policy: value for policy, value in values.items() if value is not None
            }

    def overridden(self, topic: str, qos: QoSProfile) -> QoSProfile:
        """Return `qos` with the overrides of `topic`, whose parameters are declared if need be."""
        if topic not in self._overrides:
            self.declare([topic], qos)
        for policy, value in self._overrides[topic].items():
            setattr(qos, policy, value)
        return qos

    def gives(self, topic: str, policy: str) -> bool:
        """Return whether a policy of a declared topic is overridden."""
        return policy in self._overrides[topic]

    def _declare(self, topic: str, policy: str, qos: QoSProfile) -> Any:
        """Declare a parameter as ROS does; return its override, None without one."""
        name = f"qos_overrides.{topic}.subscription.{policy}"
        descriptor = ParameterDescriptor(dynamic_typing=True)
        override = self._node.declare_parameter(name, None, descriptor).value
        self._node.undeclare_parameter(name)
        value = None if override is None else _policy(name, policy, override)
        default = getattr(qos, policy)
        descriptor = ParameterDescriptor(
            description=f"{policy} for subscription `{topic}`", read_only=True
        )
        self._node.declare_parameter(
            name, default if policy == "depth" else default.name.lower(), descriptor
        )
        return value


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
