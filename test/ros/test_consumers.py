# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The parameter files of consumers name topics that the depth node publishes."""

import re
from pathlib import Path

import pytest
import yaml

from test.ros.conftest import FakeNode

FOLDER = Path(__file__).parents[2] / "config" / "consumers"
FILES = sorted(FOLDER.glob("*.yaml"))
OF_CLOUDS = (
    "nav2_obstacle_layer", "nav2_voxel_layer", "spatio_temporal_voxel_layer", "elevation_mapping",
)  # fmt: skip
TYPES = dict.fromkeys(OF_CLOUDS, "sensor_msgs/msg/PointCloud2")
SCAN_TYPES = {"depth": "sensor_msgs/msg/Image", "depth_camera_info": "sensor_msgs/msg/CameraInfo"}


def mappings(content):
    """Every mapping in the file, the outer ones first."""
    yield content
    for value in content.values():
        if isinstance(value, dict):
            yield from mappings(value)


def named_topics(path):
    """The topics with their types, of the parameters and of the remaps in the comments."""
    text = path.read_text()
    found = {
        part["topic"]: TYPES[path.stem]
        for part in mappings(yaml.safe_load(text))
        if "topic" in part
    }
    for consumed, topic in re.findall(r"-r (\S+):=(\S+)", text):
        found[f"/{topic}"] = SCAN_TYPES[consumed]
    return found


def test_there_is_a_file_for_each_consumer():
    assert {path.stem for path in FILES} == {*TYPES, "depthimage_to_laserscan"}


def test_every_topic_is_published_with_the_type_that_is_read():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from uncertainty_depth.ros.messages import type_name
    from uncertainty_depth.ros.outputs import DerivedOutputs

    node = FakeNode()
    DerivedOutputs(node)
    published = {f"/{topic}": message_type for topic, message_type in node.types.items()}
    for path in FILES:
        topics = named_topics(path)
        assert topics, path
        for topic, message_type in topics.items():
            assert type_name(published[topic]) == message_type, f"{path.name}: {topic}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_points_mark_and_clearing_points_clear(path):
    """A layer marks with one source, clears with the other, and uses each that it lists."""
    for layer in mappings(yaml.safe_load(path.read_text())):
        for name in layer.get("observation_sources", "").split():
            source = layer[name]
            expected = "/points" if source["marking"] else "/points/clearing"
            assert source["topic"] == expected
            assert source["clearing"] is not source["marking"]


def test_elevation_mappings_model_is_the_one_that_confidence_ratio_is_made_for():
    content = yaml.safe_load((FOLDER / "elevation_mapping.yaml").read_text())
    model = content["input_sources"].popitem()[1]["sensor_processor"]
    assert [model[f"normal_factor_{letter}"] for letter in "abcde"] == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert model["lateral_factor"] > 0
