# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The offset between images and poses: a camera that turns unevenly before a textured wall."""

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from test.sigma.conftest import HEIGHT, WIDTH, wall_from
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Frame
from uncertainty_depth.stream.motion import Motion

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
