# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How often bootstrap intervals hold, how narrow they are, and when there is none."""

import math

import numpy as np
import pytest
from scipy.signal import lfilter

from uncertainty_depth.metrics.bootstrap import Resampled, mean_interval
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, BY_VALUE
from uncertainty_depth.metrics.state import empty_block

MAE = BY_NAME["depth.mae"]
AUCE = BY_NAME["uncertainty.auce"]


def metrics_of(errors, log_sigmas=0, covered=0):
    """One pixel a frame, whose error is the value."""
    metrics = OnlineMetrics()
    for error, log_sigma, share in zip(
        *np.broadcast_arrays(errors, log_sigmas, covered), strict=True
    ):
        block = empty_block()
        block["frames"] = block["pixels"] = 1
        block["error"] = error
        block["log_sigma"] = log_sigma
        block["covered"] = round(100 * share)
        metrics.blocks.add(block)
    return metrics


def series(random, correlation, frames, own):
    """Three autoregressions; a fraction `own` of the variance is each frame's own."""
    noise, of_frames = random.standard_normal((2, 3, frames))
    slow = lfilter(
        [1],
        [1, -correlation],
        noise * np.where(np.arange(frames) == 0, 1, math.sqrt(1 - correlation**2)),
    )
    return math.sqrt(1 - own) * slow + math.sqrt(own) * of_frames


def held_and_widths(correlation, frames, own=0.0, runs=100):
    random = np.random.default_rng(0)
    held = 0
    widths = []
    for _ in range(runs):
        errors, log_sigmas, covered = series(random, correlation, frames, own)
        sample = Resampled(metrics_of(5 + errors, log_sigmas, covered + 5))
        interval = sample.interval(sample.rows(MAE))
        held += interval.low <= 5 <= interval.high
        widths.append((interval.high - interval.low) / 2)
    return held / runs, float(np.median(widths))


@pytest.mark.parametrize(
    ("correlation", "frames", "own", "widest"),
    [
        (0.5, 20, 0, 1.3),
        (0.5, 40, 0, 0.75),
        (0.9, 40, 0, math.inf),
        (0.0, 120, 0, 1.1 * 1.96 / math.sqrt(120)),
        (0.5, 120, 0, math.inf),
        (0.9, 120, 0, math.inf),
        (0.9, 40, 0.5, math.inf),
        (0.9, 120, 0.5, math.inf),
    ],
)
def test_intervals_hold_the_truth_in_nine_of_ten_runs_and_are_narrow(
    correlation, frames, own, widest
):
    """At 10 Hz a room or a light lasts a second: the correlation of neighbours is .9."""
    held, width = held_and_widths(correlation, frames, own)
    assert 0.9 <= held <= 0.99
    assert width < widest, "in deviations of a frame"


@pytest.mark.parametrize("views", [1, 19])
def test_fewer_than_twenty_views_have_no_interval(views):
    sample = Resampled(metrics_of(np.random.default_rng(0).normal(2, 1, views)))
    interval = sample.interval(sample.rows(MAE))
    assert not sample.has_intervals
    assert math.isnan(interval.low)
    assert interval.text() == f"{interval.value:.3f}"
    assert all(math.isnan(interval.low) for interval in sample.intervals().values())


def test_few_views_give_a_rough_interval_that_can_refute():
    sample = Resampled(metrics_of(np.full(12, 2.0)))
    interval = sample.interval(sample.rows(MAE), 2.0)
    spread = 0.5 * 2.0 / math.sqrt(sample.drawn_blocks)
    assert (interval.low, interval.high) == pytest.approx((2 - spread, 2 + spread))


def test_an_interval_of_a_sum_of_absolute_deviations_reaches_down_to_none():
    """A sigma of the right size: resampled, AUCE grows, so percentiles would exclude its truth."""
    random = np.random.default_rng(0)
    low = []
    for _ in range(8):
        metrics = OnlineMetrics()
        for _ in range(40):
            truth = random.uniform(1, 20, 400)
            error = random.normal(0, 0.1 * truth) * math.exp(random.normal(0, 0.25))
            metrics.update(truth + error, 0.1 * truth, truth)
        sample = Resampled(metrics)
        low.append(sample.interval(sample.rows(AUCE), limits=AUCE.limits).low)
    assert np.median(low) == 0


@pytest.mark.parametrize(("correlation", "frames"), [(0.0, 41), (0.5, 120), (0.9, 250)])
def test_the_interval_of_a_recordings_mean_is_the_bootstraps(correlation, frames):
    values = 5 + series(np.random.default_rng(0), correlation, frames, 0)[0]
    sample = Resampled(metrics_of(values))
    expected = sample.interval(sample.rows(MAE))
    found = mean_interval(values, rough=9.0)
    assert found.value == pytest.approx(expected.value)
    assert found.low == pytest.approx(expected.low, abs=0.1 * (expected.high - expected.low))
    assert found.high == pytest.approx(2 * found.value - found.low)


def test_few_frames_of_a_recording_say_little_of_their_mean():
    values = np.random.default_rng(0).normal(5, 0.01, 39)
    least = mean_interval(values[:19], rough=0.5)
    assert least.high - least.low == pytest.approx(1.0)
    few = mean_interval(values, rough=0.5)
    as_independent = 2 * 1.96 * values.std() / math.sqrt(39)
    assert few.high - few.low > 2 * as_independent, "as if neighbours were alike"


def test_intervals_stay_within_what_each_metric_can_be():
    """Few blocks have wide symmetric intervals; a coverage above 100 % helps nobody."""
    random = np.random.default_rng(0)
    metrics = OnlineMetrics()
    for deviation in 4 * (0.01,) + 8 * (0.02,) + 4 * (0.3,) + 4 * (3.0,):
        truth = random.uniform(1, 20, 400)
        metrics.update(truth * np.exp(random.normal(0, deviation, 400)), 0.1 * truth, truth)
    sample = Resampled(metrics)
    assert sample.drawn_blocks < 10
    intervals = sample.intervals()
    for name, interval in intervals.items():
        lowest, highest = BY_VALUE[name].limits
        assert lowest <= interval.value <= highest, name
        if not math.isnan(interval.low):
            assert lowest <= interval.low <= interval.value <= interval.high <= highest, name
    assert intervals["uncertainty.coverage_95"].high == 1
    assert intervals["depth.mae"].low == 0
    assert intervals["uncertainty.ause.rmse"].low >= 0
    assert intervals["uncertainty.spearman"].low >= -1


def test_a_metric_without_limits_has_no_interval_of_a_few_blocks():
    """Three blocks with outliers gave n-MeRCI an interval from -15 to 13."""
    random = np.random.default_rng(3)
    drift = np.cumsum(random.standard_normal(40)) / 4
    metrics = OnlineMetrics()
    for step in drift:
        truth = random.uniform(1, 10, 800)
        sigma = 0.05 * truth * np.exp(step)
        error = random.laplace(0, sigma / math.sqrt(2))
        error += (random.random(800) < 0.03) * random.standard_normal(800) * 30
        metrics.update(np.abs(truth + error) + 1e-3, sigma, truth)
    sample = Resampled(metrics)
    intervals = sample.intervals()
    assert sample.has_intervals
    assert sample.drawn_blocks < 10
    for name in ("uncertainty.n_merci", "uncertainty.nll_laplace", "depth.bias"):
        assert math.isnan(intervals[name].low), name
    assert not math.isnan(intervals["depth.mae"].low)
