"""What a robot starts with: launch files, parameter files, the RViz configuration."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from uncertainty_depth.config import DepthNodeConfig, EvaluatorNodeConfig
from uncertainty_depth.options import from_mapping

ROOT = Path(__file__).parents[2]
KINDS = {"depth": DepthNodeConfig, "evaluator": EvaluatorNodeConfig}


@pytest.mark.parametrize("name", KINDS)
def test_parameter_files_hold_legal_parameters(name):
    ((namespace, content),) = yaml.safe_load(
        (ROOT / "config" / f"{name}.yaml").read_text()
    ).items()
    values = content["ros__parameters"]
    assert namespace == "/**"
    assert values.pop("use_sim_time") is False
    config = from_mapping(KINDS[name], values)
    assert all(getattr(config, key) != getattr(KINDS[name](), key) for key in values), (
        "only what differs from the defaults"
    )


@pytest.fixture
def unknown(graph, capfd):
    """Starts a node on parameters and gives the unknown ones that it warned of; what its config makes of the values does not matter here."""
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node

    from uncertainty_depth.ros.parameters import NodeParameters

    class ConfiguredNode(Node):
        kind = DepthNodeConfig

        def __init__(self, **options):
            super().__init__("configured", **options)
            NodeParameters(self, self.kind, lambda old, new: lambda: None)

        @staticmethod
        def create_executor(context):
            return SingleThreadedExecutor(context=context)

    def start(kind, arguments, **parameters):
        ConfiguredNode.kind = kind
        graph.start(ConfiguredNode, arguments, **parameters)
        return [line for line in capfd.readouterr().err.splitlines() if "has no effect" in line]

    return start


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("commented", [True, False])
def test_parameter_files_name_no_parameter_the_node_lacks(name, commented, request, tmp_path):
    """Neither as they are, nor with the lines that wait behind a # to be taken in."""
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    text = (ROOT / "config" / f"{name}.yaml").read_text()
    file = tmp_path / "parameters.yaml"
    file.write_text(text if commented else re.sub(r"^    # ", "    ", text, flags=re.MULTILINE))
    unknown = request.getfixturevalue("unknown")
    assert unknown(KINDS[name], ["--params-file", str(file)]) == []
    assert len(unknown(KINDS[name], ["--params-file", str(file), "-p", "sampels:=1"])) == 1


@pytest.fixture(scope="module")
def displays():
    content = yaml.safe_load((ROOT / "config" / "uncertainty_depth.rviz").read_text())
    assert content["Visualization Manager"]["Global Options"]["Fixed Frame"] == "camera"
    return {
        each["Topic"]["Value"]: each
        for each in content["Visualization Manager"]["Displays"]
        if "Topic" in each
    }


def test_rviz_shows_what_matters(displays):
    shown = {topic for topic, display in displays.items() if display["Enabled"]}
    assert shown == {
        "image",
        "depth/image_color",
        "uncertainty/image_color",
        "points",
        "evaluator_node/sparsification/image",
    }
    points = displays["points"]
    assert (points["Color Transformer"], points["Channel Name"]) == ("Intensity", "uncertainty")


def test_rviz_topics_are_those_of_the_nodes(displays, request):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    graph, tiny_model = request.getfixturevalue("graph"), request.getfixturevalue("tiny_model")
    from uncertainty_depth.ros.depth_node import DepthNode
    from uncertainty_depth.ros.evaluator_node import EvaluatorNode

    graph.start(DepthNode, model=str(tiny_model))
    graph.start(EvaluatorNode, lidar_to_camera=[0.0] * 6 + [1.0])
    kinds = {
        "rviz_default_plugins/Image": "sensor_msgs/msg/Image",
        "rviz_default_plugins/PointCloud2": "sensor_msgs/msg/PointCloud2",
    }
    expected = {f"/{topic}": [kinds[display["Class"]]] for topic, display in displays.items()}
    graph.until(
        lambda: expected.items() <= dict(graph.node.get_topic_names_and_types()).items(),
        "topics that RViz shows",
    )


@pytest.fixture
def description():
    pytest.importorskip("launch_ros", reason="the launch library is not installed")

    def load(name):
        spec = importlib.util.spec_from_file_location(name, ROOT / "launch" / f"{name}.launch.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.generate_launch_description()

    return load


@pytest.mark.parametrize(
    ("name", "kind", "topics"),
    [
        ("depth", DepthNodeConfig, {"image", "camera_info"}),
        (
            "evaluate",
            EvaluatorNodeConfig,
            {"depth", "uncertainty", "depth_camera_info", "lidar", "ground_truth"},
        ),
    ],
)
def test_every_parameter_is_a_launch_argument(description, name, kind, topics):
    arguments = {each.name for each in description(name).get_launch_arguments()}
    common = {"namespace", "params_file", "use_sim_time", "rviz", "frame", "transports"}
    assert arguments == {item.name for item in dataclasses.fields(kind)} | topics | common


def test_an_empty_argument_leaves_the_parameter_file_alone(description):
    from launch import LaunchContext
    from uncertainty_depth.ros.launching import given_parameters

    context = LaunchContext()
    for argument in description("depth").get_launch_arguments():
        context.launch_configurations[argument.name] = ""
    assert given_parameters(DepthNodeConfig, context) == {}
    context.launch_configurations.update(
        {
            "samples": "4",
            "max_frame_age": "1",
            "reliable_input": "true",
            "model": "007",
            "use_sim_time": "true",
        }
    )
    given = given_parameters(DepthNodeConfig, context)
    assert given.pop("model").evaluate(context) == "007"  # a path, not a number
    assert given == {
        "samples": 4,
        "max_frame_age": 1,
        "reliable_input": True,
        "use_sim_time": True,
    }


def test_the_lidar_pose_may_be_given_with_blanks_or_as_a_list(description):
    from launch import LaunchContext
    from uncertainty_depth.ros.launching import given_parameters

    context = LaunchContext()
    for argument in description("evaluate").get_launch_arguments():
        context.launch_configurations[argument.name] = ""
    for text in ("0.1 0 0 0 0 0 1", "[0.1, 0, 0, 0, 0, 0, 1]"):
        context.launch_configurations["lidar_to_camera"] = text
        assert given_parameters(EvaluatorNodeConfig, context) == {
            "lidar_to_camera": [0.1, 0, 0, 0, 0, 0, 1]
        }


@pytest.mark.parametrize(("launch_file", "name"), [("depth", "depth"), ("evaluate", "evaluator")])
def test_launch_files_give_no_parameter_the_node_lacks(
    description, unknown, monkeypatch, launch_file, name
):
    """With every argument given."""
    from launch.actions import OpaqueFunction
    from launch_ros.utilities import evaluate_parameters, normalize_parameters

    from launch import LaunchContext
    from uncertainty_depth.ros import launching

    monkeypatch.setattr(launching, "Node", lambda **options: SimpleNamespace(**options))
    entities, context, kind = description(launch_file).entities, LaunchContext(), KINDS[name]
    context.launch_configurations.update(
        {item.name: given(item) for item in dataclasses.fields(kind)}
    )
    context.launch_configurations.update(
        params_file=str(ROOT / "config" / f"{name}.yaml"), use_sim_time="false"
    )
    (start,) = (
        each for each in entities[-1].get_sub_entities() if isinstance(each, OpaqueFunction)
    )
    (node,) = start.execute(context)
    file, parameters = evaluate_parameters(context, normalize_parameters(node.parameters))
    assert parameters.keys() == {item.name for item in dataclasses.fields(kind)} | {"use_sim_time"}
    assert unknown(kind, ["--params-file", str(file)], **parameters) == []


def given(item):
    """A launch argument that sets this field."""
    if item.metadata["choices"]:
        return item.metadata["choices"][-1]
    return {"": "somewhere", (): "0 0 0 0 0 0 1"}.get(item.default, str(item.default))
