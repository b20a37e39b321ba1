# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the accumulator takes and refuses, and what in it ignores the scale of sigma.

The exact functions on all pixels are the reference; what leaves the bins is said to be unknown.
"""

import copy
import itertools
import math
import signal
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from test.metrics.conftest import drawn, metrics_of
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.metrics import coverage, crps, merci, n_merci
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, METRICS, flatten, undefined
from uncertainty_depth.metrics.state import MAX_BLOCKS
from uncertainty_depth.report.evaluation import Evaluation


def test_an_update_needs_the_documented_memory_for_each_pixel():
    metrics = OnlineMetrics()
    frame = drawn(20_000)
    metrics.update(*frame)
    tracemalloc.start()
    metrics.update(*frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 * 20_000


def test_maps_are_masked_and_frames_without_a_valid_pixel_count_as_ground_truth(pixels):
    depth, sigma, truth = pixels
    hidden = np.where(np.arange(truth.size) % 2, truth, np.nan)
    metrics = OnlineMetrics()
    found = metrics.update(depth.reshape(50, 60), sigma.reshape(50, 60), hidden.reshape(50, 60))
    expected = OnlineMetrics().update(depth[1::2], sigma[1::2], truth[1::2])
    np.testing.assert_equal(found, expected)
    assert metrics.update(np.full_like(depth, np.nan), sigma, truth) is None
    assert metrics.frames == 1
    assert metrics.compute()["scored_fraction"] == pytest.approx(1500 / 4500)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_near_the_end_of_their_type_are_scored(dtype):
    """The check for millimetres takes a mean of two medians and a ratio, which may overflow."""
    largest = float(np.finfo(dtype).max)
    depth = np.array([0.9 * largest, 0.8 * largest], dtype=dtype)
    metrics = OnlineMetrics()
    metrics.update(depth, np.ones(2), np.full(2, 2.0, dtype=dtype))
    assert metrics.pixels == 2


def masked(values, hidden):
    """A masked array that holds junk where it is masked."""
    return np.ma.array(np.where(hidden, 65.535, values), mask=hidden)


@pytest.mark.parametrize("place", range(3))
def test_masked_pixels_are_no_values(pixels, place):
    hidden = np.arange(pixels[0].size) % 3 == 0
    unknown = list(pixels)
    unknown[place] = np.where(hidden, np.nan, pixels[place])
    expected = OnlineMetrics().update(*unknown)
    maps = list(pixels)
    maps[place] = masked(maps[place], hidden)
    np.testing.assert_equal(OnlineMetrics().update(*maps), expected)
    row = Evaluation().add_arrays(*(values.reshape(50, 60) for values in maps))
    assert row["pixels"] == expected["pixels"]
    assert row["depth.rmse"] == pytest.approx(expected["depth"]["rmse"])


def test_masked_whole_numbers_are_no_values():
    truth = np.ma.array([2, 3, 65535], mask=[False, False, True])
    found = OnlineMetrics().update(np.array([2.0, 4.0, 5.0]), np.ones(3), truth)
    assert found["depth"]["mae"] == 0.5


def test_nothing_seen_is_nan_everywhere_in_the_same_mapping(pixels):
    empty = flatten(OnlineMetrics().compute())
    metrics = OnlineMetrics()
    metrics.update(*pixels)
    assert empty.keys() == flatten(metrics.compute()).keys()
    assert not {name: value for name, value in empty.items() if value and not np.isnan(value)}


def test_tensors_are_arrays(pixels):
    metrics = OnlineMetrics()
    found = metrics.update(*map(torch.as_tensor, pixels))
    np.testing.assert_equal(found, OnlineMetrics().update(*pixels))
    depth, sigma, truth = pixels
    tracked = torch.tensor(depth, requires_grad=True)
    np.testing.assert_equal(metrics.update(tracked, sigma, truth), found)
    half = torch.tensor(depth).bfloat16()
    rounded = OnlineMetrics().update(half.double().numpy(), sigma, truth)
    np.testing.assert_equal(metrics.update(half, sigma, truth), rounded)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"min_depth": float("nan")}, "min_depth is nan; expected a finite number of metres"),
        ({"max_depth": float("inf")}, "max_depth is inf; expected a finite number of metres"),
        ({"min_depth": 9.0, "max_depth": 8.0}, "expected less than max_depth, 8.0"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(limits, sentence):
    with pytest.raises(ConfigError, match=sentence):
        OnlineMetrics(EvaluationConfig(**limits))


def test_states_that_score_something_else_do_not_merge():
    first = OnlineMetrics()
    with pytest.raises(ValueError, match=r"max_depth 10.0; expected 80.0"):
        first.merge(OnlineMetrics(EvaluationConfig(max_depth=10.0)))


def added(metrics, strike_at):
    """Update a copy with a frame, and strike Ctrl-C as a function is called or returns.

    Returns:
        The copy, and how many calls and returns there were.
    """
    metrics = copy.deepcopy(metrics)
    events = 0

    def count(*_):
        nonlocal events
        events += 1
        if events == strike_at:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    try:
        sys.setprofile(count)
        metrics.update(*FRAME)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return metrics, events - 1  # the last one is that of setprofile


FRAME = np.ones((3, 4, 4)) + np.eye(4)


def test_ctrl_c_in_a_loop_of_ones_own_leaves_the_sums_of_whole_frames():
    metrics = OnlineMetrics()
    for _ in range(MAX_BLOCKS):
        metrics.update(*FRAME)
    whole, events = added(metrics, strike_at=0)
    expected = [flatten(each.compute()) for each in (metrics, whole)]
    frames = []
    for event in np.linspace(1, events, 24, dtype=int):
        struck, _ = added(metrics, strike_at=event)
        frames.append(struck.frames)
        assert frames[-1] in (MAX_BLOCKS, MAX_BLOCKS + 1), f"at {event} of {events}"
        assert flatten(struck.compute()) == pytest.approx(
            expected[frames[-1] - MAX_BLOCKS], nan_ok=True
        )
    assert set(frames) == {MAX_BLOCKS, MAX_BLOCKS + 1}, "before and after"


FREE_OF_SCALE = [metric for metric in METRICS if not metric.is_size]
FRAMES = [drawn(4000, seed) for seed in range(3)]
SCALES = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)


def scaled(frames, factor):
    return [(depth, factor * sigma, truth) for depth, sigma, truth in frames]


def exact(function, frames):
    depth, sigma, truth = (np.concatenate(values) for values in zip(*frames, strict=True))
    return function(np.abs(depth - truth), sigma)


@pytest.fixture(scope="module")
def unscaled():
    return metrics_of(FRAMES).total()


def test_order_and_n_merci_ignore_the_scale_of_sigma():
    names = {metric.name for metric in FREE_OF_SCALE}
    assert {"uncertainty.n_merci", "uncertainty.merci", "by_distance.n_merci"} <= names
    assert {"uncertainty.ause.rmse", "uncertainty.spearman", "uncertainty.aurc"} <= names


@settings(max_examples=12)
@given(scale=SCALES)
def test_a_metric_of_no_size_is_the_same_in_every_unit(unscaled, scale):
    found = metrics_of(scaled(FRAMES, scale)).total()
    for metric in FREE_OF_SCALE:
        rough = {"by_distance.n_merci": 0.12}  # 500 pixels in coarse bins
        few = metric is BY_NAME["by_distance.n_merci"] and unscaled["distance.pixels"] < 500
        expected = np.where(few, metric.values(found), metric.values(unscaled))
        limit = rough.get(metric.name, 3e-3)
        assert_allclose(metric.values(found), expected, rtol=limit, err_msg=metric.name)


@pytest.mark.parametrize("power", [-40, -7, 1, 16, 40])
def test_a_power_of_two_changes_no_bit(unscaled, power):
    found = metrics_of(scaled(FRAMES, 2.0**power)).total()
    for metric in FREE_OF_SCALE:
        np.testing.assert_array_equal(
            metric.values(found), metric.values(unscaled), err_msg=metric.name
        )


@pytest.mark.parametrize(
    ("scales", "may_be_unknown"),
    [
        ((1.0, 5.0, 0.3), False),
        *((far, True) for far in itertools.permutations((1e-9, 1.0, 700.0))),
    ],
)
def test_parts_whose_sigmas_differ_in_scale_merge(scales, may_be_unknown):
    """The third of the pixels with the largest sigma hardly counts in the quantile."""
    parts = [scaled(FRAMES, scale) for scale in scales]
    merged = OnlineMetrics()
    for part in parts:
        merged.merge(metrics_of(part))
    whole = list(itertools.chain(*parts))
    for function, metrics in itertools.product((n_merci, merci), (merged, metrics_of(whole))):
        (found,) = BY_NAME[f"uncertainty.{function.__name__}"].values(metrics.total())
        is_unknown = may_be_unknown and math.isnan(found)
        assert is_unknown or found == pytest.approx(exact(function, whole), rel=3e-3)


def test_errors_of_a_tenth_of_a_millimetre_are_resolved():
    """As a scanner makes at a third of a metre."""
    random = np.random.default_rng(0)
    truth = random.uniform(0.2, 0.4, 60_000)
    sigma = 1e-4 * random.uniform(0.1, 1, truth.size)
    frames = [(truth + random.normal(0, 1, truth.size) * sigma, sigma, truth)]
    found = metrics_of(frames).compute()["uncertainty"]
    assert found["n_merci"] == pytest.approx(exact(n_merci, frames), rel=3e-3)


def test_a_quantile_beyond_the_bins_is_no_number_and_says_why():
    """One-nanometre errors, which only a ground truth's copy has."""
    truth = np.linspace(1, 2, 1000)
    depth = truth + 1e-9 * np.linspace(1, 3, 1000)
    metrics = metrics_of([(depth, np.ones(1000), truth)])
    values = metrics.compute()
    assert math.isnan(values["uncertainty"]["n_merci"])
    assert math.isnan(values["by_distance"]["n_merci"]["1_1.5m"])
    assert math.isnan(values["baselines"]["constant"]["crps"])
    reasons = undefined(metrics.total())
    assert "95 % of the errors are below" in reasons["uncertainty.n_merci"]
    assert "uncertainty.merci" not in reasons  # the ratio is known


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
def test_a_ratio_far_from_the_first_frames_is_no_number_and_says_why(factor):
    """The state keeps the first frame's scale; a sigma may not change it a thousandfold."""
    depth, sigma, truth = drawn(500)
    later = [(depth, sigma * factor, truth)] * 30
    metrics = metrics_of([(depth, sigma, truth), *later])
    values = metrics.compute()["uncertainty"]
    assert math.isnan(values["n_merci"])
    assert math.isnan(values["merci"])
    reasons = undefined(metrics.total())
    assert "first frame" in reasons["uncertainty.n_merci"]
    assert values["ause"]["rmse"] == pytest.approx(
        metrics_of([(depth, sigma, truth)]).compute()["uncertainty"]["ause"]["rmse"]
    )


def test_exact_zeros_and_claims_of_certainty_have_no_bin_to_leave():
    """97 % of the errors are 0; then 10 % of the sigmas, where there is an error."""
    truth = np.linspace(1, 2, 1000)
    depth = truth.copy()
    depth[:30] += 0.5
    values = metrics_of([(depth, np.ones(1000), truth)]).compute()["uncertainty"]
    assert (values["merci"], values["n_merci"]) == (0.0, 1.0)
    depth, sigma, truth = drawn(1000)
    sigma[:100] = 0.0
    values = metrics_of([(depth, sigma, truth)]).compute()["uncertainty"]
    assert (values["merci"], values["n_merci"]) == (math.inf, math.inf)


def test_frames_without_an_error_leave_the_scale_to_the_first_that_has_one():
    depth, sigma, truth = (values * 1.0 for values in drawn(2000))
    frames = [(truth, sigma, truth), *scaled([(depth, sigma, truth)] * 60, 1e6)]
    (found,) = BY_NAME["uncertainty.n_merci"].values(metrics_of(frames).total())
    assert found == pytest.approx(exact(n_merci, frames), rel=5e-3)


def test_the_baseline_of_a_depth_that_is_thirty_times_too_short_is_resolved():
    """As an indoor model is on a street: a fifth of the errors exceed eight times the depth."""
    _, _, truth = drawn(30_000)
    depth = np.minimum(truth, 2 + 0.01 * truth)
    found = metrics_of([(depth, np.ones_like(depth), truth)]).compute()["baselines"]
    error = np.abs(depth - truth)
    by_depth = found["proportional_to_depth"]
    assert by_depth["n_merci"] == pytest.approx(n_merci(error, depth), rel=3e-3)
    likely = np.sqrt(np.mean((error / depth) ** 2)) * depth
    assert by_depth["coverage_95"] == pytest.approx(coverage(error, likely, 0.95), rel=3e-3)
    assert by_depth["crps"] == pytest.approx(crps(error, likely), rel=3e-3)
