# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The SROS2 policy grants what the running nodes have, by full name, and nothing else."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

POLICY = Path(__file__).parents[2] / "config" / "security" / "uncertainty_depth.policy.xml"
TF = {"/tf", "/tf_static"}
"""Of tf2's listener, which no package index has."""
BOND = {"/bond"}
"""Of bondpy, which no package index has, with `autostart` false."""
OF_SOME_DISTRIBUTIONS = "get_type_description"
FORMAT = {
    "policy": ({"version"}, {"enclaves"}),
    "enclaves": (set(), {"enclave"}),
    "enclave": ({"path"}, {"profiles"}),
    "profiles": (set(), {"profile"}),
    "profile": ({"ns", "node"}, {"topics", "services"}),
    "topics": ({"publish", "subscribe"}, {"topic"}),
    "services": ({"reply"}, {"service"}),
    "topic": (set(), set()),
    "service": (set(), set()),
}
"""Attributes and children of each element in sros2's policy.xsd, version 0.2.0, without calls."""
QUALIFIERS = ("publish", "subscribe", "reply")


def full_name(expression, node):
    """Return the DDS name that sros2 makes from a name in the policy: only ~ is replaced."""
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


@pytest.mark.parametrize("name", ["depth_node", "evaluator_node", "sigma_node"])
def test_the_policy_grants_what_a_running_node_has(interfaces, name):
    subscribed, published, served = map(set, interfaces[name])
    assert not any("/_action/" in entry for entry in subscribed | published | served)
    subscribed |= TF
    subscribed |= BOND
    published |= BOND
    served.add(f"/{name}/{OF_SOME_DISTRIBUTIONS}")
    assert granted(name) == (subscribed, published, served)


def test_the_policy_is_of_the_format_that_sros2_reads():
    root = ElementTree.parse(POLICY).getroot()
    assert (root.tag, root.get("version")) == ("policy", "0.2.0")
    for element in root.iter():
        attributes, children = FORMAT[element.tag]
        assert set(element.attrib) <= attributes
        assert {child.tag for child in element} <= children
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
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    monkeypatch.setenv("ROS_SECURITY_STRATEGY", "Enforce")
    monkeypatch.setenv("ROS_SECURITY_KEYSTORE", str(tmp_path))
    process = start_node("evaluator_node", "--enclave", "/uncertainty_depth/evaluator_node")
    assert process.end() == 1
    assert "Traceback" not in process.output
    assert "evaluator_node: ROS cannot start: " in process.output
    assert str(tmp_path) in process.output
