"""Parameters come from the dataclasses, are described, and change all together or not at all."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from uncertainty_depth.config import DepthNodeConfig, EvaluatorNodeConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.ros.parameters import NodeParameters

NODE = "/parameters_node"


class ParametersNode(Node):
    kind = DepthNodeConfig

    def __init__(self, **options):
        super().__init__("parameters_node", **options)
        self.applied, self.refused = [], ""
        self.parameters = NodeParameters(self, self.kind, self.prepare)

    def prepare(self, old, new):
        if self.refused and getattr(old, self.refused) != getattr(new, self.refused):
            raise ConfigError(f"{self.refused} cannot change today")
        return lambda: self.applied.append(new)

    @staticmethod
    def create_executor(context):
        return SingleThreadedExecutor(context=context)


class EvaluatorParametersNode(ParametersNode):
    kind = EvaluatorNodeConfig


@pytest.mark.parametrize("kind", [ParametersNode, EvaluatorParametersNode])
def test_every_option_is_declared_and_described(graph, kind):
    node = graph.start(kind)
    assert node.parameters.config == node.kind()
    for item in dataclasses.fields(node.kind):
        descriptor = node.describe_parameter(item.name)
        assert descriptor.description == item.metadata["help"]
        assert descriptor.read_only == item.metadata["read_only"]
        for choice in item.metadata["choices"] or ():
            assert repr(choice) in descriptor.additional_constraints
        for bound, end in (("minimum", "from_value"), ("maximum", "to_value")):
            if item.metadata[bound] is not None:
                (declared,) = [*descriptor.integer_range, *descriptor.floating_point_range]
                assert getattr(declared, end) == item.metadata[bound]


def test_read_only_are_those_that_need_a_restart(graph):
    node = graph.start(ParametersNode)
    names = [item.name for item in dataclasses.fields(DepthNodeConfig) if node.describe_parameter(item.name).read_only]
    assert sorted(names) == ["device", "model", "precision"]


def test_overrides_and_integers_where_numbers_are_due(graph):
    node = graph.start(ParametersNode, ["-p", "max_frame_age:=2", "-p", "samples:=3"], seed=7)
    assert (node.parameters.config.max_frame_age, node.parameters.config.samples, node.parameters.config.seed) == (2.0, 3, 7)
    assert graph.set_parameters(NODE, color_max_depth=30).successful
    assert node.parameters.config.color_max_depth == 30.0


def test_lists_of_numbers(graph):
    node = graph.start(EvaluatorParametersNode, ["-p", "lidar_to_camera:=[0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0]"])
    assert node.parameters.config.lidar_to_camera == (0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0)
    assert graph.set_parameters(NODE, lidar_to_camera=[1, 0, 0, 0, 0, 0, 1]).successful
    assert node.parameters.config.lidar_to_camera == (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


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


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"samples": 0}, "samples"),
        ({"samples": 1025}, "1024"),
        ({"samples": "8"}, "samples is '8'; expected int"),
        ({"samples": 2.5}, "expected int"),
        ({"reliable_input": 1}, "reliable_input is 1; expected bool"),
        ({"max_frame_age": -0.5}, "max_frame_age"),
        ({"method": "guessing"}, "method is 'guessing'; expected one of"),
        ({"model": "/elsewhere"}, "read-only"),
        ({"device": "cuda"}, "read-only"),
        ({"precision": "fp16"}, "read-only"),
        ({"color_max_sigma": float("nan")}, "color_max_sigma"),
    ],
)
def test_illegal_change_is_refused_with_a_reason_and_nothing_is_applied(graph, values, reason):
    node = graph.start(ParametersNode)
    result = graph.set_parameters(NODE, seed=5, **values)
    assert not result.successful
    assert reason in result.reason
    assert node.parameters.config == DepthNodeConfig()
    assert node.get_parameter("seed").value == 0
    assert node.applied == []


def test_changes_of_one_request_arrive_together(graph):
    node = graph.start(ParametersNode)
    assert graph.set_parameters(NODE, samples=4, chunk=2, seed=9).successful
    assert [(config.samples, config.chunk, config.seed) for config in node.applied] == [(4, 2, 9)]


def test_the_node_may_refuse(graph):
    node = graph.start(ParametersNode)
    node.refused = "seed"
    result = graph.set_parameters(NODE, seed=1, samples=2)
    assert (result.successful, result.reason) == (False, "seed cannot change today")
    assert (node.parameters.config.samples, node.get_parameter("samples").value) == (8, 8)


def test_other_parameters_are_none_of_its_business(graph):
    node = graph.start(ParametersNode)
    assert not graph.set_parameters(NODE, use_sim_time="yes", seed=3).successful  # the clock refuses; the seed must not change either
    assert node.parameters.config.seed == 0
    assert graph.set_parameters(NODE, use_sim_time=True).successful
    assert (node.parameters.config.seed, node.applied) == (0, [])
