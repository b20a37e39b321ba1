# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What ignores the scale of sigma does so online, and what leaves the bins is said to be unknown.

The exact functions on all pixels are the reference.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from test.metrics.conftest import drawn, metrics_of
from uncertainty_depth.metrics import coverage, crps, merci, n_merci
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, METRICS, undefined

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


@settings(max_examples=12, deadline=None)
@given(scale=SCALES)
def test_a_metric_of_no_size_is_the_same_in_every_unit(unscaled, scale):
    found = metrics_of(scaled(FRAMES, scale)).total()
    for metric in FREE_OF_SCALE:
        rough = {"by_distance.n_merci": 0.12}  # of 500 pixels in coarse bins
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
    """As of a scanner at a third of a metre."""
    random = np.random.default_rng(0)
    truth = random.uniform(0.2, 0.4, 60_000)
    sigma = 1e-4 * random.uniform(0.1, 1, truth.size)
    frames = [(truth + random.normal(0, 1, truth.size) * sigma, sigma, truth)]
    found = metrics_of(frames).compute()["uncertainty"]
    assert found["n_merci"] == pytest.approx(exact(n_merci, frames), rel=3e-3)


def test_a_quantile_beyond_the_bins_is_no_number_and_says_why():
    """Errors of a nanometre, which only a copy of the ground truth has."""
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
    """97 % of the errors are 0; then 10 % of the sigmas are 0 where there is an error."""
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
