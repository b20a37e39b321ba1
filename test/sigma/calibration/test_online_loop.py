# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The closed loop: coverage comes back after a change, and nothing oscillates."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from uncertainty_depth.core.config.nodes import OnlineCorrectionConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.sigma.online.correction_filter import CorrectionFilter, ReceivedEstimate
from uncertainty_depth.sigma.online.loop import OnlineCorrected

PERIOD_NS = 100_000_000
SECOND_NS = 1_000_000_000
ON = OnlineCorrectionConfig(use_online_calibration=True)


class Pixels(NamedTuple):
    """The errors and sigmas of a frame, metres."""

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
