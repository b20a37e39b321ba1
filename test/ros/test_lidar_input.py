# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A depth node whose model takes the LiDAR, and an evaluator that scores what it was not given."""

import json

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from test.ros.conftest import MS, POSE, FakePredictor, frame_messages
from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import ProjectionConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.transforms import FixedExtrinsics
from uncertainty_depth.ros.live_scores import LiveScores
from uncertainty_depth.sigma.sparse_depth import SparseInput
from uncertainty_depth.stream.held_out import HeldOutRule, held_out_rule

BEHIND = (0.0, 0.0, -9.0, 0.0, 0.0, 0.0, 1.0)


class CompletingPredictor(FakePredictor):
    """Depth is what the image says, and the LiDAR's where there is any."""

    sparse_input = SparseInput(0)

    def describe(self):
        return {"method": self.method, "sparse_input": "lidar"}


@pytest.fixture
def start(start_beside):
    options = {"predictor": CompletingPredictor, "lidar_to_camera": POSE}
    return lambda **parameters: start_beside("lidar/points", **(options | parameters))


@pytest.mark.parametrize("others", [(), BEHIND], ids=["one LiDAR", "the first of two"])
def test_the_newest_cloud_reaches_the_model_and_without_one_the_image_does_alone(
    start, make, others
):
    node = start(lidar_to_camera=POSE + others)
    assert (node.predict(1000) == 9).all()
    assert node.counts()["image_alone.no_cloud"] == 1
    given = node.predict(1100, make.cloud(make.points_on_plane(), 1050 * MS))
    assert 50 < (given == 4).sum() <= 400
    assert (given == 9).any()
    assert (node.predict(1300) == 9).all()
    assert node.counts()["image_alone.cloud_too_old"] == 1
    assert node.counts()["processed"] == 3


def test_a_late_image_has_the_cloud_of_its_own_time_and_not_the_newest(start, make):
    node = start()
    points = make.points_on_plane()
    node.predict(900, make.cloud(points, 1000 * MS))
    given = node.predict(1000, make.cloud(points * 2, 1300 * MS))
    assert (given == 4).any()
    assert not (given == 8).any()


def test_what_is_held_out_is_not_given_and_the_evaluator_is_told(graph, start, robot, make):
    node = start(held_out_fraction=0.5)
    description = json.loads(robot.heard("depth/model").wait()[0].data)
    live = LiveScores(EvaluatorNodeConfig(), FixedExtrinsics(ProjectionConfig(POSE)))
    live.held_out = held_out_rule(description)
    assert live.held_out == HeldOutRule(HeldOutConfig(0.5), 0)
    given = node.predict(1100, make.cloud(make.points_on_plane(), 1100 * MS)) == 4
    messages = frame_messages(1100 * MS, make.points_on_plane())
    ((frame,),) = filter(None, [list(live.add(*item)) for item in messages.items()])
    is_scored = np.isfinite(frame.ground_truth_m)
    assert given.any()
    assert is_scored.any()
    assert not (given & is_scored).any()
    assert not graph.set_parameters("/depth_node", held_out_fraction=0.0).successful


def test_a_lidar_that_cannot_be_used_leaves_the_image_alone_for_a_counted_reason(
    start, robot, make
):
    node = start()
    log = robot.heard("/rosout")
    points = make.points_on_plane()
    for stamp, cloud_stamp, cloud, reason in (
        (1000, 1000, points * 1000, "sparse_depth_wrong_unit"),
        (1200, 1000, points, "cloud_too_old"),
        (800, 1000, points, "cloud_too_old"),
        (1000, 1000, points * [1, 1, -1], "no_lidar_point_in_view"),
        (1000, 1000, points[:0], "cloud_without_points"),
        (0, 0, points, "unusable_stamp"),
    ):
        before = node.counts().get(f"image_alone.{reason}", 0)
        depth = node.predict(stamp, make.cloud(cloud, cloud_stamp * MS))
        assert (depth == 9).all()
        assert node.counts()[f"image_alone.{reason}"] == before + 1
    assert log.wait_for(lambda line: "median of 4000" in line.msg and "metres" in line.msg)


def test_the_description_says_what_is_held_out():
    assert held_out_rule({"method": "mc_dropout"}) is None
    assert held_out_rule({"sparse_input": "lidar"}) == HeldOutRule(HeldOutConfig(0.0), 0)
    assert held_out_rule({"measurements": "motion"}) is None
    both = {"sparse_input": "lidar", "held_out_fraction": 0.2}
    assert held_out_rule(both) == HeldOutRule(HeldOutConfig(0.2), 0)
    for measurements in ("lidar", "random:5", "motion,lidar"):
        measured = {"measurements": measurements, "held_out_fraction": 0.2}
        assert held_out_rule(measured) == HeldOutRule(HeldOutConfig(0.2), 1)
    with pytest.raises(MessageError, match="measurements is 'moon'"):
        held_out_rule({"measurements": "moon"})
    with pytest.raises(MessageError, match="held_out_fraction is 'moon'"):
        held_out_rule({"sparse_input": "lidar", "held_out_fraction": "moon"})
