# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Clouds of several LiDARs are one ground truth: merged first, then freed of occluded points."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from test.frames.conftest import (
    CAMERA,
    LIDAR_TO_CAMERA,
    PERIOD_NS,
    START_NS,
    points_at,
    write_frame,
)
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.core.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.core.records import Frame, Scan, Skipped
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.measured import merged_scan
from uncertainty_depth.frames.messages.bag_writer import BagWriter

MS = 1_000_000
FRONT = "/front/points"
REAR = "/rear/points"
BOTH = SourceConfig(lidar_topic=f"{FRONT}, {REAR}")
REAR_IN_FRONT = transform_from(-2.0, 0.5, 0.3, 0, 0, 1, 0.2)
FRAMES = 4


@pytest.fixture
def two_lidars(tmp_path):
    """Write a bag whose standard cloud is seen half by one LiDAR, half by the other."""

    def write(front: set[int], rear: set[int]) -> Path:
        with BagWriter(tmp_path / "bag") as writer:
            poses = [("front", "rear", REAR_IN_FRONT)]
            writer.static_transforms([("camera", "front", LIDAR_TO_CAMERA), *poses])
            for index in range(FRAMES):
                stamp_ns = START_NS + index * PERIOD_NS
                write_frame(writer, index, leave_out="cloud")
                points = points_at(index)
                if index in front:
                    writer.cloud(FRONT, stamp_ns + 10 * MS, "front", points[::2])
                if index in rear:
                    seen = points[1::2].copy()
                    to_rear = np.linalg.inv(REAR_IN_FRONT)
                    seen[:, :3] = seen[:, :3] @ to_rear[:3, :3].T + to_rear[:3, 3]
                    writer.cloud(REAR, stamp_ns - 20 * MS, "rear", seen)
        return tmp_path / "bag"

    return write


def test_halves_seen_by_two_lidars_are_the_cloud_that_one_would_see(two_lidars):
    every = set(range(FRAMES))
    source = BagSource(two_lidars(every, every), BOTH)
    records = list(source)
    assert [type(record) for record in records] == [Frame] * FRAMES
    for index, frame in enumerate(records):
        points = points_at(index)[:, :3]
        expected = ground_truth_from_cloud(points, LIDAR_TO_CAMERA, CAMERA)
        known = np.isfinite(frame.ground_truth_m)
        assert (known == np.isfinite(expected)).mean() > 0.99  # points on an edge round
        both = known & np.isfinite(expected)
        assert np.median(np.abs(frame.ground_truth_m - expected)[both]) < 1e-5
        assert_allclose(frame.scan.points[:200], points[::2])
        assert_allclose(frame.scan.points[200:], points[1::2], atol=1e-5)
    assert source.notes == []


def test_an_image_that_one_lidar_missed_is_scored_with_the_other_and_said(two_lidars):
    bag = two_lidars({0, 1}, {0, 2})
    source = BagSource(bag, BOTH)
    records = list(source)
    assert [type(record) for record in records] == [Frame, Frame, Frame, Skipped]
    assert records[3].reason == "no_lidar_within_max_time_difference"
    assert [len(record.scan.points) for record in records[:3]] == [400, 200, 200]
    losses = [note for note in source.notes if "are scored without a cloud of" in note]
    assert len(losses) == 2
    assert any(f"1 images are scored without a cloud of {REAR}" in note for note in losses)


def test_three_poses_for_two_are_refused(two_lidars):
    three_poses = replace(BOTH, lidar_to_camera=3 * (0, 0, 0, 0, 0, 0, 1))
    with pytest.raises(ConfigError, match="lidar_to_camera has 21 numbers; expected 14"):
        BagSource(two_lidars({0}, {0}), three_poses)


def test_poses_of_the_option_are_those_of_tf(two_lidars):
    """The second frame has no cloud of the first LiDAR: the pose of the other is its own."""
    bag = two_lidars({0}, {0, 1})
    poses = (LIDAR_TO_CAMERA, LIDAR_TO_CAMERA @ REAR_IN_FRONT)
    option = tuple(np.concatenate([parameters_from(pose) for pose in poses]).tolist())
    given = list(BagSource(bag, replace(BOTH, lidar_to_camera=option)))[:2]
    of_tf = list(BagSource(bag, BOTH))[:2]
    for with_option, with_tf in zip(given, of_tf, strict=True):
        assert_allclose(with_option.scan.lidar_to_camera, with_tf.scan.lidar_to_camera, atol=1e-9)
        assert_allclose(with_option.scan.points, with_tf.scan.points, atol=1e-5)


def test_what_one_lidar_sees_past_an_edge_is_hidden_by_the_other():
    """Columns of a near surface from one, of the far one behind it from the other."""
    rays = CAMERA.rays()
    near = Scan(4 * rays[:, ::2].reshape(-1, 3), np.eye(4))
    in_second = transform_from(1, 0, 0, 0, 0, 0, 1)
    far_in_camera = 20 * rays[:, 1::2].reshape(-1, 3)
    far = Scan(far_in_camera - in_second[:3, 3], in_second)

    def depth_m(scan: Scan) -> np.ndarray:
        return ground_truth_from_cloud(scan.points, scan.lidar_to_camera, CAMERA)

    assert np.isfinite(depth_m(far)).sum() == len(far.points)
    merged = depth_m(merged_scan([near, far]))
    assert np.nanmax(merged) == pytest.approx(4)
    assert np.isfinite(merged).sum() == len(near.points)
    assert merged_scan([near]) is near
