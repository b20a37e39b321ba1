# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The SROS2 policy grants what the running nodes have, by full name, and nothing else."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from uncertainty_depth.calibration.half_widths import BY_DISTRIBUTION
from uncertainty_depth.ros import depth_node
from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.sigma_node import SigmaNode

POLICY = Path(__file__).parents[2] / "config" / "security" / "uncertainty_depth.policy.xml"
POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
RUNS = {
    DepthNode: (
        {"model": "fake", "lidar_to_camera": POSE},
        {"model": "fake", "lidar_to_camera": POSE, "compressed_input": True, "use_sim_time": True},
    ),
    EvaluatorNode: (
        {"lidars": 4, "lidar_to_camera": 4 * POSE},
        {"use_ground_truth_image": True, "lidar_to_camera": POSE, "use_sim_time": True},
    ),
    SigmaNode: ({"use_sim_time": True},),
}
"""Parameters that together make a node have all of its topics."""
TF = {"/tf", "/tf_static"}
"""Of tf2's listener, which no package index has."""
OF_SOME_DISTRIBUTIONS = "get_type_description"
FORMAT = {
    "policy": {"version"},
    "enclaves": set(),
    "enclave": {"path"},
    "profiles": set(),
    "profile": {"ns", "node"},
    "topics": {"publish", "subscribe"},
    "services": {"reply"},
    "topic": set(),
    "service": set(),
}
"""Elements of sros2's policy.xsd, version 0.2.0, and their attributes; nodes here call nobody."""
CHILDREN = {
    "policy": {"enclaves"},
    "enclaves": {"enclave"},
    "enclave": {"profiles"},
    "profiles": {"profile"},
    "profile": {"topics", "services"},
    "topics": {"topic"},
    "services": {"service"},
    "topic": set(),
    "service": set(),
}
QUALIFIERS = ("publish", "subscribe", "reply")


class SparsePredictor:
    """A model that takes the LiDAR beside the image, and is never asked."""

    method = "deterministic"
    device = "cpu"
    half_widths = BY_DISTRIBUTION["gaussian"]
    sparse_input = "lidar"
    depth_range = (0.3, 12.0)
    passes = 1
    sigma_name = "fake"

    def __init__(self, config):
        self.config = config

    def describe(self):
        return {"method": self.method}


def full_name(expression, node):
    """Return a name of the policy as sros2 makes it one of DDS: only ~ is replaced."""
    if expression.startswith("~"):
        return f"/{node}{expression[1:]}"
    return f"/{expression}"


def granted(name):
    """Return the full names that a node may subscribe to, publish, and serve."""
    (profile,) = ElementTree.parse(POLICY).findall(f".//profile[@node='{name}']")
    return tuple(
        {full_name(element.text, name) for element in profile.findall(path)}
        for path in (
            "topics[@subscribe='ALLOW']/topic",
            "topics[@publish='ALLOW']/topic",
            "services[@reply='ALLOW']/service",
        )
    )


def names_of(node):
    """Return the full names that the graph has of a node: subscribed, published, served."""
    queries = (
        node.get_subscriber_names_and_types_by_node,
        node.get_publisher_names_and_types_by_node,
        node.get_service_names_and_types_by_node,
    )
    return tuple({name for name, _ in query(node.get_name(), "/")} for query in queries)


@pytest.mark.parametrize("node_class", RUNS, ids=lambda node_class: node_class.__name__)
def test_the_policy_grants_what_a_running_node_has(graph, monkeypatch, node_class):
    monkeypatch.setattr(depth_node, "load_predictor", SparsePredictor)
    total = (set(), set(), set())
    for parameters in RUNS[node_class]:
        node = graph.start(node_class, **parameters)
        name = node.get_name()
        for names, more in zip(total, names_of(node), strict=True):
            names |= more
        assert not node.get_client_names_and_types_by_node(name, "/"), "it would need `request`"
        graph.stop(node)
    subscribed, published, served = total
    assert not any("/_action/" in name for names in total for name in names)
    if node_class is not SigmaNode:
        subscribed |= TF
    served.add(f"/{name}/{OF_SOME_DISTRIBUTIONS}")
    assert granted(name) == (subscribed, published, served)


def test_the_policy_is_of_the_format_that_sros2_reads():
    root = ElementTree.parse(POLICY).getroot()
    assert (root.tag, root.get("version")) == ("policy", "0.2.0")
    for element in root.iter():
        assert set(element.attrib) <= FORMAT[element.tag]
        assert {child.tag for child in element} <= CHILDREN[element.tag]
        qualifiers = [element.get(name) for name in QUALIFIERS if element.get(name)]
        assert qualifiers == ["ALLOW"] * (element.tag in ("topics", "services"))
        if element.tag in ("topic", "service"):
            assert element.text == element.text.strip() != ""
            assert not element.text.startswith("/")
            assert not element.text.startswith("~") or element.text.startswith("~/")
    paths = [enclave.get("path") for enclave in root.iter("enclave")]
    nodes = [profile.get("node") for profile in root.iter("profile")]
    assert paths == [f"/uncertainty_depth/{node}" for node in nodes]


def test_with_enforcement_and_no_keys_no_node_starts(start_node, tmp_path, monkeypatch):
    """And it says so in one sentence: nothing falls back to an open graph."""
    for name, value in {
        "ROS_SECURITY_ENABLE": "true",
        "ROS_SECURITY_STRATEGY": "Enforce",
        "ROS_SECURITY_KEYSTORE": str(tmp_path),
    }.items():
        monkeypatch.setitem(os.environ, name, value)
    process = start_node("evaluator_node", "--enclave", "/uncertainty_depth/evaluator_node")
    assert process.end() == 1
    assert "Traceback" not in process.output
    assert "evaluator_node: ROS cannot start: " in process.output
    assert str(tmp_path) in process.output
