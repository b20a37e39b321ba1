# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A bag's ground truth: a registered depth image, or its LiDARs' merged clouds, in any lens."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from test.frames.conftest import (
    CAMERA,
    LIDAR_TO_CAMERA,
    PERIOD_NS,
    START_NS,
    image_at,
    points_at,
    recording,
    write_frame,
)
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.geometry.camera import Distortion, ground_truth_from_cloud
from uncertainty_depth.core.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.core.records import Frame, Scan, Skipped
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.measured import merged_scan
from uncertainty_depth.frames.messages.bag_writer import BagWriter

DEPTH = "/camera/depth_registered/image_raw"
CONFIG = SourceConfig()


def millimetres_at(index: int, shape=(24, 32)) -> np.ndarray:
    values = np.random.default_rng(index).integers(300, 6000, shape, dtype=np.uint16)
    values[:, :3] = 0  # no depth
    return values


def metres_of(millimetres: np.ndarray) -> np.ndarray:
    return np.where(millimetres == 0, np.nan, millimetres.astype(np.float32) / np.float32(1000))


@pytest.fixture
def write_rgbd(tmp_path):
    """Write the standard recording, by default without LiDAR, and images of `depth_at(index)`."""

    def write(depth_at=millimetres_at, leave_out="cloud", frame="camera", frames=4):
        with BagWriter(tmp_path / "rgbd") as writer:
            if "cloud" not in leave_out:
                writer.static_transforms([("camera", "lidar", np.eye(4)[[1, 2, 0, 3]])])
            for index in range(frames):
                write_frame(writer, index, leave_out)
                writer.image(DEPTH, START_NS + index * PERIOD_NS, frame, depth_at(index))
        return tmp_path / "rgbd"

    return write


@pytest.mark.parametrize("as_metres", [False, True], ids=["16UC1", "32FC1"])
def test_a_depth_image_is_the_ground_truth_where_there_is_no_lidar(write_rgbd, as_metres):
    depth_at = (lambda index: metres_of(millimetres_at(index))) if as_metres else millimetres_at
    source = BagSource(write_rgbd(depth_at), CONFIG)
    assert source.topics == ("/camera/image", "/camera/camera_info", (), DEPTH, "", "")
    assert source.lidar_to_camera is None
    frames = list(source)
    assert [type(frame) for frame in frames] == [Frame] * 4
    for index, frame in enumerate(frames):
        assert_array_equal(frame.image, image_at(index))
        assert_array_equal(frame.ground_truth_m, metres_of(millimetres_at(index)))
    assert source.notes == []


def test_the_lidar_comes_first_and_the_depth_image_can_be_chosen(write_rgbd):
    bag = write_rgbd(leave_out="")
    source = BagSource(bag, CONFIG)
    assert (source.topics.lidars, source.topics.depth_image) == (("/lidar/points",), "")
    assert source.notes == []
    chosen = BagSource(bag, SourceConfig(ground_truth_topic=DEPTH))
    assert (chosen.topics.lidars, chosen.topics.depth_image) == ((), DEPTH)
    assert_array_equal(next(iter(chosen)).ground_truth_m, metres_of(millimetres_at(0)))


def test_a_depth_image_of_another_size_takes_the_nearest_pixel(write_rgbd):
    small = BagSource(write_rgbd(lambda index: millimetres_at(index, (12, 16))), CONFIG)
    expected = metres_of(millimetres_at(1, (12, 16))).repeat(2, axis=0).repeat(2, axis=1)
    assert_array_equal(list(small)[1].ground_truth_m, expected)


def test_depth_images_that_give_no_ground_truth_are_counted(write_rgbd):
    odd = {1: np.zeros((24, 32), np.uint16), 2: millimetres_at(2, (32, 24))}
    bag = write_rgbd(lambda index: odd.get(index, millimetres_at(index)))
    records = list(BagSource(bag, CONFIG))
    reasons = [record.reason if isinstance(record, Skipped) else "" for record in records]
    assert reasons == ["", "ground_truth_image_empty", "ground_truth_wrong_aspect", ""]
    assert "24x32 pixels, the camera image 32x24" in records[2].message


def test_a_depth_image_in_another_frame_is_noted(write_rgbd):
    (note,) = BagSource(write_rgbd(frame="depth_optical"), CONFIG).notes
    assert f"{DEPTH} is in frame 'depth_optical', /camera/image in 'camera'" in note


def test_no_camera_info_is_needed(write_rgbd):
    source = BagSource(write_rgbd(leave_out="cloud info"), CONFIG)
    assert source.topics.camera_info == ""
    assert [frame.camera for frame in source] == [None] * 4
    assert any("no camera info" in note for note in source.notes)


def test_images_without_a_depth_image_near_in_time_are_counted(tmp_path):
    with BagWriter(tmp_path / "rgbd") as writer:
        for index in range(4):
            write_frame(writer, index, "cloud")
            if index != 2:
                stamp_ns = START_NS + index * PERIOD_NS
                writer.image(DEPTH, stamp_ns, "camera", millimetres_at(index))
    records = list(BagSource(tmp_path / "rgbd", CONFIG))
    assert records[2].reason == "no_ground_truth_image_within_max_time_difference"


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
    """The second frame lacks the first LiDAR's cloud: the other keeps its own pose."""
    bag = two_lidars({0}, {0, 1})
    poses = (LIDAR_TO_CAMERA, LIDAR_TO_CAMERA @ REAR_IN_FRONT)
    option = tuple(np.concatenate([parameters_from(pose) for pose in poses]).tolist())
    given = list(BagSource(bag, replace(BOTH, lidar_to_camera=option)))[:2]
    of_tf = list(BagSource(bag, BOTH))[:2]
    for with_option, with_tf in zip(given, of_tf, strict=True):
        assert_allclose(with_option.scan.lidar_to_camera, with_tf.scan.lidar_to_camera, atol=1e-9)
        assert_allclose(with_option.scan.points, with_tf.scan.points, atol=1e-5)


def test_what_one_lidar_sees_past_an_edge_is_hidden_by_the_other():
    """One sees columns on a near surface, the other columns on the far one behind it."""
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


COEFFICIENTS = np.array([-0.28, 0.07, 0.0, 0.0, 0.0])
"""An ordinary wide lens: k1, k2, p1, p2, k3."""
RAW = replace(CAMERA, distortion=Distortion("plumb_bob", COEFFICIENTS))


@pytest.mark.parametrize("option", ["rectify", "keep", "already_rectified"])
def test_image_and_ground_truth_of_a_raw_camera_are_as_the_option_says(option, tmp_path):
    with recording(tmp_path / "bag") as writer:
        writer.camera_info("/camera/camera_info", START_NS, "camera", RAW)
        write_frame(writer, 0, leave_out="info")
    pose = parameters_from(LIDAR_TO_CAMERA)
    config = SourceConfig(distorted_images=option, lidar_to_camera=pose)
    source = BagSource(tmp_path / "bag", config)
    (frame,) = source
    k = CAMERA.intrinsics
    maps = cv2.initUndistortRectifyMap(k, COEFFICIENTS, None, k, (32, 24), cv2.CV_32FC1)
    image = image_at(0)
    if option == "rectify":
        image = cv2.remap(image, *maps, cv2.INTER_LINEAR)
    camera = RAW if option == "keep" else CAMERA
    assert np.abs(frame.image.astype(int) - image).max() <= (option == "rectify")
    assert (frame.camera.distortion is None) == (option != "keep")
    assert_array_equal(frame.camera.intrinsics, k)
    expected = ground_truth_from_cloud(points_at(0)[:, :3], LIDAR_TO_CAMERA, camera)
    assert_array_equal(frame.ground_truth_m, expected)
    rectified = (
        "/camera/camera_info is distorted (plumb_bob): images are rectified; if they are "
        "already, as image_proc's image_rect, set distorted_images to already_rectified"
    )
    assert (rectified in source.notes) == (option == "rectify")
