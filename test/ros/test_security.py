# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The SROS2 policy grants what the nodes have, and nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.evaluator_node import EvaluatorNode

POLICY = Path(__file__).parents[2] / "config" / "security" / "uncertainty_depth.policy.xml"
BY_PARAMETER = {
    "depth_node": {"clock", "image/compressed", "lidar/points", "tf", "tf_static"},
    "evaluator_node": {"clock", "ground_truth/image", "tf", "tf_static"},
}
"""Topics that a node subscribes to by other parameters, or where tf2 is installed."""


def granted(name):
    """Return subscriptions, publications and services of a node's profile."""
    (profile,) = ElementTree.parse(POLICY).findall(f".//profile[@node='{name}']")
    return [
        {element.text for element in profile.findall(path)}
        for path in (
            "topics[@subscribe='ALLOW']/topic",
            "topics[@publish='ALLOW']/topic",
            "services[@reply='ALLOW']/service",
        )
    ]


@pytest.mark.parametrize("node_class", [DepthNode, EvaluatorNode])
def test_the_policy_grants_what_a_node_has(graph, tiny_model, node_class):
    is_depth = node_class is DepthNode
    parameters = {"model": str(tiny_model)} if is_depth else {"lidar_to_camera": [0.0] * 6 + [1.0]}
    node = graph.start(node_class, **parameters)
    name = node.get_name()
    queries = (
        node.get_subscriber_names_and_types_by_node,
        node.get_publisher_names_and_types_by_node,
        node.get_service_names_and_types_by_node,
    )
    subscribed, published, served = (
        {topic.replace(f"/{name}/", "~").removeprefix("/") for topic, _ in query(name, "/")}
        for query in queries
    )
    allowed_subscriptions, allowed_publications, allowed_services = granted(name)
    assert published == allowed_publications
    assert served | {"~get_type_description"} == allowed_services  # not in every distribution
    assert subscribed | BY_PARAMETER[name] == allowed_subscriptions
