# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A depth node that another topic corrects: a stereo camera's depth, a map's points."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from numpy.testing import assert_allclose, assert_array_equal

from test.ros import tf2_stand_in
from test.ros.conftest import HEIGHT, MS, WIDTH, FakePredictor, red
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.geometry.transforms import transform_from
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.ros import live_camera
from uncertainty_depth.sigma.sparse_depth import MeasurementSources


class CorrectedPredictor(FakePredictor):
    """Keeps what was measured."""

    def __init__(self, config):
        super().__init__(config)
        self.measurements = MeasurementSources(topics=(config.measurements,))
        self.measured = []

    def predict_frame(self, frame, samples=None):
        self.measured.append(frame.measurements)
        return super().predict_frame(frame, samples)


@pytest.fixture
def start(start_beside):
    """Start a node; its `predict` returns what was measured."""

    def start_node(kind):
        node = start_beside(f"measured/{kind}", predictor=CorrectedPredictor, measurements=kind)

        def predict(*arguments):
            node.predict(*arguments)
            return CorrectedPredictor.newest.measured[-1]

        return SimpleNamespace(counts=node.counts, predict=predict)

    return start_node


def test_a_depth_image_measures_where_it_has_depth(start, make):
    node = start("depth")
    depth = np.full((HEIGHT, WIDTH), 3.0, np.float32)
    depth[:, ::2] = np.nan
    assert node.predict(1000) is None
    measured = node.predict(1100, make.image(1080 * MS, depth))
    assert len(measured) > 20
    assert_array_equal(measured.depth_m, 3.0)
    assert (measured.columns % 2 == 1).all()
    assert node.predict(1300) is None
    assert node.predict(2000, make.image(2000 * MS, 1000 * depth)) is None
    counts = node.counts()
    assert counts["image_alone.nothing_measured"] == 1
    assert counts["image_alone.measured_at_another_time"] == 1
    assert counts["image_alone.sparse_depth_wrong_unit"] == 1
    assert counts["processed"] == 4


def test_an_image_waits_for_its_own_depth_image(start, make, robot, monkeypatch):
    """A stereo camera's comes after the image; the one before is of another place."""
    monkeypatch.setattr(live_camera, "OWN_MESSAGE_TIMEOUT_S", 30.0)
    node = start("depth")

    def depth(metres, stamp):
        return make.image(stamp * MS, np.full((HEIGHT, WIDTH), metres, np.float32))

    assert_array_equal(node.predict(1000, depth(2.0, 1000)).depth_m, 2.0)
    depths = robot.heard("depth/image_rect")
    robot.image(1100, red(9))
    robot.graph.until(lambda: node.counts()["received"] == 2, "the image")
    robot.send("measured/depth", depth(3.0, 1100))
    depths.wait(2)
    assert_array_equal(CorrectedPredictor.newest.measured[-1].depth_m, 3.0)


def test_images_wait_no_more_once_no_depth_comes_with_them(start, make):
    node = start("depth")
    for stamp in range(1000, 1800, 100):
        node.predict(stamp)
    assert node.counts()["without_own_measurement"] == 3


def test_random_pixels_of_the_ground_truth_are_not_for_a_robot(start_depth):
    with pytest.raises(ConfigError, match="are for `uncertainty-depth evaluate`"):
        start_depth(predictor=CorrectedPredictor, measurements="random:64")


def test_a_followed_scale_beside_measurements_is_refused_while_the_node_runs(start, graph):
    start("depth")
    result = graph.set_parameters("/depth_node", use_depth_scale=True)
    assert not result.successful
    assert "which correct the scale too" in result.reason


def test_points_of_a_map_are_placed_at_the_images_stamp(start, make, monkeypatch):
    tree = TransformTree()
    for step in range(10):
        pose = transform_from(0, 0, step / 10, 0, 0, 0, 1)
        tree.add_moving((1000 + 100 * step) * MS, "map", "camera", pose)
    tf2_stand_in.install(monkeypatch, tree)
    node = start("points")
    points = make.points_on_plane()  # 4 m from where the camera starts
    measured = node.predict(1300, make.cloud(points, 1250 * MS, frame_id="map"))
    assert len(measured) > 50
    assert_allclose(measured.depth_m, 3.7, rtol=1e-6)
