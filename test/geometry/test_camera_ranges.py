# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What several cameras have in common, as a network sees it."""

import numpy as np

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.camera_ranges import camera_ranges


def camera(focal_length: float, width: int = 80, height: int = 60) -> Camera:
    intrinsics = np.array([[focal_length, 0, width / 2], [0, focal_length, height / 2], [0, 0, 1]])
    return Camera(width, height, intrinsics)


def test_ranges_are_min_and_max_of_focal_length_per_width_and_of_aspect() -> None:
    cameras = [camera(60), None, camera(100), camera(64, width=160)]
    assert camera_ranges(cameras) == {
        "focal_length_per_width": [0.4, 1.25],
        "aspect": [1.333333, 2.666667],
    }


def test_without_a_camera_there_is_no_range() -> None:
    assert camera_ranges([]) is None
    assert camera_ranges([None, None]) is None
