# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Extrinsics from the parameter, or from tf2: a stand-in here, since no wheel has it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.geometry.transforms import transform_from
from uncertainty_depth.ros.extrinsics import create_extrinsics

POSE = (0.1, -0.2, 0.3, 0.0, 0.0, 0.6, 0.8)


class TransformException(Exception):
    pass


class Buffer:
    """A tf2 buffer that knows one transform and records what it was asked."""

    asked = None

    def __init__(self, node):
        self.node = node  # clears it when /clock jumps back

    def lookup_transform(self, target, source, time, timeout):
        Buffer.asked = (target, source, time.nanoseconds, timeout.nanoseconds)
        if source != "lidar":
            raise TransformException(f"no frame {source}")
        x, y, z, qx, qy, qz, qw = POSE
        transform = SimpleNamespace(
            translation=SimpleNamespace(x=x, y=y, z=z),
            rotation=SimpleNamespace(x=qx, y=qy, z=qz, w=qw),
        )
        return SimpleNamespace(transform=transform)


class TransformListener:
    """tf2's: the node keeps its subscriptions until it is told to let go."""

    def __init__(self, buffer, node):
        self.buffer = buffer
        self.node = node
        node.append(buffer)

    def unregister(self):
        self.node.remove(self.buffer)


@pytest.fixture
def tf2(monkeypatch):
    module = ModuleType("tf2_ros")
    module.TransformException = TransformException
    module.Buffer = Buffer
    module.TransformListener = TransformListener
    monkeypatch.setitem(sys.modules, "tf2_ros", module)


def test_parameter_wins_over_tf(tf2):
    np.testing.assert_array_equal(
        create_extrinsics([], POSE, False).lookup("a", "b", None), transform_from(*POSE)
    )


@pytest.mark.parametrize("bad", [(1.0,), 1.0, (0.0,) * 7, (float("nan"), *POSE[1:])])
def test_bad_parameter_is_one_sentence(bad):
    with pytest.raises(ConfigError, match="x y z qx qy qz qw"):
        create_extrinsics([], bad, False)


def test_without_tf2_the_parameter_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(ConfigError, match="lidar_to_camera is empty and tf2_ros is not installed"):
        create_extrinsics([], (), False)


def test_ground_truth_images_need_no_extrinsics(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(MessageError):
        create_extrinsics([], (), True).lookup("camera", "lidar", None)


def test_tf_is_asked_at_the_clouds_stamp(tf2, make):
    node = []
    extrinsics = create_extrinsics(node, (), False)
    assert isinstance(node[0], Buffer)
    found = extrinsics.lookup("camera", "lidar", make.header(5_000_000_007).stamp)
    np.testing.assert_allclose(found, transform_from(*POSE))
    assert Buffer.asked[:3] == ("camera", "lidar", 5_000_000_007)
    assert Buffer.asked[3] > 0


def test_a_missing_transform_skips_the_frame(tf2, make):
    extrinsics = create_extrinsics([], (), False)
    with pytest.raises(MessageError, match="no transform from 'radar' to 'camera'") as caught:
        extrinsics.lookup("camera", "radar", make.header(1).stamp)
    assert caught.value.reason == "no_extrinsics"


def test_a_listener_that_is_closed_leaves_nothing_with_the_node(tf2):
    node = []
    for _ in range(3):
        create_extrinsics(node, (), False).close()
    assert node == []
