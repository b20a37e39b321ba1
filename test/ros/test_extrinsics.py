# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Extrinsics from the parameter, or from tf2: a stand-in here, since no wheel has it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from uncertainty_depth.config import ProjectionConfig, SourceConfig
from uncertainty_depth.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.frames.ground_truth import LidarGroundTruth, Viewpoint
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.messages.stamps import SECOND_NS
from uncertainty_depth.ros.extrinsics import create_extrinsics

POSE = (0.1, -0.2, 0.3, 0.0, 0.0, 0.6, 0.8)


class TransformException(Exception):
    pass


def drive():
    """Return what tf knows of a base that drives at 15 m/s along x, with 7 Hz odometry."""
    tree = TransformTree()
    tree.add("base", "camera", transform_from(0, 0, 0, -0.5, 0.5, -0.5, 0.5))
    tree.add("base", "lidar", transform_from(0.5, 0, 0.2, 0, 0, 0, 1))
    for time_ns in range(SECOND_NS, 3 * SECOND_NS, SECOND_NS // 7):
        seconds = time_ns / SECOND_NS
        pose = transform_from(15 * seconds, 0, 0, 0, 0, 0.1 * seconds, 1)
        tree.add_moving(time_ns, "odom", "base", pose)
    return tree


DRIVE = drive()


def stamped(parameters):
    x, y, z, qx, qy, qz, qw = parameters
    transform = SimpleNamespace(
        translation=SimpleNamespace(x=x, y=y, z=z),
        rotation=SimpleNamespace(x=qx, y=qy, z=qz, w=qw),
    )
    return SimpleNamespace(transform=transform)


class Buffer:
    """A tf2 buffer that knows one transform and records what it was asked."""

    asked = None

    def __init__(self, node):
        self.node = node  # clears it when /clock jumps back

    def lookup_transform(self, target, source, time, timeout):
        Buffer.asked = (target, source, time.nanoseconds, timeout.nanoseconds)
        if source != "lidar":
            raise TransformException(f"no frame {source}")
        return stamped(POSE)

    def lookup_transform_full(
        self, target, target_time, source, source_time, fixed_frame, timeout
    ):
        times = (target_time.nanoseconds, source_time.nanoseconds)
        Buffer.asked = (target, source, *times, fixed_frame, timeout.nanoseconds)
        target_ns, source_ns = times
        try:
            pose = DRIVE.lookup_through(fixed_frame, target, target_ns, source, source_ns)
        except SourceError as error:
            raise TransformException(str(error)) from error
        return stamped(parameters_from(pose))


class TransformListener:
    """tf2's: the node keeps its subscriptions until it is told to let go."""

    def __init__(self, buffer, node):
        self.buffer = buffer
        self.node = node
        node.append(buffer)

    def unregister(self):
        self.node.remove(self.buffer)


def options(lidar_to_camera=(), fixed_frame=""):
    return ProjectionConfig(lidar_to_camera, fixed_frame)


@pytest.fixture
def tf2(monkeypatch):
    module = ModuleType("tf2_ros")
    module.TransformException = TransformException
    module.Buffer = Buffer
    module.TransformListener = TransformListener
    monkeypatch.setitem(sys.modules, "tf2_ros", module)


def test_parameter_wins_over_tf(tf2):
    np.testing.assert_array_equal(
        create_extrinsics([], options(POSE), False).lookup(None, None), transform_from(*POSE)
    )


@pytest.mark.parametrize("bad", [(1.0,), 1.0, (0.0,) * 7, (float("nan"), *POSE[1:])])
def test_bad_parameter_is_one_sentence(bad):
    with pytest.raises(ConfigError, match="x y z qx qy qz qw"):
        create_extrinsics([], options(bad), False)


def test_without_tf2_the_parameter_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(ConfigError, match="lidar_to_camera is empty and tf2_ros is not installed"):
        create_extrinsics([], options(), False)


def test_ground_truth_images_need_no_extrinsics(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(MessageError):
        create_extrinsics([], options(), True).lookup(None, None)


def test_tf_is_asked_at_the_clouds_stamp(tf2, make):
    node = []
    extrinsics = create_extrinsics(node, options(), False)
    assert isinstance(node[0], Buffer)
    found = extrinsics.lookup(make.header(5, "camera"), make.header(5_000_000_007, "lidar"))
    np.testing.assert_allclose(found, transform_from(*POSE))
    assert Buffer.asked[:3] == ("camera", "lidar", 5_000_000_007)
    assert Buffer.asked[3] > 0


def test_with_a_fixed_frame_tf_is_asked_at_both_stamps_and_the_answer_is_the_bags(tf2, make):
    extrinsics = create_extrinsics([], options(fixed_frame="odom"), False)
    image = make.header(2 * SECOND_NS, "camera")
    cloud = make.header(2 * SECOND_NS + SECOND_NS // 20, "lidar")
    found = extrinsics.lookup(image, cloud)
    both_ns = (2 * SECOND_NS, 2 * SECOND_NS + SECOND_NS // 20)
    assert Buffer.asked[:5] == ("camera", "lidar", *both_ns, "odom")
    assert Buffer.asked[5] > 0
    offline = LidarGroundTruth(SourceConfig(fixed_frame="odom"))
    message = SimpleNamespace(header=cloud)
    expected = offline.lidar_to_camera(message, Viewpoint("camera", 2 * SECOND_NS), DRIVE)
    np.testing.assert_array_equal(found.round(12), expected.round(12))
    at_one_time = DRIVE.lookup("camera", "lidar", 2 * SECOND_NS)
    moved_m = np.linalg.norm((found - at_one_time)[:3, 3])
    assert moved_m == pytest.approx(0.75, abs=0.01)


def test_a_time_without_odometry_is_counted_live_as_offline(tf2, make):
    extrinsics = create_extrinsics([], options(fixed_frame="odom"), False)
    image_ns = 2 * SECOND_NS
    cloud = make.header(4 * SECOND_NS, "lidar")
    with pytest.raises(MessageError, match="to 'camera' through 'odom': no transform") as live:
        extrinsics.lookup(make.header(image_ns, "camera"), cloud)
    offline = LidarGroundTruth(SourceConfig(fixed_frame="odom"))
    message = SimpleNamespace(header=cloud)
    with pytest.raises(MessageError) as recorded:
        offline.lidar_to_camera(message, Viewpoint("camera", image_ns), DRIVE)
    assert live.value.reason == recorded.value.reason == "no_ego_motion"


def test_a_pose_without_frames_cannot_be_moved(tf2):
    with pytest.raises(ConfigError, match="fixed_frame is 'odom'; expected one of them"):
        create_extrinsics([], options(POSE, "odom"), False)


def test_a_missing_transform_skips_the_frame(tf2, make):
    extrinsics = create_extrinsics([], options(), False)
    with pytest.raises(MessageError, match="no transform from 'radar' to 'camera'") as caught:
        extrinsics.lookup(make.header(1, "camera"), make.header(1, "radar"))
    assert caught.value.reason == "no_extrinsics"


def test_closing_a_tf_listener_destroys_its_subscriptions(tf2):
    node = []
    for _ in range(3):
        create_extrinsics(node, options(), False).close()
    assert node == []
