# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The benchmark of measurements: its columns on cases with a known answer, its wrong poses."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from benchmarks import measurements as benchmark
from benchmarks.measurements import WAYS, Way
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.records import DepthPrediction, Frame

CAMERA = Camera.pinhole(60.0, 64, 48)


def frame_of(truth_m):
    image = np.random.default_rng(1).integers(0, 255, (*truth_m.shape, 3)).astype(np.uint8)
    return Frame(7, "7", CAMERA, image, ground_truth_m=truth_m.astype(np.float32))


def wall(tilt_deg=0.0):
    """Return the depth of a wall 3 m ahead that is turned about the vertical axis."""
    return 3 / (1 + np.tan(np.deg2rad(tilt_deg)) * CAMERA.rays()[..., 0])


def row_of(way, truth_m, depth_m):
    def predict(frame):
        depth = depth_m.astype(np.float32)
        return DepthPrediction(depth, 0.2 * depth)

    frames = iter([frame_of(truth_m)])
    return benchmark.scores_of(frames, {"": way}, 1, predict, "laplace")[""].row()


def test_a_network_that_is_off_by_one_scale():
    """Every error is known: 20 % of 3 m, and none after the scale was measured."""
    truth_m = wall()
    alone = row_of(WAYS["network alone"], truth_m, 1.2 * truth_m)
    assert (alone["MAE (m)"], alone["AbsRel"], alone["a1"]) == ("0.600", "0.200", "1.000")
    assert (alone["pixels"], alone["imprint"], alone["by distance"]) == ("0", "", "")
    scaled = row_of(WAYS["one scale, 64 pixels"], truth_m, 1.2 * truth_m)
    assert (scaled["pixels"], scaled["MAE (m)"], scaled["imprint"]) == ("64", "0.000", "1.00")
    assert scaled["by distance"] == "100 / 100 / 100"
    assert scaled["worse"] == "0 % (x0.00)"


def test_normals_are_compared_with_the_ground_truths():
    assert row_of(WAYS["network alone"], wall(), 2 * wall())["normals (deg)"] == "0.0"
    assert row_of(WAYS["network alone"], wall(), wall(10))["normals (deg)"] == "10.0"


def test_a_correction_of_measured_pixels_alone_is_all_imprint():
    correction = np.zeros((20, 20))
    rows = np.array([5, 12])
    columns = np.array([6, 14])
    correction[rows, columns] = -0.3
    assert benchmark.corrections(correction, rows, columns) == (pytest.approx(0.3), 0)
    assert benchmark.corrections(correction * 0 + 1, rows, columns) == (1, 1)


def test_a_measured_pixel_and_its_neighbours_are_not_scored():
    """All but 1 % of error is within a pixel of the measurement, so that is left to score."""
    truth_m = wall()
    depth_m = 1.01 * truth_m
    depth_m[9:12, 19:22] = 9

    def one(frame):
        return Measurements(
            np.array([10]), np.array([20]), np.array([3.0]), np.array([0.1]), np.zeros(1)
        )

    row = row_of(Way(one, lambda frame, *_: frame.prediction), truth_m, depth_m)
    assert (row["pixels"], row["MAE (m)"]) == ("1", "0.030")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("1 pixel", 1),
        ("256 pixels", 256),
        ("8x8 zones", 64),
        ("one ring", 64),
        ("four rings", 256),
    ],
)
def test_what_is_measured_is_the_ground_truth(name, count):
    truth_m = wall(5)
    measured = WAYS[name].measure(frame_of(truth_m))
    assert len(measured) == count
    expected = truth_m[measured.rows, measured.columns]
    np.testing.assert_allclose(measured.depth_m, expected, rtol=0.01)


def test_corners_are_those_of_the_image_within_the_protocols_depth():
    truth_m = np.where(np.arange(64) < 32, 3.0, 6.0) * np.ones((48, 1))
    measured = benchmark.corners(20, frame_of(truth_m))
    assert 0 < len(measured) <= 20
    assert (measured.columns < 32).all()


def poses_of(count=6):
    """Return a camera that walks to the right and turns, (count, 4, 4)."""
    poses = np.tile(np.eye(4), (count, 1, 1))
    turns = Rotation.from_euler("y", 5 * np.arange(count), degrees=True)
    poses[:, :3, :3] = turns.as_matrix()
    poses[:, 0, 3] = 0.1 * np.arange(count)
    return list(poses)


def test_no_error_leaves_the_poses():
    poses = poses_of()
    unchanged = [
        partial(benchmark.scaled, 1.0),
        partial(benchmark.walked, 0.0, 0.0),
        partial(benchmark.mounted, 0.0),
        partial(benchmark.late, 0.0),
    ]
    for wrong in unchanged:
        np.testing.assert_allclose(wrong(poses), poses, atol=1e-12)


def test_wrong_poses_are_wrong_by_as_much_as_they_say():
    poses = poses_of()
    np.testing.assert_allclose(benchmark.late(1.0, poses)[:-1], poses[1:], atol=1e-12)
    halves = np.array(benchmark.late(0.5, poses))
    np.testing.assert_allclose(halves[:-1, 0, 3], 0.1 * np.arange(5) + 0.05)
    assert not np.array(benchmark.scaled(0.0, poses))[:, :3, 3].any()
    mounted = np.linalg.inv(poses) @ benchmark.mounted(3.0, poses)
    angles = Rotation.from_matrix(mounted[:, :3, :3]).magnitude()
    np.testing.assert_allclose(np.rad2deg(angles), 3)
    walk = np.array(benchmark.walked(1.0, 0.0, poses_of(2000)))
    before, after = np.array(poses_of(2)), walk
    steps = (
        np.linalg.inv(np.linalg.inv(before[0]) @ before[1]) @ np.linalg.inv(after[:-1]) @ walk[1:]
    )
    errors = np.rad2deg(Rotation.from_matrix(steps[:, :3, :3]).as_rotvec())
    np.testing.assert_allclose(errors.std(axis=0), 1, rtol=0.1)
