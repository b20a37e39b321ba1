# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The scale that depth follows: its gain, its limits, and that no frame knows its own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from experiments.followed_scale import FollowedScale, frame_log_scale
from uncertainty_depth.records import DepthPrediction, Frame


def drive(count: int = 400, correlation: float = 0.9, step_ns: int = 10**8) -> list[Frame]:
    """Frames whose depth is wrong by a factor that wanders, and by 5 % noise at each pixel."""
    rng = np.random.default_rng(0)
    log_scale = 0.0
    frames = []
    for number in range(count):
        log_scale = correlation * log_scale + 0.2 * math.sqrt(1 - correlation**2) * rng.normal()
        truth = rng.uniform(1, 4, (8, 10)).astype(np.float32)
        noise = np.exp(0.05 * rng.normal(size=truth.shape))
        depth = (truth * math.exp(-log_scale) * noise).astype(np.float32)
        prediction = DepthPrediction(depth, 0.1 * depth)
        frames.append(
            Frame(number * step_ns, f"{number}", ground_truth_m=truth, prediction=prediction)
        )
    return frames


def own(frame: Frame) -> DepthPrediction:
    assert frame.prediction is not None
    return frame.prediction


def followed(frames: list[Frame]) -> list[Frame]:
    follow = FollowedScale(own)
    return [replace(frame, prediction=follow(frame)) for frame in frames]


def errors(frames: list[Frame]) -> np.ndarray:
    return np.array([abs(frame_log_scale(f.prediction.depth_m, f.ground_truth_m)) for f in frames])


def test_two_frames_late_is_early_enough_for_a_scale_that_wanders() -> None:
    frames = drive()
    scaled = followed(frames)
    # an autoregression of 0.9 leaves sqrt(2 (1 - .81)) = .62 of it two frames later
    assert errors(scaled).mean() < 0.75 * errors(frames).mean()
    ratio = scaled[50].prediction.sigma_m / scaled[50].prediction.depth_m
    np.testing.assert_allclose(ratio, 0.1, rtol=1e-5)


def test_a_frame_is_never_scaled_by_its_own_ground_truth() -> None:
    frames = drive(3)
    scaled = followed(frames)
    assert [f.prediction is g.prediction for f, g in zip(scaled, frames, strict=True)] == [
        True, True, False
    ]  # fmt: skip


@pytest.mark.parametrize(("true_factor", "factor"), [(1.2, 1.2), (5.0, 2.0), (0.1, 0.5)])
def test_the_factor_is_limited(true_factor: float, factor: float) -> None:
    depth = np.full((5, 5), 2.0, np.float32)
    truth = true_factor * depth
    prediction = DepthPrediction(depth, 0.1 * depth)
    frames = [
        Frame(number, f"{number}", ground_truth_m=truth, prediction=prediction)
        for number in range(3)
    ]
    np.testing.assert_allclose(followed(frames)[2].prediction.depth_m, factor * depth, rtol=1e-6)


def test_too_few_pixels_say_nothing() -> None:
    truth = np.full((5, 5), np.nan)
    truth[0] = 3.0
    assert frame_log_scale(np.ones((5, 5)), truth) is None
