# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The scale that a depth node follows: its gain, its limits, and that it feeds nothing back."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from uncertainty_depth.calibration.depth_scale import (
    AsPublished,
    DepthScaleConfig,
    FollowedScale,
    ScaleEstimate,
    ScaleEstimator,
    frame_log_scale,
)
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.scoring import ScoringJob, score

ON = DepthScaleConfig(use_depth_scale=True)
SECOND = 10**9


def drive(count: int = 400, correlation: float = 0.9, step_ns: int = SECOND // 10) -> list[Frame]:
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


def followed_frames(frames: list[Frame], config: DepthScaleConfig = ON) -> list[Frame]:
    publish = AsPublished(own, config, delay=2)
    return [replace(frame, prediction=publish(frame)) for frame in frames]


def errors(frames: list[Frame]) -> np.ndarray:
    return np.array([abs(frame_log_scale(f.prediction.depth_m, f.ground_truth_m)) for f in frames])


def test_two_frames_late_is_early_enough_for_a_scale_that_wanders() -> None:
    frames = drive()
    followed = followed_frames(frames)
    # an autoregression of 0.9 leaves sqrt(2 (1 - .81)) = .62 of it two frames later
    assert errors(followed).mean() < 0.75 * errors(frames).mean()
    ratio = followed[50].prediction.sigma_m / followed[50].prediction.depth_m
    np.testing.assert_allclose(ratio, 0.1, rtol=1e-5)


def test_a_frame_is_never_scaled_by_its_own_ground_truth() -> None:
    frames = drive(3)
    followed = followed_frames(frames)
    assert [f.prediction is g.prediction for f, g in zip(followed, frames, strict=True)] == [
        True, True, False
    ]  # fmt: skip


def test_the_estimate_is_of_the_models_own_scale_whatever_was_published() -> None:
    truth = np.full((5, 5), 3.0)
    for factor in (1.0, 1.4):
        estimate = ScaleEstimator().add(0, factor * truth / 1.2, truth, factor)
        assert estimate.log_scale == pytest.approx(math.log(1.2))
        assert estimate.scale_sigma == pytest.approx(abs(math.log(1.2 / factor)))


def test_too_few_pixels_say_nothing() -> None:
    truth = np.full((5, 5), np.nan)
    truth[0] = 3.0
    assert ScaleEstimator().add(0, np.ones((5, 5)), truth) is None


def test_a_recording_that_starts_again_starts_the_estimate_again() -> None:
    estimator = ScaleEstimator()
    truth = np.full((5, 5), 2.0)
    estimator.add(100 * SECOND, truth / 3, truth)
    assert estimator.add(0, truth, truth).log_scale == 0.0


@pytest.mark.parametrize(
    ("config", "estimate", "factor", "is_limited", "reason"),
    [
        (DepthScaleConfig(), ScaleEstimate(0, 0.3, 0.1), 1.0, False, "use_depth_scale is false"),
        (ON, None, 1.0, False, "no estimate has come"),
        (
            ON,
            ScaleEstimate(-3 * SECOND, 0.3, 0.1),
            1.0,
            False,
            "is 3.0 s old; depth_scale_timeout",
        ),
        (ON, ScaleEstimate(0, 0.3, 0.1), math.exp(0.3), False, "at the estimate"),
        (ON, ScaleEstimate(0, 3.0, 0.1), 2.0, True, "beyond depth_scale_max_factor 2"),
        (ON, ScaleEstimate(0, -3.0, 0.1), 0.5, True, "beyond depth_scale_max_factor 2"),
    ],
)
def test_the_factor_is_limited_and_ends_with_its_estimate(
    config, estimate, factor, is_limited, reason
) -> None:
    followed = FollowedScale(config)
    if estimate is not None:
        followed.receive(estimate)
    found = followed.at(0)
    assert found.factor == pytest.approx(factor)
    assert found.is_limited is is_limited
    assert reason in found.reason


def test_a_recording_is_scored_as_nodes_would_have_published_it() -> None:
    job = ScoringJob("synthetic:worlds=1,frames=4,width=64,height=48", "demo")
    own, _ = score(job)
    followed, context = score(replace(job, scale=ON))
    assert context.model["depth_scale"] == "followed from the ground truth, 2 frames late"
    before, after = (each.table.rows().column("depth.mae") for each in (own, followed))
    assert before[:2] == after[:2]
    assert before[2:] != after[2:]
