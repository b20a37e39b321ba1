# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Parameters come from the config classes and change all together or not at all."""

import re

import pytest
import yaml

from uncertainty_depth.core.config.nodes import DepthNodeConfig, EvaluatorNodeConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import parameters_of
from uncertainty_depth.ros.guarded_node import GuardedNode
from uncertainty_depth.ros.parameters import NodeParameters

NODE = "/parameters_node"
POSE = [0.0] * 6 + [1.0]


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
        if item.metadata["limits"] and not isinstance(item.default, tuple):
            (declared,) = [*descriptor.integer_range, *descriptor.floating_point_range]
            assert (declared.from_value, declared.to_value) == item.metadata["limits"]


def test_overrides_and_changes_of_one_request_are_taken_integers_for_numbers_too(graph):
    node = graph.start(
        ParametersNode, ["-p", "max_frame_age:=2", "-p", "samples:=3"], coverage=0.5
    )
    config = node.parameters.config
    assert (config.max_frame_age, config.samples, config.coverage) == (2.0, 3, 0.5)
    assert graph.set_parameters(NODE, samples=4, point_stride=2, color_max_depth=30).successful
    (config,) = node.applied
    assert config == node.parameters.config
    assert (config.samples, config.point_stride, config.color_max_depth) == (4, 2, 30.0)
    assert graph.set_parameters(NODE, use_sim_time=True).successful
    assert len(node.applied) == 1


def test_a_dump_of_the_parameters_can_be_started_from(graph, tmp_path):
    """As `ros2 param dump` writes them: a list without a value is []."""
    node = graph.start(EvaluatorParametersNode, output="reports")
    values = {
        item.name: node.get_parameter(item.name).value for item in parameters_of(node.config_type)
    }
    plain = values | {"lidar_to_camera": list(values["lidar_to_camera"])}
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.dump({"/parameters_node": {"ros__parameters": plain}}))
    assert "lidar_to_camera: []" in file.read_text()
    graph.stop(node)
    again = graph.start(EvaluatorParametersNode, ["--params-file", str(file)])
    assert again.parameters.config == node.parameters.config
    assert graph.set_parameters(NODE, lidar_to_camera=POSE).successful
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


def test_a_change_that_is_illegal_or_that_the_node_refuses_has_a_reason_and_changes_nothing(graph):
    node = graph.start(ParametersNode)

    def refuse(reason, **values):
        graph.refuses(NODE, reason, coverage=0.5, lidar_to_camera=POSE, **values)
        assert node.parameters.config == DepthNodeConfig()
        assert node.get_parameter("coverage").value == 0.95
        assert list(node.get_parameter("lidar_to_camera").value) == []

    refuse("samples", samples=0)
    refuse("1024", samples=1025)
    refuse("samples is '8'; expected int", samples="8")
    refuse("expected int", samples=2.5)
    refuse("autostart is 1; expected bool", autostart=1)
    refuse("", use_sim_time="yes")  # by the clock, before or after the rest
    refuse("max_frame_age", max_frame_age=-0.5)
    refuse("method is 'guessing'; expected one of", method="guessing")
    refuse("color_max_depth", color_max_depth=float("nan"))
    node.refusal = ConfigError("samples cannot change today")
    refuse("samples cannot change today")
    node.refusal = MemoryError("no room")
    refuse("MemoryError: no room")
    assert node.applied == []
    node.refusal = None
    assert graph.set_parameters(NODE, coverage=0.6).successful  # the executor still runs


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
    arguments = ("-p", "USE_SIM_TIME:=true", "-p", "max_depth:=9.0")
    warnings = warned(
        EvaluatorParametersNode, "--params-file", str(file), *arguments, mni_depth=0.5
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


def test_a_path_in_the_home_folder_is_expanded_as_no_shell_does(graph, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    node = graph.start(EvaluatorParametersNode, output="~/run", require=["~/limits.yaml"])
    assert node.parameters.config.output == str(tmp_path / "run")
    assert node.parameters.config.require == (str(tmp_path / "limits.yaml"),)
    assert graph.set_parameters(NODE, output="~").successful
    assert node.parameters.config.output == str(tmp_path)
    assert graph.set_parameters(NODE, output="a~/run").successful
    assert node.parameters.config.output == "a~/run"
