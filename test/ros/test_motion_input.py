# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A depth node that measures by the camera's own motion, and an evaluator that is told where."""

from types import SimpleNamespace

import cv2
import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from numpy.testing import assert_allclose, assert_array_equal

from test.ros import tf2_stand_in
from test.ros.conftest import MS, FakePredictor
from test.ros.tf2_stand_in import Buffer
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.published import PREDICTION, status_values
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.ros.messages import read_info
from uncertainty_depth.sigma.sparse_depth import MeasurementSources
from uncertainty_depth.stream.motion import Motion

WIDTH, HEIGHT, F, WALL_M = 160, 120, 200.0, 2.0
IMAGES = 8
PERIOD_MS = 100
STEP_PX = 4


def wall():
    noise = np.random.default_rng(0).integers(0, 255, (HEIGHT, 400, 3), np.uint8)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, cv2.NORM_MINMAX)


WALL = wall()


def image_at(index):
    """The wall, past which the camera moves sideways."""
    left = STEP_PX * index
    return np.ascontiguousarray(WALL[:, left : left + WIDTH])


def pose_at(index, metres_per_image=STEP_PX * WALL_M / F):
    pose = np.eye(4)
    pose[0, 3] = metres_per_image * index
    return pose


def stamp_ms(index):
    return 1000 + PERIOD_MS * index


def odometry(metres_per_image=STEP_PX * WALL_M / F, last=IMAGES):
    tree = TransformTree()
    for index in range(last):
        tree.add_moving(stamp_ms(index) * MS, "odom", "camera", pose_at(index, metres_per_image))
    return tree


class MovingPredictor(FakePredictor):
    """A network whose depth motion corrects; it keeps what was measured."""

    measurements = MeasurementSources(None, motion=True)

    def __init__(self, config):
        super().__init__(config)
        self.measured = []

    def predict_frame(self, frame, samples=None):
        self.measured.append(frame.measurements)
        return super().predict_frame(frame, samples)


@pytest.fixture
def drive(start_depth, robot):
    """Start a node, send it images one by one, and return what it measured and counted."""

    def send(tree, images=IMAGES, is_moving=True):
        Buffer.tree = tree
        node = start_depth(predictor=MovingPredictor, measurements="motion")
        told = robot.heard("depth/prediction_info")
        robot.info(focal=F, width=WIDTH, height=HEIGHT)
        robot.informed()
        for index in range(images):
            robot.image(stamp_ms(index), image_at(index if is_moving else 0))
            told.wait(index + 1)
        robot.graph.until(lambda: node.health.counts().get("processed") == images, "the last")
        infos = [read_info(status_values(it.status, PREDICTION)) for it in told.messages]
        return SimpleNamespace(
            measured=MovingPredictor.newest.measured, infos=infos, counts=node.health.counts()
        )

    return send


@pytest.fixture(autouse=True)
def tf2(monkeypatch):
    tf2_stand_in.install(monkeypatch, TransformTree())


def test_the_node_measures_what_evaluate_does(drive):
    live = drive(odometry())
    camera = Camera(WIDTH, HEIGHT, np.array([[F, 0, WIDTH / 2], [0, F, HEIGHT / 2], [0, 0, 1]]))
    motion = Motion()
    for index in range(IMAGES):
        frame = Frame(stamp_ms(index) * MS, "", camera, image_at(index), pose=pose_at(index))
        expected = motion.measure(frame)
        measured = live.measured[index]
        assert (measured is None) == (len(expected) == 0)
        if measured is not None:
            assert_array_equal(measured.rows, expected.rows)
            assert_array_equal(measured.columns, expected.columns)
            assert_allclose(measured.depth_m, expected.depth_m, rtol=1e-9)
            pixels = (expected.rows * WIDTH + expected.columns).tolist()
            assert live.infos[index].measured == tuple(pixels)
    assert len(live.measured[-1]) > 50
    assert np.median(live.measured[-1].depth_m) == pytest.approx(WALL_M, rel=0.02)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (TransformTree(), "no_odometry"),
        (odometry(-STEP_PX * WALL_M / F), "motion_rejected"),
    ],
    ids=["no tf", "the wrong way"],
)
def test_where_motion_measures_nothing_the_image_does_alone_for_a_counted_reason(
    drive, tree, reason
):
    live = drive(tree, images=5)
    assert live.measured == [None] * 5
    assert [info.measured for info in live.infos] == [()] * 5
    assert live.counts["processed"] == 5
    assert live.counts[f"image_alone.{reason}"] >= 3


def test_a_camera_that_stands_still_has_the_networks_own_depth_and_that_is_no_fault(drive, robot):
    log = robot.heard("/rosout")
    live = drive(odometry(0.0), images=4, is_moving=False)
    assert live.measured == [None] * 4
    assert live.counts["image_alone.no_parallax"] == 4
    assert not any("image alone" in line.msg for line in log.messages)


def test_an_image_without_odometry_starts_the_tracking_anew(drive):
    live = drive(odometry(last=4), images=6)
    assert [measured is None for measured in live.measured] == [True, False, False, False] + 2 * [
        True
    ]
    assert live.counts["image_alone.no_odometry"] == 2
