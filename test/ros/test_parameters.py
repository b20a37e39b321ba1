# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Parameters come from the config classes and change all together or not at all."""

from __future__ import annotations

import re

import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rclpy.executors import SingleThreadedExecutor

from uncertainty_depth.config.nodes import DepthNodeConfig, EvaluatorNodeConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.options import parameters_of
from uncertainty_depth.ros.node import GuardedNode
from uncertainty_depth.ros.parameters import NodeParameters

NODE = "/parameters_node"


class ParametersNode(GuardedNode):
    config_type = DepthNodeConfig

    def __init__(self, **options):
        super().__init__("parameters_node", **options)
        self.applied = []
        self.refusal = None
        self.parameters = NodeParameters(self, self.config_type, self.on_change)

    def on_change(self, old, new):
        if self.refusal is not None:
            raise self.refusal
        self.applied.append(new)

    @staticmethod
    def create_executor(context):
        return SingleThreadedExecutor(context=context)


class EvaluatorParametersNode(ParametersNode):
    config_type = EvaluatorNodeConfig


@pytest.mark.parametrize("node_class", [ParametersNode, EvaluatorParametersNode])
def test_every_option_is_declared_and_described(graph, node_class):
    node = graph.start(node_class)
    assert node.parameters.config == node.config_type()
    for item in parameters_of(node.config_type):
        descriptor = node.describe_parameter(item.name)
        assert descriptor.description == item.metadata["help"]
        is_live = "may change while the node runs" in descriptor.additional_constraints
        assert is_live == item.metadata["live"]
        for choice in item.metadata["choices"] or ():
            assert repr(choice) in descriptor.additional_constraints
        for bound, end in (("minimum", "from_value"), ("maximum", "to_value")):
            if item.metadata[bound] is not None and not isinstance(item.default, tuple):
                (declared,) = [*descriptor.integer_range, *descriptor.floating_point_range]
                assert getattr(declared, end) == item.metadata[bound]


def test_overrides_and_integers_where_numbers_are_due(graph):
    node = graph.start(
        ParametersNode, ["-p", "max_frame_age:=2", "-p", "samples:=3"], coverage=0.5
    )
    assert (
        node.parameters.config.max_frame_age,
        node.parameters.config.samples,
        node.parameters.config.coverage,
    ) == (2.0, 3, 0.5)
    assert graph.set_parameters(NODE, color_max_depth=30).successful
    assert node.parameters.config.color_max_depth == 30.0


def test_a_dump_of_the_parameters_can_be_started_from(graph, tmp_path):
    """As `ros2 param dump` writes them: a list without a value is []."""
    node = graph.start(EvaluatorParametersNode, output="reports")
    values = {
        name: node.get_parameter(name).value
        for name in (item.name for item in parameters_of(node.config_type))
    }
    plain = {
        key: list(value) if key == "lidar_to_camera" else value for key, value in values.items()
    }
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.dump({"/parameters_node": {"ros__parameters": plain}}))
    assert "lidar_to_camera: []" in file.read_text()
    graph.stop(node)
    again = graph.start(EvaluatorParametersNode, ["--params-file", str(file)])
    assert again.parameters.config == node.parameters.config
    assert graph.set_parameters(NODE, lidar_to_camera=[0.0] * 6 + [1.0]).successful
    assert graph.set_parameters(NODE, lidar_to_camera=[]).successful
    assert again.parameters.config.lidar_to_camera == ()


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("samples:=0", "samples"),
        ("samples:=many", "samples is 'many'; expected int"),
        ("method:=guessing", "'mc_dropout'"),
        ("max_frame_age:=-1.0", "max_frame_age"),
    ],
)
def test_illegal_override_is_one_sentence(graph, argument, expected):
    with pytest.raises(ConfigError, match=expected):
        graph.start(ParametersNode, ["-p", argument])


def test_illegal_change_is_refused_with_a_reason_and_nothing_is_applied(graph):
    node = graph.start(ParametersNode)
    for values, reason in (
        ({"samples": 0}, "samples"),
        ({"samples": 1025}, "1024"),
        ({"samples": "8"}, "samples is '8'; expected int"),
        ({"samples": 2.5}, "expected int"),
        ({"autostart": 1}, "autostart is 1; expected bool"),
        ({"max_frame_age": -0.5}, "max_frame_age"),
        ({"method": "guessing"}, "method is 'guessing'; expected one of"),
        ({"color_max_depth": float("nan")}, "color_max_depth"),
    ):
        result = graph.set_parameters(NODE, coverage=0.5, **values)
        assert not result.successful
        assert reason in result.reason
        assert node.parameters.config == DepthNodeConfig()
        assert node.get_parameter("coverage").value == 0.95
    assert node.applied == []


def test_changes_of_one_request_arrive_together(graph):
    node = graph.start(ParametersNode)
    assert graph.set_parameters(NODE, samples=4, point_stride=2, coverage=0.5).successful
    assert [(config.samples, config.point_stride, config.coverage) for config in node.applied] == [
        (4, 2, 0.5)
    ]


def test_whatever_the_node_raises_refuses_the_change_and_is_the_answer(graph):
    node = graph.start(ParametersNode)
    for refusal, reason in (
        (ConfigError("samples cannot change today"), "samples cannot change today"),
        (MemoryError("no room"), "MemoryError: no room"),
    ):
        node.refusal = refusal
        result = graph.set_parameters(NODE, coverage=0.5, lidar_to_camera=[0.0] * 6 + [1.0])
        assert (result.successful, result.reason) == (False, reason)
        assert node.parameters.config == DepthNodeConfig()
        assert node.get_parameter("coverage").value == 0.95
        assert list(node.get_parameter("lidar_to_camera").value) == []
    node.refusal = None
    assert graph.set_parameters(NODE, coverage=0.6).successful  # the executor still runs


def test_use_sim_time_does_not_affect_the_config(graph):
    node = graph.start(ParametersNode)
    assert not graph.set_parameters(
        NODE, use_sim_time="yes", coverage=0.5
    ).successful  # the clock refuses; the rest must not change either
    assert node.parameters.config.coverage == 0.95
    assert graph.set_parameters(NODE, use_sim_time=True).successful
    assert (node.parameters.config.coverage, node.applied) == (0.95, [])


@pytest.fixture
def warned(graph, capfd):
    """Starts a node and gives what it warned of."""

    def start(node_class, *arguments, **parameters):
        graph.start(node_class, list(arguments), **parameters)
        return re.findall(
            r"^\[WARN\] \[[\d.]+\] \[parameters_node\]: (.*)$",
            capfd.readouterr().err,
            re.MULTILINE,
        )

    return start


def test_each_unknown_parameter_is_warned_of_once_wherever_it_was_given(warned, tmp_path):
    file = tmp_path / "robot.yaml"
    file.write_text(
        "/**: {ros__parameters: {exposure: {auto: true}, max_deth: 9.0}}\n"
        "/parameters_node: {ros__parameters: {max_deth: 8.0, min_depth: 0.2}}"
    )
    warnings = warned(
        EvaluatorParametersNode,
        "--params-file",
        str(file),
        "-p",
        "USE_SIM_TIME:=true",
        "-p",
        "max_depth:=9.0",
        mni_depth=0.5,
    )
    ending = "is not one of parameters_node's and has no effect"
    assert sorted(warnings) == [
        f"parameter 'USE_SIM_TIME' {ending}",
        f"parameter 'exposure.auto' {ending}",
        f"parameter 'max_deth' {ending}; did you mean 'max_depth'?",
        f"parameter 'mni_depth' {ending}; did you mean 'min_depth'?",
    ]


def test_a_misspelt_parameter_is_named_before_an_error_it_causes(graph, capfd):
    with pytest.raises(ConfigError, match="samples"):
        graph.start(ParametersNode, ["-p", "modle:=/path", "-p", "samples:=0"])
    assert "did you mean 'model'?" in capfd.readouterr().err


def test_parameters_of_the_node_and_of_ros_itself_are_not_warned_of(warned):
    every = {
        item.name: list(item.default) if isinstance(item.default, tuple) else item.default
        for item in parameters_of(DepthNodeConfig)
    }
    ros = [
        "use_sim_time:=false",
        "start_type_description_service:=true",
        "qos_overrides./image.subscription.depth:=2",
    ]
    assert warned(ParametersNode, *(word for rule in ros for word in ("-p", rule)), **every) == []
