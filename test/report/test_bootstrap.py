# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tests of the coverage of bootstrap intervals."""

import math

import numpy as np
import pytest

from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, BY_VALUE
from uncertainty_depth.metrics.state import empty_block
from uncertainty_depth.report.bootstrap import (
    ENOUGH_BLOCKS,
    Resampled,
)

MAE = BY_NAME["depth.mae"]


def metrics_of(values):
    """One pixel a frame, whose error is the value."""
    metrics = OnlineMetrics()
    for value in values:
        block = empty_block()
        block["frames"] = block["pixels"] = 1
        block["error"] = value
        metrics.blocks.add(block)
    return metrics


def series(random, correlation, frames):
    noise = random.standard_normal(frames)
    values = np.empty(frames)
    values[0] = noise[0]
    for place in range(1, frames):
        innovation = math.sqrt(1 - correlation**2) * noise[place]
        values[place] = correlation * values[place - 1] + innovation
    return values


def held_and_widths(correlation, frames, runs=100):
    random = np.random.default_rng(0)
    held = 0
    widths = []
    for _ in range(runs):
        sample = Resampled(metrics_of(5 + series(random, correlation, frames)))
        interval = sample.interval(sample.rows(MAE))
        held += interval.low <= 5 <= interval.high
        widths.append((interval.high - interval.low) / 2)
    return held / runs, float(np.median(widths))


@pytest.mark.parametrize(("correlation", "frames"), [(0.9, 40), (0.0, 120), (0.9, 120)])
def test_intervals_hold_the_truth_in_nine_of_ten_runs(correlation, frames):
    """At 10 Hz a room or a light lasts a second: the correlation of neighbours is .9."""
    held, width = held_and_widths(correlation, frames)
    assert 0.9 <= held <= 0.99
    if not correlation:
        assert width < 1.1 * 1.96 / math.sqrt(frames)


def test_fewer_than_twenty_views_have_no_interval():
    sample = Resampled(metrics_of(np.random.default_rng(0).normal(2, 1, 19)))
    assert not sample.has_intervals
    assert math.isnan(sample.interval(sample.rows(MAE)).low)
    assert all(math.isnan(interval.low) for interval in sample.intervals().values())


def test_few_blocks_give_wide_intervals():
    sample = Resampled(metrics_of(np.full(12, 2.0)))
    assert sample.blocks < ENOUGH_BLOCKS
    assert sample.few
    interval = sample.interval(sample.rows(MAE), 2.0)
    spread = 0.5 * 2.0 / math.sqrt(sample.blocks)
    assert (interval.low, interval.high) == pytest.approx((2 - spread, 2 + spread))


def test_one_block_without_scale_has_no_interval():
    sample = Resampled(metrics_of([3.0]))
    interval = sample.interval(sample.rows(MAE))
    assert interval.value == 3.0
    assert math.isnan(interval.low)
    assert interval.text() == "3.000"


def test_intervals_stay_within_what_each_metric_can_be():
    """Few blocks have wide symmetric intervals; a coverage above 100 % helps nobody."""
    random = np.random.default_rng(0)
    metrics = OnlineMetrics()
    for deviation in 4 * (0.01,) + 8 * (0.02,) + 4 * (0.3,) + 4 * (3.0,):
        truth = random.uniform(1, 20, 400)
        metrics.update(truth * np.exp(random.normal(0, deviation, 400)), 0.1 * truth, truth)
    sample = Resampled(metrics)
    assert sample.few
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
