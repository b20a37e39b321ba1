# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Transforms of /tf: interpolated at the cloud's stamp, or a skipped frame that says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from test.frames.conftest import LIDAR_TO_CAMERA, PERIOD_NS, START_NS, write_frame
from uncertainty_depth.config import SourceConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.transforms import BUFFER_NS, MovingPose
from uncertainty_depth.geometry.transforms import interpolated, parameters_from, transform_from
from uncertainty_depth.messages.bag_writer import BagWriter
from uncertainty_depth.messages.decoding import SECOND_NS
from uncertainty_depth.records import Frame, Skipped

FRAMES = 10
CLOUD_DELAY_NS = 10_000_000
ALL_TIMES = range(-PERIOD_NS, 11 * PERIOD_NS, 130_000_000)


def mast_pose(time_ns: int) -> np.ndarray:
    """Return the pose of the mast in the base: it drives at 0.5 m/s and turns at 0.4 rad/s."""
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler("y", 0.4 * time_ns / SECOND_NS).as_matrix()
    pose[0, 3] = 0.5 * time_ns / SECOND_NS
    return pose


@pytest.fixture
def moving_bag(tmp_path, transform_message) -> Callable[[Iterable[int]], Path]:
    """Write a bag whose camera is on a moving mast; `times_ns` are those of its transforms."""

    def write(times_ns: Iterable[int]) -> Path:
        with BagWriter(tmp_path / "bag") as writer:
            writer.static_transforms([("mast", "camera", np.linalg.inv(LIDAR_TO_CAMERA))])
            writer.static_transforms([("base", "lidar", np.eye(4))])
            transforms = [
                (START_NS + time_ns, "base", "mast", mast_pose(time_ns)) for time_ns in times_ns
            ]
            for index in range(FRAMES):
                until_ns = START_NS + index * PERIOD_NS
                while transforms and transforms[0][0] <= until_ns:
                    message = transform_message(*transforms.pop(0))
                    writer.message("/tf", until_ns, message)
                write_frame(writer, index)
            for transform in transforms:
                writer.message("/tf", transform[0], transform_message(*transform))
        return tmp_path / "bag"

    return write


def test_the_pose_of_each_frame_is_interpolated_at_its_clouds_stamp(moving_bag):
    source = BagSource(moving_bag(ALL_TIMES), SourceConfig())
    for _ in range(2):
        records = list(source)
        assert [type(record) for record in records] == [Frame] * FRAMES
        for index, frame in enumerate(records):
            pose = mast_pose(index * PERIOD_NS + CLOUD_DELAY_NS)
            expected = LIDAR_TO_CAMERA @ np.linalg.inv(pose)
            assert_allclose(frame.scan.lidar_to_camera, expected, atol=1e-9)
    assert source.lidar_to_camera is None
    assert any("/tf" in note and "at each cloud's stamp" in note for note in source.notes)


def test_frames_outside_the_recorded_transforms_are_skipped_with_the_times(moving_bag):
    times_ns = range(2 * PERIOD_NS, 6 * PERIOD_NS, PERIOD_NS)  # clouds 2 to 4 lie between
    records = list(BagSource(moving_bag(times_ns), SourceConfig()))
    assert [type(record) for record in records] == [Skipped] * 2 + [Frame] * 3 + [Skipped] * 5
    for record in (*records[:2], *records[5:]):
        assert record.reason == "no_extrinsics"
        assert "'lidar' to 'camera' at" in record.message
    assert "1700000000.200000000 s to 1700000000.500000000 s" in records[-1].message


def test_the_note_of_a_moving_transform_holds_its_first_pose_to_be_pasted(moving_bag):
    (note,) = BagSource(moving_bag([0]), SourceConfig()).notes
    numbers = note.split("--lidar-to-camera ")[1].split(";")[0].split()
    assert_allclose([float(number) for number in numbers], parameters_from(LIDAR_TO_CAMERA))


def test_rotations_are_interpolated_on_the_shortest_arc():
    after = transform_from(2, 0, 0, 0, 0, 1, 0)  # half a turn about z
    quarter = interpolated(np.eye(4), after, 0.5)
    assert_allclose(np.abs(parameters_from(quarter)), [1, 0, 0, 0, 0, 0.5**0.5, 0.5**0.5])
    same = transform_from(0, 0, 0, 0, 0, 0, -1)
    assert_allclose(interpolated(np.eye(4), same, 0.5), np.eye(4), atol=1e-12)


def test_poses_older_than_the_buffer_are_forgotten():
    pose = MovingPose("base", "mast")
    for index in range(2000):
        pose.add(index * SECOND_NS // 10, mast_pose(0))
    assert len(pose) <= BUFFER_NS // (SECOND_NS // 10) + 1
    with pytest.raises(SourceError, match=r"'mast' in 'base' from 189\.9"):
        pose.at(0)


def test_the_buffer_is_emptied_where_time_jumps_back():
    pose = MovingPose("base", "mast")
    pose.add(8 * SECOND_NS, mast_pose(8 * SECOND_NS))
    pose.add(0, mast_pose(0))
    pose.add(SECOND_NS, mast_pose(SECOND_NS))
    with pytest.raises(SourceError, match=r"from 0\.0+ s to 1\.0+ s"):
        pose.at(4 * SECOND_NS)


def test_poses_that_come_out_of_order_are_sorted_and_a_repeated_stamp_replaced():
    pose = MovingPose("base", "mast")
    for time_ns in (0, SECOND_NS, SECOND_NS // 2):
        pose.add(time_ns, mast_pose(time_ns))
    pose.add(SECOND_NS // 2, mast_pose(SECOND_NS // 2))
    assert len(pose) == 3
    assert_allclose(pose.at(SECOND_NS // 4), mast_pose(SECOND_NS // 4), atol=1e-12)
