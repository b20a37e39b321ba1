# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Folders of colour and depth images with poses: small ones made here, and two real drives."""

import os
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.camera import project
from uncertainty_depth.core.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.recording import Recording
from uncertainty_depth.frames.rgbd import write_bag
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.stream.opening import open_source

CONFIG = SourceConfig()
K = np.array([[30.0, 0, 19.5], [0, 31, 14.5], [0, 0, 1]])
POSES = [
    transform_from(0.1 * i, 0.2, 0.3, 0, 0, np.sin(0.1 * i), np.cos(0.1 * i)) for i in range(4)
]
TIMES = ["1305031102.175304", "1305031102.211214", "1305031102.243211", "1305031102.275326"]
DRIVES = Path(os.environ.get("UNCERTAINTY_DEPTH_DATA", "shared/data")) / "rgbd"

HOLES = "6.7% of the depth images' pixels hold no depth and are not scored"


@pytest.fixture
def make(tmp_path):
    """Return a function that makes a folder with images of these names."""

    def make(names, depth_names=None, k=K, size=(40, 30), **files):
        for folder in ("rgb", "depth"):
            (tmp_path / folder).mkdir()
        for index, name in enumerate(names):
            image = np.full((30, 40, 3), (index, 100, 200), np.uint8)
            cv2.imwrite(str(tmp_path / "rgb" / f"{name}.png"), image)
        for index, name in enumerate(depth_names or names):
            depth = np.full(size[::-1], 1000 * (index + 1), np.uint16)
            depth[:2] = (0,), (65535,)
            cv2.imwrite(str(tmp_path / "depth" / f"{name}.png"), depth)
        if k is not None:
            np.savetxt(tmp_path / "K.txt", k)
        for name, lines in files.items():
            (tmp_path / f"{name}.txt").write_text("\n".join(lines))
        return tmp_path

    return make


def opened(folder, options=""):
    return open_source(f"rgbd:{folder}{options}", CONFIG)


def rows(poses, keys=None):
    """Return 4x4 matrices as lines, behind their keys if there are any."""
    lines = []
    for index, pose in enumerate(poses):
        numbers = " ".join(f"{value:.6f}" for value in pose.ravel())
        lines.append(f"{keys[index]} {numbers}" if keys else numbers)
    return lines


def quaternions(poses, times):
    return ["# time x y z qx qy qz qw"] + [
        f"{time} {' '.join(map(str, parameters_from(pose)))}"
        for time, pose in zip(times, poses, strict=True)
    ]


def test_a_frame_has_image_depth_camera_and_pose(make):
    folder = make(["000000", "000010", "000002"], poses=rows(POSES[:3], [0, 2, 10]))
    source = opened(folder)
    for _ in range(2):
        frames = list(source)
        assert [frame.name for frame in frames] == ["000000", "000002", "000010"]
    assert len(source) == 3
    assert source.notes == [HOLES]
    frame = frames[1]
    assert frame.stamp_ns == 66_666_666
    assert_array_equal(frame.image[0, 0], [200, 100, 2])
    assert_array_equal(frame.camera.intrinsics, K)
    assert np.isnan(frame.ground_truth_m[:2]).all()
    assert_array_equal(frame.ground_truth_m[2:], np.float32(3))
    assert_allclose(frame.pose, POSES[1], atol=1e-6)


def test_depth_and_camera_follow_the_options(make):
    folder = make(["1", "2"], k=None, size=(80, 60))
    frame = next(iter(opened(folder, ",per_metre=5000,k=20/21/9/8")))
    assert frame.ground_truth_m.shape == (30, 40)
    assert np.nanmax(frame.ground_truth_m) == np.float32(0.2)
    assert_array_equal(frame.camera.intrinsics, [[20, 0, 9], [0, 21, 8], [0, 0, 1]])


def test_poses_without_numbers_are_in_the_order_of_the_images(make):
    frames = list(opened(make(["a7", "b9"], poses=rows(POSES[:2]))))
    assert_allclose(frames[1].pose, POSES[1], atol=1e-6)


def test_times_are_associated(make):
    """Depth 5 ms later than colour, poses in between and at the ends, as TUM records them."""
    late = [f"{float(time) + 0.005:.6f}" for time in TIMES]
    between = ["1305031102.165304", "1305031102.185304", "1305031102.243211"]
    poses = [POSES[0], POSES[2], POSES[3]]
    lonely = "1305031104.000000"
    folder = make([*TIMES, lonely], late, groundtruth=quaternions(poses, between))
    source = opened(folder)
    *frames, last = source
    assert [frame.stamp_ns for frame in frames] == [
        int(time.replace(".", "") + "000") for time in TIMES
    ]
    assert [np.nanmax(frame.ground_truth_m) for frame in frames] == [1, 2, 3, 4]
    assert_allclose(frames[0].pose, POSES[1], atol=1e-6)
    assert_allclose(frames[2].pose, POSES[3], atol=1e-6)
    assert last.reason == "no_depth_image"
    assert last.message.endswith("has no depth image")
    assert source.notes == ["1 of 5 images have no pose in groundtruth.txt", HOLES]


def test_depth_with_a_camera_of_its_own_is_projected_into_the_colour_camera(make):
    """A plane at 2 m, seen by a depth camera with half the focal length, 10 cm to the right."""
    folder = make(["0", "1"], k=None, poses=rows(POSES[:2], [0, 1]))
    options = ",k=30/31/19.5/14.5,depth_k=60/62/19.5/14.5,depth_xyz=0.1/0/0"
    source = opened(folder, options)
    frame = list(source)[1]
    depth_m = frame.ground_truth_m
    known = np.argwhere(np.isfinite(depth_m))
    assert_array_equal(np.unique(depth_m[np.isfinite(depth_m)]), [2])
    # Half the field of view, shifted by 30 * 0.1 / 2 = 1.5 pixels.
    assert (known[:, 1].min(), known[:, 1].max()) == (11, 31)
    to_colour = transform_from(0.1, 0, 0, 0, 0, 0, 1)
    assert_allclose(frame.pose @ to_colour, POSES[1], atol=1e-6)
    assert "have cameras of their own" in source.notes[0]


def test_what_is_not_known_is_said(make):
    source = opened(make(["0", "1"], ["0", "1", "2"], k=None))
    assert all(frame.camera is None and frame.pose is None for frame in source)
    assert "1 depth images belong to no colour image" in source.notes
    assert any("has no K.txt" in note for note in source.notes)
    assert any("taken as registered" in note for note in source.notes)


def test_lost_poses_and_damaged_files_cost_their_frames(make):
    lost = np.full((4, 4), -np.inf)
    source = opened(folder := make(["0", "1", "2"], poses=rows([POSES[0], lost, POSES[2]])))
    (folder / "rgb" / "0.png").write_bytes(b"no image")
    cv2.imwrite(str(folder / "depth" / "2.png"), np.zeros((30, 40), np.uint8))
    first, second, third = source
    assert isinstance(first, Skipped)
    assert first.reason == "image_undecodable"
    assert isinstance(second, Frame)
    assert second.pose is None
    assert third.reason == "depth_undecodable"
    assert source.notes == ["1 of 3 images have no pose in poses.txt", HOLES]


@pytest.mark.parametrize(
    ("options", "files", "sentence"),
    [
        (",per_metre=0", {}, "per_metre=0; expected a positive number"),
        (",scale=2", {}, "has scale=2; expected per_metre, k, depth_k, depth_xyz"),
        (",k=1/2/3", {}, "has k=1/2/3; expected k=fx/fy/cx/cy, numbers"),
        ("", {"K": ["30 0 19.5 0 31"]}, "K.txt has 5 numbers; expected the 3x3 camera matrix"),
        ("", {"poses": ["0 1 2 3"]}, "poses.txt, line 1 is '0 1 2 3'; expected 16 numbers"),
        ("", {"poses": rows([2 * np.eye(4)])}, "line 1: the matrix is no rigid transform"),
        ("", {"poses": ["0 0 0 0 0 0 0 0"]}, "with a quaternion that is not zero"),
    ],
)
def test_a_wrong_option_or_file_is_refused(make, options, files, sentence):
    with pytest.raises(SourceError, match=sentence):
        opened(make(["0"], **files), options)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(SourceError, match=r"no such folder: .*rgb; expected the folders rgb and"):
        opened(tmp_path)
    (tmp_path / "rgb").mkdir()
    with pytest.raises(SourceError, match=r"has no file of \.png, \.jpg, \.jpeg"):
        opened(tmp_path)
    cv2.imwrite(str(tmp_path / "rgb" / "room.png"), np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(SourceError, match="no number in its name"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("drive", "frames", "options"),
    [
        ("hololens", 250, ""),
        ("kitchen", 500, ",k=262.5/262.5/160/120,depth_k=292.5/292.5/160/120"),
    ],
)
def test_poses_of_a_real_drive_carry_depth_from_frame_to_frame(drive, frames, options):
    """Depth seen from one pose is depth seen from the next: cameras, poses and unit are right."""
    if not (DRIVES / drive).is_dir():
        pytest.skip(f"{DRIVES / drive} is not there")
    source = opened(DRIVES / drive, options)
    assert len(source) == frames
    first, second = islice(source, 2)
    known = np.isfinite(first.ground_truth_m)
    points = (first.camera.rays() * first.ground_truth_m[..., None])[known]
    carried = project(points, np.linalg.inv(second.pose) @ first.pose, second.camera)
    error_m = np.abs(carried - second.ground_truth_m)
    error_m = error_m[np.isfinite(error_m)]
    assert error_m.size > 0.5 * known.sum()
    assert np.median(error_m) < 0.006


@pytest.mark.parametrize("names", [TIMES, ["0", "1", "2", "3"]], ids=["times", "numbers"])
def test_a_bag_of_a_folder_has_its_images_depth_camera_and_poses(make, tmp_path, names):
    folder = make(names, poses=rows(POSES))
    assert write_bag(str(folder), tmp_path / "bag") == 4
    source = opened(folder)
    bag = BagSource(tmp_path / "bag", CONFIG)
    assert bag.topics.image == "/camera/image"
    assert bag.notes == []
    for frame, again in zip(source, bag, strict=True):
        assert_array_equal(again.image, frame.image)
        assert_array_equal(again.ground_truth_m, frame.ground_truth_m)
        assert_array_equal(again.camera.intrinsics, frame.camera.intrinsics)
        assert again.stamp_ns == frame.stamp_ns + (0 if names is TIMES else 10**9)
    tree = TransformTree()
    poses = [frame.pose for frame in source]
    with Recording(tmp_path / "bag").open() as recording:
        for (_, message), pose in zip(recording.messages(["/tf"]), poses, strict=True):
            tree.add_message(message, is_moving=True)
            assert_allclose(tree.lookup("odom", "camera"), pose, atol=1e-9)


def test_a_folder_of_which_no_image_can_be_read_makes_no_bag(make, tmp_path):
    folder = make(TIMES[:2])
    (folder / "depth" / f"{TIMES[0]}.png").write_bytes(b"no image")
    assert write_bag(str(folder), tmp_path / "one") == 1
    (folder / "depth" / f"{TIMES[1]}.png").write_bytes(b"no image")
    with pytest.raises(
        SourceError, match=r"^no image of rgbd:.* can be written: .*does not begin"
    ):
        write_bag(str(folder), tmp_path / "none")
    assert not (tmp_path / "none").exists()
