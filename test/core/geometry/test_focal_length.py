# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The focal length that a network sees, and what it does to depth."""

import dataclasses
import logging

import numpy as np
import pytest

from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.focal_length import (
    CameraRange,
    FocalLengthRescaling,
    camera_ranges,
    depth_factor,
    relative_focal_length,
)


def camera(focal_length: float, width: int = 320, height: int = 240) -> Camera:
    intrinsics = np.array([[focal_length, 0, width / 2], [0, focal_length, height / 2], [0, 0, 1]])
    return Camera(width, height, intrinsics)


def test_it_is_the_same_at_any_size_of_the_same_image():
    full = camera(300.0, 640, 480)
    assert relative_focal_length(full) == pytest.approx(300 / np.sqrt(640 * 480))
    squashed = full.scaled(160, 128)
    assert relative_focal_length(squashed) == pytest.approx(relative_focal_length(full))


def test_a_camera_without_calibration_has_none_and_leaves_depth_alone():
    uncalibrated = Camera(320, 240, np.zeros((3, 3)))
    for unknown in (None, uncalibrated, camera(float("nan"))):
        assert relative_focal_length(unknown) is None
        assert depth_factor(unknown, 0.8) == 1.0


def test_twice_the_focal_length_is_twice_the_depth_for_the_same_image():
    near = depth_factor(camera(200.0), 0.8)
    far = depth_factor(camera(400.0), 0.8)
    assert far == pytest.approx(2 * near)
    assert depth_factor(camera(400.0), 0.0) == 1.0


def test_ranges_are_min_and_max_of_focal_length_per_width_and_of_aspect():
    cameras = [camera(60, 80, 60), None, camera(100, 80, 60), camera(64, 160, 60)]
    assert camera_ranges(cameras) == {
        "focal_length_per_width": [0.4, 1.25],
        "aspect": [1.333333, 2.666667],
    }


TRAINED = {"relative_focal_length": [0.5, 1.0], "aspect": [1.0, 2.0]}


def lens_of(relative: float) -> Camera:
    return camera(relative * np.sqrt(320 * 240))


def test_depth_is_rescaled_if_the_model_is_canonical():
    for canonical, factor in ((0.8, 0.5), (0.0, 1)):
        lens = FocalLengthRescaling(canonical, TRAINED)
        assert lens.factor(lens_of(0.4)) == pytest.approx(factor)
        assert lens.factor(None) == 1


def test_a_lens_far_from_the_trainings_is_reported_once(caplog):
    lens = FocalLengthRescaling(0.0, TRAINED)
    with caplog.at_level(logging.WARNING):
        lens.factor(lens_of(1.05))
        assert not caplog.records
        lens.factor(lens_of(1.5))
        lens.factor(lens_of(1.6))
    (record,) = caplog.records
    assert "1.50 times off" in record.getMessage()
    assert "expect depth wrong by about that factor" in record.getMessage()


def test_of_a_rescaled_lens_only_the_cameras_of_the_training_are_known(caplog):
    """Views that the training made by cropping and turning its pictures are not recorded."""
    FocalLengthRescaling(0.8, TRAINED).factor(lens_of(1.5))
    (record,) = caplog.records
    assert "the training's cameras is 0.5 to 1, 1.50 times off" in record.getMessage()
    assert "seen" not in record.getMessage()


@pytest.mark.parametrize(("canonical", "assumed"), [(0.8, "0.8"), (0, "")])
def test_an_unknown_lens_is_reported_once_if_depth_should_be_rescaled(canonical, assumed, caplog):
    lens = FocalLengthRescaling(canonical, TRAINED)
    lens.factor(lens_of(0.7))
    assert not caplog.records
    lens.factor(None)
    lens.factor(Camera(320, 240, np.zeros((3, 3))))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == (1 if assumed else 0)
    assert all("focal length is unknown" in text and f"is {assumed}," in text for text in messages)


@pytest.mark.parametrize(
    "value", ["wide", {}, [], [1], [None, 1], ["cuda", 1], [-1, 1], [2, 1], 3, [1e-300, 10**300]]
)
def test_a_damaged_record_is_no_training_camera(value):
    for record in (value, {"relative_focal_length": value}):
        assert FocalLengthRescaling(0.0, record).factor(lens_of(0.4)) == 1


def test_a_range_holds_every_camera_in_any_order_and_of_both_evaluations():
    cameras = [camera(300.0), camera(100.0, 320, 200), camera(200.0, 320, 320)]
    for first in range(3):
        ranges = [CameraRange(), CameraRange()]
        for number in range(3):
            one = cameras[(first + number) % 3]
            ranges[number // 2].add(one, (one.height, one.width))
        for merged, other in (ranges, ranges[::-1]):
            merged = CameraRange.from_dict(dataclasses.asdict(merged))
            merged.merge(other)
            assert merged.focal_length_per_width == pytest.approx([100 / 320, 300 / 320])
            assert merged.aspect == pytest.approx([1.0, 1.6])
            assert merged.size == other.size
