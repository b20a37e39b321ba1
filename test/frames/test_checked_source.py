# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The geometry check on real recordings: silent where it is right, loud where it is not."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.geometry.transforms import transform_from
from uncertainty_depth.frames.kitti import KittiSource
from uncertainty_depth.frames.nyu import NyuSource
from uncertainty_depth.stream.geometry_check import GeometryCheck

FRAMES = 4


def recalibrated(drive: Path, folder: Path, pose: np.ndarray) -> KittiSource:
    """The same drive, whose calibration file holds this pose of the LiDAR."""
    made = folder / drive.parent.name / drive.name
    made.parent.mkdir()
    made.symlink_to(drive)
    (made.parent / "calib_cam_to_cam.txt").symlink_to(drive.parent / "calib_cam_to_cam.txt")
    text = (drive.parent / "calib_velo_to_cam.txt").read_text()
    numbers = dict(line.split(":", 1) for line in text.splitlines() if line[:2] in ("R:", "T:"))
    own = np.eye(4)
    own[:3] = np.c_[
        np.array(numbers["R"].split(), float).reshape(3, 3), np.array(numbers["T"].split(), float)
    ]
    changed = own @ np.linalg.inv(KittiSource(drive, SourceConfig()).lidar_to_camera) @ pose
    rows = {"R": changed[:3, :3], "T": changed[:3, 3]}
    lines = [f"{name}: {' '.join(map(repr, map(float, rows[name].ravel())))}" for name in rows]
    (made.parent / "calib_velo_to_cam.txt").write_text("\n".join(lines))
    return KittiSource(made, SourceConfig())


def first_frames(source):
    """The source and its check, which has seen its first frames."""
    check = GeometryCheck()
    source = check.seeing(source)
    for _ in itertools.islice(source, FRAMES):
        pass
    return source, check


def test_a_kitti_drive_is_confirmed(kitti_drive):
    _, check = first_frames(KittiSource(kitti_drive, SourceConfig()))
    assert check.warnings() == []
    assert check.summary()["edge_fit"] > 4
    assert check.fraction_in_view == pytest.approx(0.14, abs=0.03)


def test_a_kitti_drive_with_swapped_extrinsics_says_so_in_its_notes(kitti_drive, tmp_path):
    swapped = np.linalg.inv(KittiSource(kitti_drive, SourceConfig()).lidar_to_camera)
    source, check = first_frames(recalibrated(kitti_drive, tmp_path, swapped))
    (warning,) = check.warnings()
    assert "the inverse of lidar_to_camera fits clearly better" in warning
    assert source.notes[-1] == warning


def test_a_kitti_cloud_in_its_body_frame_is_reported_though_no_point_is_in_view(
    kitti_drive, tmp_path
):
    body = recalibrated(kitti_drive, tmp_path, transform_from(0.01, 0, 0, 0, 0, 0, 1))
    (view, edges) = first_frames(body)[1].warnings()
    assert "of the LiDAR's points fall into the image" in view
    assert "followed by body frame (x forward) to optical frame (z forward)" in edges


def test_dense_depth_of_rooms_is_confirmed(nyu_folder):
    _, check = first_frames(NyuSource(nyu_folder, "test"))
    assert check.warnings() == []
    assert check.summary()["edge_fit"] > 4
