# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The online estimate and its closed loop: closed forms, steps, bounds, and no oscillation."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uncertainty_depth.core.config.nodes import OnlineCorrectionConfig, OnlineEstimateConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics.calibration import GAUSSIAN
from uncertainty_depth.sigma.online.correction import (
    CorrectionFilter,
    OnlineCorrected,
    ReceivedEstimate,
)
from uncertainty_depth.sigma.online.estimates import LIMIT, MIN_FRAMES, OnlineEstimate

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
@settings(max_examples=15)
def test_mean_coverage_is_within_a_constant_over_the_frames(scales, coverage, gain):
    config = OnlineEstimateConfig(coverage=coverage)
    estimate = OnlineEstimate(config, gain)
    random = np.random.default_rng(len(scales))
    uncovered = []
    frames = 150
    for index in range(frames):
        scale = 2.0 ** scales[index % len(scales)]
        # Errors that an adversary scales, seeing the estimate: as bad as it can be.
        error = np.abs(random.normal(size=50)) * SIGMA * scale
        loss = estimate.add(index * PERIOD_NS, error, np.full(50, SIGMA))
        if index >= MIN_FRAMES:
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
    estimate = estimated(gaussian_frames(1300, lambda _: 1.0, pixels=50))
    assert estimate.frames == 1201  # within two minutes, ten a second


SECOND_NS = 1_000_000_000
ON = OnlineCorrectionConfig(use_online_calibration=True)


class Pixels(NamedTuple):
    """A frame's errors and sigmas, metres."""

    stamp_ns: int
    error: np.ndarray
    own_sigma: np.ndarray


class Row(NamedTuple):
    """What the model's own sigma and the published one cover, and the factor between them."""

    stamp_ns: int
    own_coverage: float
    coverage: float
    factor: float


def replay(
    frames: Iterable[Pixels], delay: int = 3, config: OnlineCorrectionConfig = ON
) -> Iterator[tuple[Row, CorrectionFilter]]:
    def own(frame: Frame) -> DepthPrediction:
        return frame.need_prediction()

    nodes = OnlineCorrected(own, config, delay=delay)
    for stamp_ns, error, own_sigma in frames:
        truth = np.full_like(error, 10.0)
        frame = Frame(stamp_ns, "", ground_truth_m=truth)
        frame = replace(frame, prediction=DepthPrediction(truth + error, own_sigma))
        sigma = nodes(frame).sigma_m
        own_coverage = (error <= 1.96 * own_sigma).mean()
        coverage = (error <= 1.96 * sigma).mean()
        row = Row(stamp_ns, own_coverage, coverage, sigma.mean() / own_sigma.mean())
        yield row, nodes.in_force


def frames(number: int, change: int, scale: float, seed: int = 0) -> Iterator[Pixels]:
    """Yield frames whose errors grow by `scale` at the frame `change`; scales are correlated."""
    random = np.random.default_rng(seed)
    common = 0.0
    for index in range(number):
        common = 0.7 * common + 0.1 * random.normal()
        sigma = np.exp(random.normal(-1.5, 0.5, 400))
        size = np.exp(common) * (scale if index >= change else 1.0)
        yield Pixels(index * PERIOD_NS, np.abs(random.normal(size=400)) * sigma * size, sigma)


def run(delay: int, config: OnlineCorrectionConfig = ON) -> dict[str, np.ndarray]:
    rows = [row for row, _ in replay(frames(500, 250, 2.5), delay, config)]
    return {name: np.array([getattr(row, name) for row in rows]) for name in rows[0]._fields}


@pytest.mark.parametrize("delay", [1, 16])
def test_coverage_returns_after_a_change_and_the_factor_does_not_oscillate(delay):
    run_of = run(delay)
    assert run_of["own_coverage"][250:].mean() < 0.65
    assert run_of["coverage"][150:250].mean() == pytest.approx(0.95, abs=0.02)
    assert run_of["coverage"][320:].mean() == pytest.approx(0.95, abs=0.02)
    assert run_of["factor"].max() < 2.5 * 1.5
    settled = run_of["factor"][350:]
    assert settled.max() / settled.min() < 1.3


def test_without_online_calibration_sigma_is_unchanged():
    run_of = run(4, replace(ON, use_online_calibration=False))
    assert (run_of["factor"] == 1).all()
    assert np.array_equal(run_of["coverage"], run_of["own_coverage"])


def in_force(factor: float = 4.0, **options: object) -> CorrectionFilter:
    """Return what has received an estimate of this factor at 100 s, and was at a frame then."""
    state = CorrectionFilter(replace(ON, **options))
    state.at(100 * SECOND_NS, "raw")
    state.receive(ReceivedEstimate(100 * SECOND_NS, "raw", factor))
    return state


def factor_at(state: CorrectionFilter, time_s: float, sigma: str = "raw") -> float:
    return state.at(round(time_s * 1e9), sigma).correction


def test_it_moves_no_faster_than_allowed():
    state = in_force()
    assert factor_at(state, 100.5) == pytest.approx(1.5**0.5)
    assert factor_at(state, 101.0) == pytest.approx(1.5)
    assert factor_at(state, 109.0) == pytest.approx(1.5**2)  # a gap counts as a second
    assert state.last.source == "online"
    assert state.last.reason == "moving towards the estimate"


def test_it_moves_no_farther_than_allowed():
    state = in_force(20.0)
    factors = [factor_at(state, second) for second in range(101, 109)]
    assert factors[-1] == 8.0
    assert state.last.reason == "the estimate is beyond the largest factor, 8"


def test_a_lidar_that_is_the_same_camera_takes_no_coverage():
    """Its errors seem a tenth of what they are; it took coverage from .95 to .20 in 6 s."""
    own = list(frames(400, 400, 1.0))
    same = [frame._replace(error=frame.error / 10) for frame in own]
    warned_at = None
    for true, (row, state) in zip(own, replay(same), strict=True):
        covered = (true.error <= 1.96 * row.factor * true.own_sigma).mean()
        assert row.factor >= 1 - 1e-9
        if state.warning and warned_at is None:
            warned_at = row.stamp_ns / 1e9
    assert covered > 0.9
    assert 10 < warned_at < 20
    assert "calibration_min_factor 1 for" in state.warning


def test_sigma_that_may_shrink_does_so_a_fifth_as_fast_as_it_grows():
    state = in_force(1 / 64, calibration_min_factor=0.5)
    assert factor_at(state, 101.0) == pytest.approx(1.5**-0.2)
    for second in range(102, 120):
        state.receive(ReceivedEstimate(second * SECOND_NS, "raw", 1 / 64))
        factor = factor_at(state, second)
    assert factor == pytest.approx(0.5)
    assert "calibration_min_factor 0.5 for" in state.warning
    state.receive(ReceivedEstimate(120 * SECOND_NS, "raw", 1.0))
    assert factor_at(state, 120) == pytest.approx(0.75)
    assert factor_at(state, 121) == 1.0
    assert state.warning == ""


def test_it_returns_to_the_model_s_own_when_estimates_end():
    state = in_force()
    assert [factor_at(state, second) for second in range(101, 105)][-1] == 4.0
    assert state.last.reason == "at the estimate"
    assert factor_at(state, 110.0) == 4.0
    assert factor_at(state, 110.5) == pytest.approx(4.0 / 1.5 ** (0.2 * 0.5))
    assert state.last.source == "own"
    assert state.last.reason == (
        "the newest estimate is 10.5 s old; the limit is 10 s; returning to the model's own"
    )
    for second in range(112, 132):
        factor = factor_at(state, second)
    assert factor == 1.0
    assert "returning" not in state.last.reason


def test_an_estimate_of_another_sigma_or_from_another_clock_is_not_followed():
    state = in_force()
    assert factor_at(state, 101.0, "calibrated") == 1.0
    assert state.last.reason == "the estimate is of the sigma of raw; expected calibrated"
    assert factor_at(in_force(), 20.0) == 1.0


def test_switching_it_off_takes_effect_at_once():
    state = in_force()
    assert factor_at(state, 101.0) == pytest.approx(1.5)
    state.config = replace(state.config, use_online_calibration=False)
    assert state.at(round(101.1e9), "raw").correction == 1
    assert state.last.source == "own"
