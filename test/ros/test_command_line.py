# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The nodes' command line: help that agrees with the nodes, and no argument silently ignored."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from test.ros.conftest import NODE_COMMAND
from uncertainty_depth.core.config.nodes import (
    DepthNodeConfig,
    EvaluatorNodeConfig,
    SigmaNodeConfig,
)
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import parameters_of
from uncertainty_depth.ros import main as node_main
from uncertainty_depth.ros.main import (
    DEPTH_NODE,
    EVALUATOR_NODE,
    refuse_ignored,
    without_ros_arguments,
)

CONFIGS = {
    "depth_node": DepthNodeConfig,
    "evaluator_node": EvaluatorNodeConfig,
    "sigma_node": SigmaNodeConfig,
}
LOG = "/rosout"
TF = {"/tf", "/tf_static"}
"""Only where tf2 is installed, and no transform is given."""
GUIDE = Path(__file__).parents[2] / "docs" / "robot.md"


def call(node, *arguments, **environment):
    command = [sys.executable, "-c", NODE_COMMAND.format(node), *arguments]
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


def test_help_is_a_success_that_starts_nothing_and_needs_no_ros(tmp_path, help_of):
    (tmp_path / "rclpy.py").write_text("raise ImportError('no rclpy here')")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = call("sigma_node", "--ros-args", "-p", "samples:=2", "--help", PYTHONPATH=paths)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == help_of("sigma_node").split()


@pytest.mark.parametrize(("node", "config_type"), CONFIGS.items())
def test_help_explains_every_parameter(node, config_type, help_of):
    words = " ".join(help_of(node).split())
    for item in parameters_of(config_type):
        (explained,) = re.findall(
            rf" {item.name}:=\S+ {re.escape(item.metadata['help'])}(?: \(([^()]*)\))?", words
        )
        assert all(choice in explained for choice in item.metadata["choices"] or ())
        assert ("may change while the node runs" in explained) == item.metadata["live"]
        for bound in item.metadata["limits"] or ():
            assert f"{bound:g}" in re.findall(r"[^\s;]+", explained)
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
    policies = ("history", "depth", "reliability", "durability")
    assert all(policy in text.partition("qos_overrides.")[2] for policy in policies)


def documented(node):
    """Return subscriptions, publishers and services of a node's table in the guide."""
    table = re.search(
        rf"^\| `{node}` \| topic.*?\n\n", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    rows = [row.split(" | ") for row in table[0].splitlines()[2:] if row]
    return [
        {
            name if name[0] in "/~" else f"/{name}"
            for kind, names, *_ in rows
            if kind == f"| {of_kind}"
            for name in chain.from_iterable(map(expanded, re.findall("`([^`]+)`", names)))
        }
        for of_kind in ("in", "out", "service")
    ]


def expanded(name):
    """Return the names of one with braces, as a shell does."""
    parts = [part.split(",") for part in re.split(r"[{}]", name)]
    return map("".join, product(*parts))


@pytest.mark.parametrize("node", CONFIGS)
def test_the_guide_lists_the_topics_and_services_that_the_node_has(node, interfaces):
    parts = zip(documented(node), interfaces[node], interfaces["empty_node"], strict=True)
    for names, actual, common in parts:
        of_all = {LOG, *(name.replace("/empty_node/", "~/") for name in common)}
        own = {name.replace(f"/{node}/", "~/") for name in actual}
        assert own - of_all <= names
        assert names - own <= TF


def test_what_ros_would_ignore_is_one_sentence_and_exit_code_1():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    done = call("depth_node", "--ros-args", "-p", "samples:=9", "--", "--model", "X")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("depth_node: argument '--model'")
    assert "--ros-args -p model:=X" in line


SAMPLES = "--ros-args -p samples:=X"
REFUSED = [
    (DEPTH_NODE, "--sampels=16", SAMPLES),
    (DEPTH_NODE, "samples:=16", SAMPLES),  # ROS would take it as a remapping of a topic `samples`
    (DEPTH_NODE, "use_sim_time:=true", "--ros-args -p use_sim_time:=X"),
    (DEPTH_NODE, "/path/of/something", DEPTH_NODE.example),
    (DEPTH_NODE, "-p", DEPTH_NODE.example),
    (DEPTH_NODE, "--image:=/camera", DEPTH_NODE.example),  # neither an option nor a remapping
    (DEPTH_NODE, "image:=/my camera", DEPTH_NODE.example),
    (DEPTH_NODE, "__params:=x.yaml", DEPTH_NODE.example),  # as it was: ROS no longer takes it
    (EVALUATOR_NODE, "--verbose", EVALUATOR_NODE.example),
    (EVALUATOR_NODE, "--use-ground-truth-image", "--ros-args -p use_ground_truth_image:=X"),
]


@pytest.mark.parametrize(("node", "argument", "expected"), REFUSED)
def test_a_refusal_names_the_parameter_that_was_meant(node, argument, expected):
    sentence = re.escape(f"argument {argument!r} ") + ".*" + re.escape(expected)
    with pytest.raises(ConfigError, match=sentence):
        refuse_ignored(node, ["--ros-args", "-r", "a:=b", "--", "--", argument])


AS_LAUNCH_ROS = (
    "--ros-args --log-level debug --ros-args -r __node:=front --params-file x.yaml -p model:=m"
)
TAKEN = ["", AS_LAUNCH_ROS, "--ros-args -p model:=m -- --ros-args -r image:=/camera/image_raw"]
OLD_REMAPPINGS = ["image:=/camera/image_raw", "/image:=camera", "~/metrics:=~/scores"]
OLD_REMAPPINGS += ["front:image:=/camera", "__ns:=/robot"]


@pytest.mark.parametrize("arguments", [*TAKEN, *OLD_REMAPPINGS])
def test_what_ros_takes_is_not_refused(arguments):
    """An old remapping is taken with a warning."""
    refuse_ignored(DEPTH_NODE, arguments.split())
    refuse_ignored(DEPTH_NODE, ["", "--", "--ros-args"])
    utilities = pytest.importorskip("rclpy.utilities", reason="ROS 2 is not installed")
    without_file = arguments.replace("--params-file x.yaml", "").split()
    assert utilities.remove_ros_args(without_file) == []


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


@pytest.fixture
def without_rclpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "rclpy", None)
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)  # the node commands set their own


def test_the_rclpy_of_humble_is_refused_with_one_sentence(monkeypatch, capsys):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    handler = signal.getsignal(signal.SIGTERM)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "rclpy.event_handler" else find(name, *rest),
    )
    assert node_main.depth_node(["--ros-args", "-p", "model:=demo"]) == 1
    signal.signal(signal.SIGTERM, handler)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("depth_node: this rclpy has no rclpy.event_handler")
    assert line.endswith("expected ROS 2 Jazzy, Kilted or Lyrical")


@pytest.mark.parametrize("command", CONFIGS)
def test_commands_without_rclpy_exit_1_with_one_sentence(command, without_rclpy, capsys):
    assert getattr(node_main, command)([]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    what_to_do = r"source a ROS distribution.*pip install '\.\[ros\]'"
    assert re.match(rf"{command}: ROS 2 is not available .*{what_to_do}", line)
