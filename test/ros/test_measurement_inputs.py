# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What measures beside a node's images: a LiDAR, another camera's depth, a map, motion."""

import json

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from test.ros import tf2_stand_in
from test.ros.conftest import (
    HEIGHT,
    MS,
    POSE,
    WIDTH,
    FakePredictor,
    frame_messages,
    red,
)
from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import ProjectionConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.transforms import transform_from
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.messages.images import decode_depth
from uncertainty_depth.frames.published import PREDICTION, measured_in, status_values
from uncertainty_depth.frames.transforms import FixedExtrinsics, TransformTree
from uncertainty_depth.ros import live_camera
from uncertainty_depth.ros.live_scores import LiveScores
from uncertainty_depth.ros.sigma_node import SigmaNode
from uncertainty_depth.stream.held_out import held_out_rule
from uncertainty_depth.stream.motion import Motion

LIDAR, DEPTH = "lidar/points", "measured/depth"
BEHIND = (0.0, 0.0, -9.0, 0.0, 0.0, 0.0, 1.0)
WALL_AT_4_M = np.full((HEIGHT, WIDTH), 4.0, np.float32)


def measured():
    """What corrected the newest prediction."""
    return FakePredictor.newest.measured[-1]


@pytest.fixture
def with_lidar(start_beside):
    """Start a depth node that the LiDAR corrects."""
    options = {"measurements": "lidar", "lidar_to_camera": POSE}
    return lambda **parameters: start_beside(**(options | parameters))


@pytest.mark.parametrize("others", [(), BEHIND], ids=["one LiDAR", "the first of two"])
def test_the_cloud_of_an_images_time_reaches_the_network_or_the_image_is_alone(
    with_lidar, make, others
):
    node = with_lidar(lidar_to_camera=POSE + others)
    points = make.points_on_plane()
    assert (node.predict(900) == 9).all()
    assert node.counts()["image_alone.no_cloud"] == 1
    given = node.predict(1000, LIDAR, make.cloud(points, 1000 * MS))
    assert 50 < (given == 4).sum() <= 400
    assert (given == 9).any()
    late = node.predict(1000, LIDAR, make.cloud(2 * points, 1300 * MS))
    assert_array_equal(late, given, "the newest cloud is of another time")
    assert node.counts()["processed"] == 3


def test_what_is_held_out_is_not_given_and_the_evaluator_is_told(graph, with_lidar, robot, make):
    node = with_lidar(held_out_fraction=0.5)
    description = json.loads(robot.heard("depth/model").wait()[0].data)
    live = LiveScores(EvaluatorNodeConfig(), FixedExtrinsics(ProjectionConfig(POSE)))
    live.held_out = held_out_rule(description)
    assert live.held_out == HeldOutConfig(0.5)
    given = node.predict(1100, LIDAR, make.cloud(make.points_on_plane(), 1100 * MS)) == 4
    messages = frame_messages(1100 * MS, make.points_on_plane())
    ((frame,),) = filter(None, [list(live.add(*item)) for item in messages.items()])
    is_scored = np.isfinite(frame.ground_truth_m)
    assert given.any()
    assert is_scored.any()
    assert not (given & is_scored).any()
    graph.refuses("/depth_node", "held_out_fraction is fixed", held_out_fraction=0.0)


def test_what_cannot_measure_leaves_the_image_alone_for_a_counted_reason(with_lidar, robot, make):
    node = with_lidar(measurements="lidar,depth")
    log = robot.heard("/rosout")
    points = make.points_on_plane()
    for stamp, topic, message, reason in (
        (1000, LIDAR, make.cloud(points * 1000, 1000 * MS), "sparse_depth_wrong_unit"),
        (1200, LIDAR, make.cloud(points, 1000 * MS), "cloud_too_old"),
        (800, LIDAR, make.cloud(points, 1000 * MS), "cloud_too_old"),
        (1000, LIDAR, make.cloud(points * [1, 1, -1], 1000 * MS), "no_lidar_point_in_view"),
        (1000, LIDAR, make.cloud(points[:0], 1000 * MS), "cloud_without_points"),
        (0, LIDAR, make.cloud(points, 0), "unusable_stamp"),
        (2000, DEPTH, make.image(2000 * MS, 1000 * WALL_AT_4_M), "sparse_depth_wrong_unit"),
        (3000, DEPTH, make.image(3000 * MS, WALL_AT_4_M[:, :5]), "ground_truth_wrong_aspect"),
        (4000, DEPTH, make.image(3500 * MS, WALL_AT_4_M), "measured_at_another_time"),
    ):
        name = f"image_alone.{reason}"
        before = node.counts().get(name, 0)
        assert (node.predict(stamp, topic, message) == 9).all()
        assert node.counts()[name] == before + 1
        assert measured() is None
    assert node.counts()["image_alone.nothing_measured"] == 6, "no depth had come with the clouds"
    assert log.wait_for(lambda line: "median of 4000" in line.msg and "metres" in line.msg)


def test_without_camera_info_a_cloud_measures_nothing_and_a_depth_image_does(with_lidar, make):
    node = with_lidar(info=False, measurements="lidar,depth")
    cloud = make.cloud(make.points_on_plane(), 1000 * MS)
    assert (node.predict(1000, LIDAR, cloud) == 9).all()
    assert node.counts()["image_alone.no_camera_info"] == 1
    node.predict(2000, DEPTH, make.image(2000 * MS, WALL_AT_4_M))
    assert_array_equal(measured().depth_m, 4)


@pytest.mark.parametrize(
    ("frame_id", "fixed_frame", "depth_m"), [("map", "", 3.7), ("camera", "map", 3.95)]
)
def test_points_are_placed_where_the_camera_sees_them_at_the_images_stamp(
    start_beside, make, monkeypatch, frame_id, fixed_frame, depth_m
):
    """The camera drives at 1 m/s in a map that stands still, 0.05 s from points to image."""
    tree = TransformTree()
    for stamp in (1000, 1900):
        pose = transform_from(0, 0, (stamp - 1000) / 1000, 0, 0, 0, 1)
        tree.add_moving(stamp * MS, "map", "camera", pose)
    tf2_stand_in.install(monkeypatch, tree)
    node = start_beside(measurements="points", fixed_frame=fixed_frame)
    points = make.cloud(make.points_on_plane(), 1250 * MS, frame_id=frame_id)  # 4 m ahead
    node.predict(1300, "measured/points", points)
    assert len(measured()) > 50
    assert_allclose(measured().depth_m, depth_m, rtol=1e-6)


def test_an_image_waits_for_its_own_depth_image(start_beside, make, robot, monkeypatch):
    """A stereo camera's comes after the image; the one before is of another place."""
    monkeypatch.setattr(live_camera, "OWN_MESSAGE_TIMEOUT_S", 30.0)
    node = start_beside(measurements="depth")
    node.predict(1000, DEPTH, make.image(1000 * MS, WALL_AT_4_M / 2))
    assert_array_equal(measured().depth_m, 2)
    depths = robot.heard("depth/image_rect")
    robot.image(1100, red(9))
    robot.graph.until(lambda: node.counts()["received"] == 2, "the image")
    robot.send(DEPTH, make.image(1100 * MS, WALL_AT_4_M))
    depths.wait(2)
    assert_array_equal(measured().depth_m, 4)


def test_images_wait_no_more_once_no_depth_comes_with_them(start_beside):
    node = start_beside(measurements="depth")
    for stamp in range(1000, 1800, 100):
        node.predict(stamp)
    assert node.counts()["without_own_measurement"] == 3


def test_a_followed_scale_beside_measurements_is_refused_while_the_node_runs(start_beside, graph):
    start_beside(measurements="depth")
    graph.refuses("/depth_node", "which correct the scale too", use_depth_scale=True)


def test_random_pixels_of_the_ground_truth_are_not_for_a_robot(graph, start_depth):
    sentence = "are for `uncertainty-depth evaluate`"
    with pytest.raises(ConfigError, match=sentence):
        start_depth(measurements="random:64")
    node = graph.start(
        SigmaNode, confidence_type="sigma", measurements="random:64", autostart=False
    )
    node.trigger_configure()
    assert sentence in node.inactive_status()[1]


WALL_M = 2.0
FOCAL = 200.0
MOVING = {"width": 160, "height": 120, "focal": FOCAL}
STEP_PX = 4
STEP_M = STEP_PX * WALL_M / FOCAL
IMAGES = 8


def textured_wall():
    noise = np.random.default_rng(0).integers(0, 255, (120, 400, 3), np.uint8)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, cv2.NORM_MINMAX)


WALL = textured_wall()


def image_at(index):
    """The wall, past which the camera moves sideways."""
    left = STEP_PX * index
    return np.ascontiguousarray(WALL[:, left : left + 160])


def pose_at(index, step_m=STEP_M):
    return transform_from(step_m * index, 0, 0, 0, 0, 0, 1)


def stamp_ms(index):
    return 1000 + 100 * index


def odometry(step_m=STEP_M):
    tree = TransformTree()
    for index in range(IMAGES):
        tree.add_moving(stamp_ms(index) * MS, "odom", "camera", pose_at(index, step_m))
    return tree


@pytest.fixture
def drive(start_depth, robot, monkeypatch):
    """Start a depth node, send it images one by one, and return what it measured and counted."""

    def send(tree, images=IMAGES, is_moving=True, is_known=lambda index: True):
        tf2_stand_in.install(monkeypatch, tree)
        node = start_depth(measurements="motion")
        told = robot.heard("depth/prediction_info")
        robot.info(**MOVING)
        robot.informed()
        for index in range(images):
            tf2_stand_in.Buffer.tree = tree if is_known(index) else TransformTree()
            robot.image(stamp_ms(index), image_at(index if is_moving else 0))
            told.wait(index + 1)
        robot.graph.until(lambda: node.health.counts().get("processed") == images, "the last")
        pixels = [measured_in(status_values(it.status, PREDICTION)) for it in told.messages]
        return FakePredictor.newest.measured, pixels, node.health.counts()

    return send


def test_motion_measures_live_what_evaluate_does(drive):
    live, pixels, _ = drive(odometry())
    camera = Camera(160, 120, np.array([[FOCAL, 0, 80], [0, FOCAL, 60], [0, 0, 1]]))
    motion = Motion()
    for index in range(IMAGES):
        frame = Frame(stamp_ms(index) * MS, "", camera, image_at(index), pose=pose_at(index))
        expected = motion.measure(frame)
        assert (live[index] is None) == (len(expected) == 0)
        if live[index] is not None:
            assert_array_equal(live[index].rows, expected.rows)
            assert_array_equal(live[index].columns, expected.columns)
            assert_allclose(live[index].depth_m, expected.depth_m, rtol=1e-9)
            assert pixels[index] == tuple(expected.rows * 160 + expected.columns)
    assert len(live[-1]) > 50
    assert np.median(live[-1].depth_m) == pytest.approx(WALL_M, rel=0.02)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [(TransformTree(), "no_odometry"), (odometry(-STEP_M), "motion_rejected")],
    ids=["no tf", "the wrong way"],
)
def test_where_motion_measures_nothing_the_image_does_alone_for_a_counted_reason(
    drive, tree, reason
):
    live, pixels, counts = drive(tree, images=5)
    assert live == [None] * 5
    assert pixels == [()] * 5
    assert counts["processed"] == 5
    assert counts[f"image_alone.{reason}"] >= 3


def test_a_camera_that_stands_still_has_the_networks_own_depth_and_that_is_no_fault(drive, robot):
    log = robot.heard("/rosout")
    live, _, counts = drive(odometry(0.0), images=4, is_moving=False)
    assert live == [None] * 4
    assert counts["image_alone.no_parallax"] == 4
    assert not any("image alone" in line.msg for line in log.messages)


def test_an_image_without_odometry_starts_the_tracking_anew(drive):
    live, _, counts = drive(odometry(), is_known=lambda index: index != 3)
    is_alone = [it is None for it in live]
    assert is_alone == [True, False, False, True, True, False, False, False]
    assert counts["image_alone.no_odometry"] == 1


def test_motion_measures_in_the_images_that_another_networks_depth_is_made_of(
    graph, robot, make, monkeypatch
):
    """The network behind which the sigma node stands has the wall at 3 m."""
    tf2_stand_in.install(monkeypatch, odometry())
    node = graph.start(SigmaNode, confidence_type="sigma", measurements="motion")
    depths = robot.heard("depth/corrected/image_rect")
    infos = robot.heard("depth/prediction_info")
    received = node.health.counts
    robot.info(900, "depth/camera_info", **MOVING)

    def predict(index, image):
        stamp = stamp_ms(index)
        if image is not None:
            before = received().get("received.image", 0)
            robot.image(stamp, image)
            robot.graph.until(lambda: received().get("received.image", 0) > before, "the image")
        for metres, topic in ((1, "confidence/image"), (3, "depth/image_rect")):
            robot.send(topic, make.image(stamp * MS, np.full((120, 160), metres, "f4")))
        return decode_depth(depths.wait(index + 1)[-1])

    for index in range(6):
        corrected = predict(index, image_at(index))
    assert np.median(corrected) == pytest.approx(WALL_M, rel=0.05)
    assert len(measured_in(status_values(infos.wait(6)[-1].status, PREDICTION))) > 50
    assert_array_equal(predict(6, None), 3)
    assert_array_equal(predict(7, red()), 3)
    assert received()["image_alone.no_image"] == 1
    assert received()["image_alone.image_wrong_size"] == 1
    assert received()["processed"] == 8
