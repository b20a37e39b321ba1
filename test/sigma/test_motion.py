# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth by motion, and the offset of its poses' stamps: a textured wall before a moving camera."""

from itertools import count

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Frame
from uncertainty_depth.sigma.motion import MotionTracker
from uncertainty_depth.stream.motion import Motion

WALL_M = 2.0
WIDTH, HEIGHT = 160, 120
NOISE = np.random.default_rng(0).integers(0, 255, (700, 900), np.uint8)
TEXTURE = cv2.normalize(cv2.GaussianBlur(NOISE, (0, 0), 2), None, 0, 255, cv2.NORM_MINMAX)
TO_WALL = np.array([[0.005, 0, -2.25], [0, 0.005, -1.75], [0, 0, 1]])
"""The texture is on the wall Z = WALL_M, 5 mm a pixel, around the world's axis."""


def wall_from(pose, intrinsics):
    """The wall in grey, by the homography between it and the image."""
    to_camera = np.linalg.inv(pose)
    columns = to_camera[:3, 0], to_camera[:3, 1], to_camera[:3, 2] * WALL_M + to_camera[:3, 3]
    to_image = intrinsics @ np.stack(columns, axis=1) @ TO_WALL
    return cv2.warpPerspective(TEXTURE, to_image, (WIDTH, HEIGHT))


F = 200.0
K = np.array([[F, 0, 79.5], [0, F, 59.5], [0, 0, 1]])


def rotation(yaw):
    return np.array([[np.cos(yaw), 0, np.sin(yaw)], [0, 1, 0], [-np.sin(yaw), 0, np.cos(yaw)]])


def pose_at(x=0.0, y=0.0, z=0.0, yaw=0.0):
    pose = np.eye(4)
    pose[:3, :3] = rotation(yaw)
    pose[:3, 3] = x, y, z
    return pose


def image_from(pose):
    return wall_from(pose, K)


def depth_at(measurements, pose):
    """The wall's depth at the measured pixels."""
    pixels = np.stack([measurements.columns, measurements.rows, np.ones(len(measurements))])
    rays = pose[:3, :3] @ np.linalg.inv(K) @ pixels
    return (WALL_M - pose[2, 3]) / rays[2]


STAMPS_NS = count(0, 50_000_000)


def measure(tracker, image, pose, stamp_ns=None, intrinsics=K):
    """Send one more image, a moment after the one before."""
    return tracker.measure(
        image, intrinsics, pose, next(STAMPS_NS) if stamp_ns is None else stamp_ns
    )


def run(poses, told=None, tracker=None):
    """Send a drive's images; return the tracker and the last measurements."""
    tracker = tracker or MotionTracker()
    for pose, told_pose in zip(poses, told or poses, strict=True):
        measurements = measure(tracker, image_from(pose), told_pose)
    return tracker, measurements


SIDEWAYS = [pose_at(x=0.03 * index) for index in range(8)]
TURNING_TOO = [pose_at(0.03 * index, z=0.02 * index, yaw=0.01 * index) for index in range(8)]


@pytest.mark.parametrize("drive", [SIDEWAYS, TURNING_TOO])
def test_a_moving_camera_measures_the_wall(drive):
    tracker, measurements = run(drive)
    assert len(measurements) > 50
    error = np.log(measurements.depth_m / depth_at(measurements, drive[-1]))
    assert np.median(np.abs(error)) < 0.02
    assert (
        np.abs(error) < 3 * np.hypot(measurements.log_sigma, measurements.common_log_sigma)
    ).mean() > 0.95
    assert tracker.quality.is_believed
    assert tracker.quality.failed < 0.1
    assert tracker.quality.epipolar_px < 0.5


def test_a_large_image_measures_the_wall():
    """Corners are found at half its size, and measured at all of it."""
    scale = np.diag([4.0, 4.0, 1.0])
    tracker = MotionTracker()
    for pose in SIDEWAYS:
        image = cv2.resize(image_from(pose), (4 * WIDTH, 4 * HEIGHT))
        measurements = measure(tracker, image, pose, intrinsics=scale @ K)
    assert measurements.coverage((4 * HEIGHT, 4 * WIDTH)) > 0.8
    assert np.median(np.abs(np.log(measurements.depth_m / WALL_M))) < 0.02


@pytest.mark.parametrize("step", [{}, {"yaw": 0.02}], ids=["stands", "turns on the spot"])
def test_without_parallax_nothing_is_measured(step):
    drive = [
        pose_at(**{name: value * index for name, value in step.items()}) for index in range(8)
    ]
    tracker, measurements = run(drive)
    assert len(measurements) == 0
    assert tracker.rejected == 0, "nothing is wrong with the poses"


def test_poses_of_another_motion_are_not_believed():
    told = [pose_at(y=0.03 * index, x=-0.01 * index) for index in range(8)]
    tracker, measurements = run(SIDEWAYS, told)
    assert len(measurements) == 0
    assert tracker.rejected > 0
    assert tracker.quality.failed > 0.85


def test_noise_falls_with_parallax():
    _, little = run(SIDEWAYS[:3])
    _, much = run(SIDEWAYS)
    assert np.median(much.log_sigma) < np.median(little.log_sigma) / 1.5
    assert np.median(much.common_log_sigma) < np.median(little.common_log_sigma) / 1.5


def test_a_scale_of_the_odometry_is_the_scale_of_the_depth():
    told = [pose_at(x=0.06 * index) for index in range(8)]
    _, measurements = run(SIDEWAYS, told)
    assert np.median(measurements.depth_m) == pytest.approx(2 * WALL_M, rel=0.05)


def test_corners_that_were_lost_stay_measurements_where_nothing_hides_them():
    tracker, before = run(SIDEWAYS)
    measure(tracker, np.zeros((HEIGHT, WIDTH), np.uint8), SIDEWAYS[-1])
    tracker, after = run([pose_at(x=0.24)], tracker=tracker)
    assert len(after) == 0, "nothing is tracked, so nothing shows that the poses are right"
    more = [pose_at(x=0.27 + 0.03 * index) for index in range(1, 5)]
    tracker, after = run(more, tracker=tracker)
    drifted = after.log_sigma > np.median(before.log_sigma)
    error = np.log(after.depth_m / depth_at(after, more[-1]))
    assert drifted.any()
    assert np.median(np.abs(error)) < 0.03


@pytest.mark.parametrize(
    "change",
    [
        {"pose": None},
        {"pose": np.full((4, 4), np.nan)},
        {"image": np.zeros((60, 80), np.uint8)},
        {"intrinsics": np.diag([1.1, 1.1, 1.0]) @ K},
        {"later_s": -1.0},
        {"later_s": 1.5},
    ],
    ids=["no pose", "a pose of NaN", "size", "focal length", "back in time", "gap"],
)
def test_what_ends_a_track_starts_anew(change):
    """A gap, as when a bag's next world or its loop begins: the pose is elsewhere."""
    tracker, measurements = run(SIDEWAYS)
    assert len(measurements) > 50
    following = {"image": image_from(pose_at(x=0.24)), "pose": pose_at(x=0.24)}
    stamp_ns = next(STAMPS_NS) + round(1e9 * change.pop("later_s", 0))
    assert len(measure(tracker, stamp_ns=stamp_ns, **(following | change))) == 0
    assert len(measure(tracker, **following)) == 0
    _, again = run(SIDEWAYS, tracker=tracker)
    assert len(again) > 50


def test_the_depth_is_one_that_all_images_agree_on():
    """Poses that shake by 2 mm put the widest pair alone off by 0.0095 here."""
    random = np.random.default_rng(0)
    drive = [pose_at(x=0.02 * index) for index in range(16)]
    told = []
    for pose in drive:
        shaken = pose.copy()
        shaken[:3, 3] += random.normal(0, 0.002, 3)
        told.append(shaken)
    errors = []
    tracker = MotionTracker()
    for pose, told_pose in zip(drive, told, strict=True):
        measurements = measure(tracker, image_from(pose), told_pose)
        if len(measurements):
            errors.append(np.log(measurements.depth_m / depth_at(measurements, pose)))
    assert np.median(np.abs(np.concatenate(errors[4:]))) < 0.007


def test_an_image_without_corners_measures_nothing():
    tracker = MotionTracker()
    for pose in SIDEWAYS:
        assert len(measure(tracker, np.full((HEIGHT, WIDTH), 128, np.uint8), pose)) == 0


IMAGES, INTERVAL_S = 70, 0.05
CAMERA = Camera.pinhole(200.0, width=WIDTH, height=HEIGHT)


def turning(time_s):
    pose = np.eye(4)
    angles = 0.2 * np.sin([6 * time_s, 4.5 * time_s, 0])
    pose[:3, :3] = Rotation.from_euler("yxz", angles).as_matrix()
    pose[:3, 3] = 0.2 * np.sin(2 * time_s), 0.1 * np.sin(3 * time_s), 0
    return pose


def standing(_):
    return np.eye(4)


def driven(pose_at, late_s=0.0):
    """Motion after a drive whose images were taken some time before their stamps."""
    motion = Motion()
    for number in range(IMAGES):
        stamp_s = number * INTERVAL_S
        seen = wall_from(pose_at(stamp_s - late_s), CAMERA.intrinsics)
        image = cv2.cvtColor(seen, cv2.COLOR_GRAY2RGB)
        stamp_ns = round(1e9 * stamp_s)
        motion.measure(Frame(stamp_ns, "", CAMERA, image, pose=pose_at(stamp_s)))
    return motion


@pytest.mark.parametrize("late_s", [0.04, 0.025, -0.025])
def test_a_late_stamp_is_told(late_s):
    motion = driven(turning, late_s)
    assert motion.tracker.time_offset.seconds() == pytest.approx(-late_s, abs=0.008)
    side = "before" if late_s > 0 else "after"
    assert any(f"ms {side} the images' stamps" in note for note in motion.notes())


def test_right_stamps_are_not_doubted():
    motion = driven(turning)
    assert motion.tracker.time_offset.seconds() == 0
    assert motion.warnings() == []


def test_a_camera_that_stands_still_tells_nothing():
    motion = driven(standing)
    assert np.isnan(motion.tracker.time_offset.seconds())
    assert motion.warnings() == []
