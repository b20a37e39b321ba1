# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Data that are unlike those a calibration was fitted to are named, once and with what differs."""

import logging

import numpy as np
import pytest

from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.sigma.calibration.fitted_data import WARNING_FRAMES, DataMonitor
from uncertainty_depth.sigma.calibration.sample import Sample, fitted_data


def camera(focal_length=60.0, width=80, height=60):
    intrinsics = np.array([[focal_length, 0, width / 2], [0, focal_length, height / 2], [0, 0, 1]])
    return Camera(width, height, intrinsics)


def sample(cameras=()):
    """Depths of 2 to 6 m, raw sigmas of 0.1 to 0.5 m."""
    random = np.random.default_rng(0)
    frames = [
        np.stack([random.uniform(low, high, 500) for low, high in ((2, 6), (0.1, 0.5), (2, 6))])
        for _ in range(8)
    ]
    return Sample("rooms", tuple(frames), cameras)


@pytest.fixture
def fitted():
    return fitted_data([sample((camera(),) * 8)])


def sigma_map(low, high):
    return np.random.default_rng(1).uniform(low, high, (60, 80)).astype(np.float32)


def test_what_a_map_was_fitted_to_is_described(fitted):
    assert fitted.sources == ("rooms",)
    assert (fitted.frames, fitted.pixels) == (8, 4000)
    assert fitted.depth_range_m == pytest.approx((2.04, 5.96), abs=0.03)
    assert fitted.sigma_range_m == pytest.approx((0.104, 0.496), abs=0.003)
    assert fitted.camera == {
        "focal_length_per_width": [0.75, 0.75],
        "aspect": [1.333333, 1.333333],
    }
    assert fitted_data([sample()]).camera is None


def test_raw_sigmas_outside_are_said_once_and_noted(fitted, caplog):
    """A map fitted to rooms and used on streets: 9 of 10 raw sigmas are larger than any seen."""
    monitor = DataMonitor("affine 50%", fitted)
    with caplog.at_level(logging.WARNING):
        for _ in range(WARNING_FRAMES - 1):
            monitor.add_sigma(sigma_map(0.4, 1.4))
        assert not caplog.messages
        for _ in range(20):
            monitor.add_sigma(sigma_map(0.4, 1.4))
    (warning,) = caplog.messages
    (note,) = monitor.notes()
    assert note == warning
    assert "90% of the raw sigmas are outside 0.105 to 0.496 m" in note
    assert "(affine 50%) was fitted to, rooms" in note
    assert "with --no-calibrated, and the depth node corrects sigma by a LiDAR" in note
