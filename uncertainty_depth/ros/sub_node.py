# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A node whose topics are in a namespace below its own, as the sub-nodes of rclcpp."""

from __future__ import annotations

from typing import Any, cast

from uncertainty_depth.ros.guarded import GuardedNode


def sub_node(node: GuardedNode, namespace: str) -> GuardedNode:
    """Return the node as seen from a namespace below its own; the node itself where it is empty.

    Relative topics, and private ones as if the node were in that namespace, are resolved in it.
    Absolute topics and everything else are the node's.

    Args:
        node: creates everything.
        namespace: without slashes at its ends, e.g. "front".
    """
    return cast(GuardedNode, _SubNode(node, namespace)) if namespace else node


class _SubNode:
    def __init__(self, node: GuardedNode, namespace: str) -> None:
        self._node = node
        self._namespace = namespace
        self._logger = node.get_logger().get_child(namespace.replace("/", "."))

    def __getattr__(self, name: str) -> Any:
        """Return what belongs to the node."""
        return getattr(self._node, name)

    def _name(self, topic: str) -> str:
        if topic.startswith("/"):
            return topic
        private = topic.removeprefix("~/")
        own = f"{self._node.get_name()}/{private}" if private != topic else topic
        return f"{self._namespace}/{own}"

    def get_logger(self) -> Any:
        """Return the namespace's logger."""
        return self._logger

    def create_publisher(self, message_type: Any, topic: str, *args: Any, **options: Any) -> Any:
        """Create a publisher in the namespace."""
        return self._node.create_publisher(message_type, self._name(topic), *args, **options)

    def create_subscription(
        self, message_type: Any, topic: str, *args: Any, **options: Any
    ) -> Any:
        """Create a subscription in the namespace."""
        return self._node.create_subscription(message_type, self._name(topic), *args, **options)

    def resolve_topic_name(self, topic: str, *args: Any, **options: Any) -> str:
        """Return the full name of a topic in the namespace, remaps applied."""
        return self._node.resolve_topic_name(self._name(topic), *args, **options)
