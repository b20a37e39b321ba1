# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Bags of an RGB-D camera: a registered depth image is the ground truth, as it is live."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from test.frames.conftest import PERIOD_NS, START_NS, image_at, write_frame
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.bag import BagSource
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
