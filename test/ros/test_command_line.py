# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The nodes' command line: help that agrees with the nodes, and no argument silently ignored."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import subprocess
import sys
from collections import ChainMap
from importlib.util import find_spec
from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uncertainty_depth.config import DepthNodeConfig, EvaluatorNodeConfig, SigmaNodeConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.options import parameters_of
from uncertainty_depth.ros import main as node_main
from uncertainty_depth.ros.command_line import (
    DEPTH_NODE,
    EVALUATOR_NODE,
    refuse_ignored,
    without_ros_arguments,
)

COMMAND = "import sys; from uncertainty_depth.ros.main import {0}; sys.exit({0}())"
CONFIGS = {
    "depth_node": DepthNodeConfig,
    "evaluator_node": EvaluatorNodeConfig,
    "sigma_node": SigmaNodeConfig,
}
LOG = "/rosout"
NUMBERS = itertools.count()  # the graph keeps a node's lifecycle topics for a while after its end
TF = {"/tf", "/tf_static"}  # only where tf2 is installed and no transform is given
ENTRY = re.compile(r"^  (\S+)\s+(\w+/\w+) ", re.MULTILINE)


def call(node, *arguments, **environment):
    command = [sys.executable, "-c", COMMAND.format(node), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | environment
    )


@pytest.fixture
def help_of(capsys):
    """What a node command prints for --help."""

    def text(node):
        assert getattr(node_main, node)(["--help"]) == 0
        return capsys.readouterr().out

    return text


@pytest.mark.parametrize(
    ("node", "arguments"),
    [
        ("depth_node", ("--help",)),
        ("evaluator_node", ("-h",)),
        ("sigma_node", ("--ros-args", "-p", "samples:=2", "--help")),
    ],
)
def test_help_is_a_success_that_starts_nothing_and_needs_no_ros(node, arguments, tmp_path):
    (tmp_path / "rclpy.py").write_text("raise ImportError('no rclpy here')")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = call(node, *arguments, PYTHONPATH=paths)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == call(node, "--help").stdout


@pytest.mark.parametrize(("node", "config_type"), CONFIGS.items())
def test_help_explains_every_parameter(node, config_type, help_of):
    words = " ".join(help_of(node).split())
    for item in parameters_of(config_type):
        (explained,) = re.findall(
            rf" {item.name}:=\S+ {re.escape(item.metadata['help'])}(?: \(([^()]*)\))?", words
        )
        assert all(choice in explained for choice in item.metadata["choices"] or ())
        assert ("may change while the node runs" in explained) == item.metadata["live"]
        for bound in (item.metadata["minimum"], item.metadata["maximum"]):
            assert bound is None or f"{bound:g}" in re.findall(r"[^\s;]+", explained)
        if item.default not in ("", ()):
            assert explained.endswith(f"default: {item.default}")


@pytest.mark.parametrize("node", CONFIGS)
def test_help_shows_how_it_is_called_and_what_every_node_takes(node, help_of):
    text = help_of(node)
    assert text.startswith(f"usage: {node} --ros-args -p ")
    assert re.search(
        rf"example: {node} --ros-args -p (model|output|sigma_map):=\S+ .*-r \S+:=/", text
    )
    assert "use_sim_time:=" in text
    assert "qos_overrides." in text


def test_help_names_the_policies_that_can_be_overridden(help_of):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from uncertainty_depth.ros.qos import POLICIES

    assert all(all(policy in help_of(node) for policy in POLICIES) for node in CONFIGS)


def is_listed(node):
    """Whether the graph, which is filled some time later, has what the node has made."""
    name = node.get_name()
    published = dict(node.get_publisher_names_and_types_by_node(name, "/"))
    subscribed = dict(node.get_subscriber_names_and_types_by_node(name, "/"))
    services = node.get_service_names_and_types_by_node(name, "/")
    return (
        published.keys() >= {item.topic_name for item in node.publishers}
        and subscribed.keys() >= {item.topic_name for item in node.subscriptions}
        and len(services) >= len(list(node.services))
        and f"/{name}/transition_event" in published
    )


@pytest.fixture
def real(graph, tiny_model):
    """A node's own subscriptions, publishers and services by name, with their types."""
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.lifecycle import LifecycleNode

    from uncertainty_depth.ros.depth_node import DepthNode
    from uncertainty_depth.ros.evaluator_node import EvaluatorNode
    from uncertainty_depth.ros.sigma_node import SigmaNode

    class EmptyNode(LifecycleNode):
        def __init__(self, **options):
            super().__init__(f"empty_{next(NUMBERS)}", **options)

        @staticmethod
        def create_executor(context):
            return SingleThreadedExecutor(context=context)

    settings = {
        "depth_node": (
            DepthNode,
            [{"model": str(tiny_model), "compressed_input": flag} for flag in (False, True)],
        ),
        "evaluator_node": (
            EvaluatorNode,
            [{"use_ground_truth_image": True}, {"lidar_to_camera": [0.0] * 6 + [1.0]}],
        ),
        "sigma_node": (SigmaNode, [{}]),
    }

    def entities(node_class, **parameters):
        node = graph.start(node_class, **parameters)
        name = node.get_name()
        queries = (
            node.get_subscriber_names_and_types_by_node,
            node.get_publisher_names_and_types_by_node,
            node.get_service_names_and_types_by_node,
        )
        graph.until(lambda: is_listed(node), "everything of the node in the graph")
        names_and_types = [query(name, "/") for query in queries]
        graph.stop(node)
        return [
            {
                topic.replace(f"/{name}/", "~/"): re.sub("/(msg|srv)/", "/", types[0])
                for topic, types in listing
                if topic != LOG
            }
            for listing in names_and_types
        ]

    def own_entities(name):
        node_class, settings_of_node = settings[name]
        common = entities(EmptyNode)
        variants = [entities(node_class, **parameters) for parameters in settings_of_node]
        merged = [dict(ChainMap(*parts)) for parts in zip(*variants, strict=True)]
        return [
            {key: types[key] for key in types.keys() - others.keys()}
            for types, others in zip(merged, common, strict=True)
        ]

    return own_entities


def topics_in(text):
    """Return subscriptions, publishers and services of a help text: name pattern to type."""
    parts = re.split(
        r"^(subscribed topics|published topics|services|[Pp]arameters)\b.*:$",
        text,
        flags=re.MULTILINE,
    )
    sections = {
        title: dict(ENTRY.findall(part))
        for title, part in zip(parts[1::2], parts[2::2], strict=True)
    }
    return [
        absolute(sections.get(title, {}))
        for title in ("subscribed topics", "published topics", "services")
    ]


def absolute(types):
    return {
        name if name[0] in "/~" else f"/{name}": type_name for name, type_name in types.items()
    }


@pytest.mark.parametrize("node", CONFIGS)
def test_help_lists_the_topics_and_services_that_the_node_has(node, help_of, request):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    sections = topics_in(help_of(node))
    for patterns, actual in zip(sections, request.getfixturevalue("real")(node), strict=True):
        for name, type_name in actual.items():
            matches = [pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern)]
            assert {patterns[pattern] for pattern in matches} == {type_name}, name
        unused = [pattern for pattern in patterns if not fnmatch.filter(actual, pattern)]
        assert set(unused) <= TF


@pytest.mark.parametrize(
    ("node", "arguments", "named", "expected"),
    [
        ("depth_node", ("--model", "X"), "'--model'", "--ros-args -p model:=X"),
        ("depth_node", ("my_model",), "'my_model'", "--ros-args -p model:=X"),
        (
            "evaluator_node",
            ("--ros-args", "-p", "alpha:=0.9", "--", "--max-depth=9"),
            "'--max-depth=9'",
            "--ros-args -p max_depth:=X",
        ),
    ],
)
def test_what_ros_would_ignore_is_one_sentence_and_exit_code_1(node, arguments, named, expected):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    done = call(node, *arguments)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{node}: argument {named}")
    assert expected in line


@pytest.mark.parametrize(
    ("node", "argument", "expected"),
    [
        (DEPTH_NODE, "--sampels=16", "--ros-args -p samples:=X"),
        (
            DEPTH_NODE,
            "samples:=16",
            "--ros-args -p samples:=X",
        ),  # ROS would take it as a remapping of a topic `samples`
        (DEPTH_NODE, "use_sim_time:=true", "--ros-args -p use_sim_time:=X"),
        (DEPTH_NODE, "/path/of/something", DEPTH_NODE.example),
        (DEPTH_NODE, "-p", DEPTH_NODE.example),
        (DEPTH_NODE, "--image:=/camera", DEPTH_NODE.example),  # neither an option nor a remapping
        (DEPTH_NODE, "image:=/my camera", DEPTH_NODE.example),
        (
            DEPTH_NODE,
            "__params:=x.yaml",
            DEPTH_NODE.example,
        ),  # as it once was: ROS no longer takes it
        (EVALUATOR_NODE, "--verbose", EVALUATOR_NODE.example),
        (EVALUATOR_NODE, "--use-ground-truth-image", "--ros-args -p use_ground_truth_image:=X"),
    ],
)
def test_a_refusal_names_the_parameter_that_was_meant(node, argument, expected):
    with pytest.raises(
        ConfigError, match=re.escape(f"argument {argument!r} ") + ".*" + re.escape(expected)
    ):
        refuse_ignored(node, ["--ros-args", "-r", "a:=b", "--", "--", argument])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["", "--", "--ros-args"],
        [
            "--ros-args",
            "--log-level",
            "debug",
            "--ros-args",
            "-r",
            "__node:=front",
            "--params-file",
            "x.yaml",
            "-p",
            "model:=m",
        ],  # as launch_ros
        ["--ros-args", "-p", "model:=m", "--", "--ros-args", "-r", "image:=/camera/image_raw"],
    ],
)
def test_what_ros_takes_is_not_refused(arguments):
    refuse_ignored(DEPTH_NODE, arguments)


@pytest.mark.parametrize(
    "argument",
    [
        "image:=/camera/image_raw",
        "/image:=camera",
        "~/metrics:=~/scores",
        "front:image:=/camera",
        "__ns:=/robot",
    ],
)
def test_an_old_remapping_that_ros_takes_with_a_warning_is_not_refused(argument):
    refuse_ignored(DEPTH_NODE, [argument])
    utilities = pytest.importorskip("rclpy.utilities", reason="ROS 2 is not installed")
    assert utilities.remove_ros_args([argument]) == []


words = st.lists(st.sampled_from(["bag", "--model", "-x", "--", "a", "--help"]), max_size=3)
rules = st.lists(
    st.sampled_from(
        [("-p", "a:=b"), ("-r", "image:=/camera"), ("--log-level", "info"), ("--ros-args",)]
    ),
    max_size=3,
)
blocks = st.builds(
    lambda rules, after: ["--ros-args", *chain(*rules), *(["--", *after] if after else [])],
    rules,
    words,
)


@pytest.mark.skipif(find_spec("rclpy") is None, reason="ROS 2 is not installed")
@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy computer is no failure
@given(words, st.lists(blocks, max_size=3))
def test_ros_arguments_are_those_that_rclpy_removes(first, blocks):
    from rclpy.utilities import remove_ros_args

    arguments = [*first, *chain(*blocks)]
    assert without_ros_arguments(arguments) == remove_ros_args(arguments)
