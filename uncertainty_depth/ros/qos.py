"""Quality of service: what subscriptions ask for, and which policies users may override by parameter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

from uncertainty_depth.errors import ConfigError

KINDS = {
    "history": HistoryPolicy,
    "depth": int,
    "reliability": ReliabilityPolicy,
    "durability": DurabilityPolicy,
}

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
    """Best effort, which matches every publisher, or reliable, which a best-effort publisher cannot give."""
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
    )


class SubscriptionQos:
    """The `qos_overrides.TOPIC.subscription.POLICY` that a user gave; they hold for every subscription of the topic, a later one too.

    ROS's own options cannot tell a given value from the default of the first subscription, so they would undo a change at run time.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._given: dict[str, dict[str, Any]] = {}

    def declare(self, topics: Iterable[str], default: QoSProfile) -> None:
        """Declare the parameters of topics that may be subscribed to, now or later.

        Raises:
            ConfigError: a given value is no such policy.
        """
        for topic in topics:
            name = self._node.resolve_topic_name(topic)
            values = {policy: self._declare(name, policy, default) for policy in KINDS}
            self._given[topic] = {
                policy: value for policy, value in values.items() if value is not None
            }

    def overridden(self, topic: str, qos: QoSProfile) -> QoSProfile:
        """`qos`, changed to what was given for this topic; declares it if that was not done before."""
        if topic not in self._given:
            self.declare([topic], qos)
        for policy, value in self._given[topic].items():
            setattr(qos, policy, value)
        return qos

    def gives(self, topic: str, policy: str) -> bool:
        """Whether the user gave this policy for a declared topic."""
        return policy in self._given[topic]

    def _declare(self, topic: str, policy: str, qos: QoSProfile) -> Any:
        """Declare the parameter as ROS does, and return its value if it was given."""
        name = f"qos_overrides.{topic}.subscription.{policy}"
        given = self._node.declare_parameter(
            name, None, ParameterDescriptor(dynamic_typing=True)
        ).value
        self._node.undeclare_parameter(name)
        value, default = _policy(name, policy, given), getattr(qos, policy)
        shown = default if policy == "depth" else default.name.lower()
        self._node.declare_parameter(
            name,
            shown,
            ParameterDescriptor(
                description=f"{policy} for subscription `{topic}`", read_only=True
            ),
        )
        return value


def _policy(name: str, policy: str, given: Any) -> Any:
    kind = KINDS[policy]
    names = None if kind is int else [each.name.lower() for each in kind]
    if given is None:
        return None
    if not (type(given) is int and given >= 0 if names is None else given in names):
        raise ConfigError(
            f"parameter {name} is {given!r}; expected {'a whole number' if names is None else 'one of ' + ', '.join(names)}"
        )
    return given if names is None else kind[given.upper()]
