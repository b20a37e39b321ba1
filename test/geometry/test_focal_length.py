# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The focal length that a network sees, and what it does to depth."""

from __future__ import annotations

import numpy as np
import pytest

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.focal_length import (
    camera_ranges,
    depth_factor,
    relative_focal_length,
)


def camera(focal_length: float, width: int = 320, height: int = 240) -> Camera:
    intrinsics = np.array([[focal_length, 0, width / 2], [0, focal_length, height / 2], [0, 0, 1]])
    return Camera(width, height, intrinsics)


def test_it_is_the_same_at_any_size_of_the_same_image() -> None:
    full = camera(300.0, 640, 480)
    assert relative_focal_length(full) == pytest.approx(300 / np.sqrt(640 * 480))
    squashed = full.scaled(160, 128)
    assert relative_focal_length(squashed) == pytest.approx(relative_focal_length(full))


def test_a_camera_without_calibration_has_none_and_leaves_depth_alone() -> None:
    uncalibrated = Camera(320, 240, np.zeros((3, 3)))
    for unknown in (None, uncalibrated, camera(float("nan"))):
        assert relative_focal_length(unknown) is None
        assert depth_factor(unknown, 0.8) == 1.0


def test_twice_the_focal_length_is_twice_the_depth_for_the_same_image() -> None:
    near = depth_factor(camera(200.0), 0.8)
    far = depth_factor(camera(400.0), 0.8)
    assert far == pytest.approx(2 * near)
    assert depth_factor(camera(400.0), 0.0) == 1.0


def test_ranges_are_min_and_max_of_focal_length_per_width_and_of_aspect() -> None:
    cameras = [camera(60, 80, 60), None, camera(100, 80, 60), camera(64, 160, 60)]
    assert camera_ranges(cameras) == {
        "focal_length_per_width": [0.4, 1.25],
        "aspect": [1.333333, 2.666667],
    }
