# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The online estimate: closed forms, steps, frames not pixels, and the bound of its coverage."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uncertainty_depth.core.config.nodes import OnlineEstimateConfig
from uncertainty_depth.metrics.calibration import GAUSSIAN
from uncertainty_depth.sigma.online.estimates import LIMIT, OnlineEstimate

PERIOD_NS = 100_000_000
SIGMA = 0.2


def gaussian_frames(
    number: int,
    scale: Callable[[int], float],
    seed: int = 0,
    spread: float = 0.0,
    pixels: int = 1000,
) -> Iterator[tuple]:
    """Yield Gaussian errors of `scale` times sigma, a frame's scale being off by `spread`."""
    random = np.random.default_rng(seed)
    for index in range(number):
        sigma = np.exp(random.normal(math.log(SIGMA), 0.5, pixels))
        common = scale(index) * math.exp(spread * random.normal())
        error = np.abs(random.normal(size=pixels)) * sigma * common
        yield index * PERIOD_NS, error, sigma


def estimated(frames: Iterator[tuple], **options: object) -> OnlineEstimate:
    estimate = OnlineEstimate(OnlineEstimateConfig(**options))
    for frame in frames:
        estimate.add(*frame)
    return estimate


@pytest.mark.parametrize("coverage", [0.68, 0.95])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_stationary_gaussian_errors_give_their_factor(scale, coverage):
    estimate = estimated(gaussian_frames(200, lambda _: scale), coverage=coverage)
    assert estimate.factor == pytest.approx(scale, rel=0.02)
    assert estimate.recent_coverage == pytest.approx(coverage, abs=0.01)
    assert estimate.changes == 0


def test_frames_with_a_common_scale_get_the_factor_of_their_mixture():
    # error / sigma = exp(0.5 a) b with a, b normal: its 95 % quantile from a million of them
    random = np.random.default_rng(9)
    ratio = np.abs(random.normal(size=10**6)) * np.exp(0.5 * random.normal(size=10**6))
    expected = np.quantile(ratio, 0.95) / float(GAUSSIAN.half_widths(0.95))
    estimate = estimated(gaussian_frames(1000, lambda _: 1.0, spread=0.5, pixels=200))
    assert estimate.factor == pytest.approx(expected, rel=3 * estimate.relative_error)
    assert estimate.relative_error < 0.03


def test_no_estimate_before_enough_frames():
    assert estimated(gaussian_frames(19, lambda _: 2.0)).factor is None
    assert estimated(gaussian_frames(20, lambda _: 2.0)).factor is not None


@pytest.mark.parametrize("scale", [3.0, 1 / 3])
def test_a_step_is_tracked(scale):
    steps = gaussian_frames(330, lambda index: scale if index >= 300 else 1.0, spread=0.1)
    estimate = estimated(steps)
    assert estimate.changes in (1, 2)  # the first cut may leave some frames from before
    assert estimate.factor == pytest.approx(scale, rel=0.2)


def repeated(frames: Iterator[tuple], times: int) -> Iterator[tuple]:
    for stamp_ns, error, sigma in frames:
        yield stamp_ns, np.repeat(error, times), np.repeat(sigma, times)


@pytest.mark.parametrize("number", [25, 330])
def test_pixels_that_come_twice_make_it_neither_faster_nor_surer(number):
    def frames() -> Iterator[tuple]:
        return gaussian_frames(
            number, lambda index: 3.0 if index >= 300 else 1.0, spread=0.3, pixels=200
        )

    once = estimated(frames())
    often = estimated(repeated(frames(), 5))
    assert often.factor == pytest.approx(once.factor, rel=1e-6)
    assert often.relative_error == pytest.approx(once.relative_error, rel=1e-6)
    assert often.trim == pytest.approx(once.trim, abs=1e-9)
    assert often.frames == once.frames


@given(
    scales=st.lists(st.floats(-3, 3), min_size=1, max_size=30),
    coverage=st.sampled_from([0.68, 0.95]),
    gain=st.sampled_from([0.02, 0.1]),
)
@settings(max_examples=15, deadline=None)
def test_mean_coverage_is_within_a_constant_over_the_frames(scales, coverage, gain):
    config = OnlineEstimateConfig(coverage=coverage, calibration_min_frames=2)
    estimate = OnlineEstimate(config, gain)
    random = np.random.default_rng(len(scales))
    uncovered = []
    frames = 150
    for index in range(frames):
        scale = 2.0 ** scales[index % len(scales)]
        # Errors that an adversary scales, seeing the estimate: as bad as it can be.
        error = np.abs(random.normal(size=50)) * SIGMA * scale
        loss = estimate.add(index * PERIOD_NS, error, np.full(50, SIGMA))
        if index >= config.calibration_min_frames:
            uncovered.append(loss)
    gap = abs(float(np.mean(uncovered)) - (1 - coverage))
    # The steps of the trim add up to it: the identity behind the guarantee.
    assert gap == pytest.approx(abs(estimate.trim) / (gain * len(uncovered)), rel=1e-6, abs=1e-9)
    # Scales span 6 octaves and 50 normal errors some 10 more: nothing drives the trim farther.
    assert gap <= (16 + gain) / (gain * len(uncovered))


def test_a_sigma_of_zero_stops_at_the_limit_and_recovers():
    estimate = OnlineEstimate()
    for index in range(400):
        estimate.add(index * PERIOD_NS, np.ones(50), np.full(50, 0.0))
    assert estimate.factor == LIMIT
    assert np.isfinite(estimate.trim)
    assert abs(estimate.trim) < 1.0
    for stamp_ns, error, sigma in gaussian_frames(100, lambda _: 1.0):
        estimate.add(stamp_ns + 400 * PERIOD_NS, error, sigma)
    assert estimate.factor == pytest.approx(1.0, rel=0.3)


def test_a_clock_that_jumps_back_starts_anew():
    estimate = estimated(gaussian_frames(100, lambda _: 3.0))
    estimate.add(0, *next(gaussian_frames(1, lambda _: 1.0))[1:])
    assert estimate.factor is None
    assert estimate.frames == 1


def test_frames_older_than_the_window_are_forgotten():
    estimate = estimated(gaussian_frames(100, lambda _: 1.0), calibration_window=2.0)
    assert estimate.frames == 21
