# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A depth node whose model takes the LiDAR, and an evaluator that scores what it was not given."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import String

from test.ros.conftest import POSE, FakePredictor, red
from uncertainty_depth.config import HeldOutConfig, ProjectionConfig
from uncertainty_depth.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.frames.transforms import FixedExtrinsics
from uncertainty_depth.ros.live_scores import LiveFrame, LiveScores
from uncertainty_depth.ros.sigma_messages import held_out_rule
from uncertainty_depth.sparse_depth import SparseInput

WIDTH = 32
HEIGHT = 24
BEHIND = [0.0, 0.0, -9.0, 0.0, 0.0, 0.0, 1.0]
MS = 1_000_000


class CompletingPredictor(FakePredictor):
    """Depth is what the image says, and the LiDAR's where there is any."""

    sparse_input = SparseInput(0)

    def describe(self):
        return {"method": self.method, "sparse_input": "lidar"}


@pytest.fixture
def start(start_depth):
    return partial(start_depth, predictor=CompletingPredictor, lidar_to_camera=POSE)


def health(node):
    """Return the counts of the node's only camera."""
    (camera,) = node.cameras
    return camera.health


def decoded(message):
    values = np.frombuffer(message.data, np.float32)
    return values.reshape(message.height, message.width)


@pytest.mark.parametrize("others", [[], BEHIND], ids=["one LiDAR", "the first of two"])
def test_the_newest_cloud_reaches_the_model_and_without_one_the_image_does_alone(
    graph, start, make, others
):
    node = start(lidar_to_camera=[*POSE, *others])
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    clouds = graph.publisher(PointCloud2, "lidar/points")
    infos = graph.publisher(CameraInfo, "camera_info")
    infos.publish(make.camera_info(1, WIDTH, HEIGHT))
    graph.until(lambda: node.cameras[0].info.info is not None, "camera info in the node")
    picture = red(9, WIDTH, HEIGHT)

    images.publish(make.image(1000 * MS, picture))
    assert (decoded(depths.wait(1)[0]) == 9).all()
    assert health(node).counts()["image_alone.no_cloud"] == 1

    clouds.publish(make.cloud(make.points_on_plane(), 1050 * MS))
    graph.until(lambda: health(node).counts().get("received.lidar/points"), "a cloud in the node")
    images.publish(make.image(1100 * MS, picture))
    given = decoded(depths.wait(2)[1])
    assert 50 < (given == 4).sum() <= 400
    assert (given == 9).any()

    images.publish(make.image(1300 * MS, picture))
    assert (decoded(depths.wait(3)[2]) == 9).all()
    assert health(node).counts()["image_alone.cloud_too_old"] == 1
    assert health(node).counts()["processed"] == 3


def test_what_is_held_out_is_not_given_and_the_evaluator_is_told(graph, start, make):
    node = start(held_out_fraction=0.5)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    description = json.loads(graph.inbox(String, "depth/model", latched).wait()[0].data)
    rule = held_out_rule(description)
    assert rule == HeldOutConfig(0.5)

    depths = graph.inbox(Image, "depth/image_rect")
    graph.publisher(CameraInfo, "camera_info").publish(make.camera_info(1, WIDTH, HEIGHT))
    graph.until(lambda: node.cameras[0].info.info is not None, "camera info in the node")
    cloud = make.cloud(make.points_on_plane(), 1100 * MS)
    graph.publisher(PointCloud2, "lidar/points").publish(cloud)
    graph.until(lambda: health(node).counts().get("received.lidar/points"), "a cloud in the node")
    graph.publisher(Image, "image").publish(make.image(1100 * MS, red(9, WIDTH, HEIGHT)))
    given = decoded(depths.wait(1)[0]) == 4

    extrinsics = FixedExtrinsics(ProjectionConfig(lidar_to_camera=tuple(POSE)))
    live = LiveScores(EvaluatorNodeConfig(), extrinsics)
    live.held_out = rule
    messages = {
        "depth/camera_info": make.camera_info(0, WIDTH, HEIGHT),
        "depth/image_rect": make.image(1100 * MS, np.full((HEIGHT, WIDTH), 5, np.float32)),
        "uncertainty/image_rect": make.image(1100 * MS, np.full((HEIGHT, WIDTH), 1, np.float32)),
        "lidar/points": cloud,
    }
    for topic, message in messages.items():
        results = list(live.add(topic, message))
    assert isinstance(results[0], LiveFrame)
    is_scored = np.isfinite(results[0].ground_truth_m)
    assert given.any()
    assert is_scored.any()
    assert not (given & is_scored).any()
    changed = graph.set_parameters("/depth_node", held_out_fraction=0.0)
    assert not changed.successful


def test_a_lidar_that_cannot_be_used_leaves_the_image_alone_for_a_counted_reason(
    graph, start, make
):
    node = start()
    log = graph.inbox(Log, "/rosout", 50)
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    clouds = graph.publisher(PointCloud2, "lidar/points")
    graph.publisher(CameraInfo, "camera_info").publish(make.camera_info(1, WIDTH, HEIGHT))
    graph.until(lambda: node.cameras[0].info.info is not None, "camera info in the node")
    points = make.points_on_plane()
    counts = health(node).counts
    for number, (stamp, cloud, reason) in enumerate(
        (
            (1000, make.cloud(points * 1000, 1000 * MS), "sparse_depth_wrong_unit"),
            (1200, make.cloud(points, 1000 * MS), "cloud_too_old"),
            (1000, make.cloud(points, 1200 * MS), "cloud_too_old"),
            (1000, make.cloud(points * [1, 1, -1], 1000 * MS), "no_lidar_point_in_view"),
            (1000, make.cloud(points[:0], 1000 * MS), "no_lidar_point_in_view"),
        ),
        start=1,
    ):
        clouds.publish(cloud)
        graph.until(
            lambda number=number: counts().get("received.lidar/points") == number, "the cloud"
        )
        before = counts().get(f"image_alone.{reason}", 0)
        images.publish(make.image(stamp * MS, red(9, WIDTH, HEIGHT)))
        assert (decoded(depths.wait(number)[-1]) == 9).all()
        assert counts()[f"image_alone.{reason}"] == before + 1
    assert log.wait_for(lambda line: "median of 4000" in line.msg and "metres" in line.msg)


def test_the_description_says_what_is_held_out():
    assert held_out_rule({"method": "mc_dropout"}) is None
    assert held_out_rule({"sparse_input": "lidar"}) == HeldOutConfig(0.0)
    both = {"sparse_input": "lidar", "held_out_fraction": 0.2}
    assert held_out_rule(both) == HeldOutConfig(0.2)
    with pytest.raises(MessageError, match="held_out_fraction is 'moon'"):
        held_out_rule({"sparse_input": "lidar", "held_out_fraction": "moon"})
