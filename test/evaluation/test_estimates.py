# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Estimates of the verdict equal the exact metrics, and the constant baselines are optimal."""

import numpy as np
import pytest

from uncertainty_depth.evaluation.estimates import Estimates
from uncertainty_depth.metrics import nll


@pytest.fixture(scope="module")
def evaluation(evaluate_moments):
    return evaluate_moments(frames=40)


@pytest.fixture(scope="module")
def estimates(evaluation):
    return Estimates(evaluation.units)


@pytest.fixture(scope="module")
def pixels(moments_of):
    """Depth, sigma, ground truth of all frames, float64 of what was scored as float32."""
    frames = list(moments_of(40))
    return tuple(
        np.stack([getattr(frame, name) for frame in frames]).astype(np.float32).astype(np.float64)
        for name in ("depth", "sigma", "truth")
    )


def test_estimates_of_the_sample_equal_the_metrics_of_the_report(evaluation, estimates):
    metrics = evaluation.metrics.compute()
    assert estimates.rmse()[0] == pytest.approx(metrics["depth"]["rmse"], rel=1e-9)
    assert estimates.a1()[0] == pytest.approx(metrics["depth"]["a1"], rel=1e-9)
    for statistic, value in metrics["uncertainty"]["ause"].items():
        assert estimates.ause(statistic)["method"][0] == pytest.approx(value, rel=1e-9)
    assert estimates.auce("gaussian")[0] == pytest.approx(metrics["uncertainty"]["auce"], abs=1e-3)
    assert estimates.nll("gaussian")[0] == pytest.approx(metrics["uncertainty"]["nll"], rel=1e-9)
    for name, rows in estimates.fitted_nll("gaussian").items():
        assert rows[0] == pytest.approx(metrics["baselines"][name]["nll"], rel=1e-9)
    for name, rows in estimates.fitted_auce("gaussian").items():
        assert rows[0] == pytest.approx(metrics["baselines"][name]["auce"], abs=2e-3)
    assert estimates.scored_fraction()[0] == 1.0


def test_laplace_estimates_equal_those_of_the_pixels(estimates, pixels):
    depth, sigma, truth = pixels
    error = np.abs(depth - truth)
    likelihood = np.log(np.sqrt(2) * sigma) + np.sqrt(2) * error / sigma
    assert estimates.nll("laplace")[0] == pytest.approx(likelihood.mean(), rel=1e-9)
    width = -np.log(0.05) / np.sqrt(2)
    assert estimates.coverage("laplace", 0.95)[0] == (error / sigma <= width).mean()
    assert estimates.coverage("laplace", 0.95)[0] == pytest.approx(0.95, abs=0.01)
    assert estimates.sigma_factor("laplace", 0.68)[0] == pytest.approx(1.0, abs=0.03)
    assert estimates.auce("laplace")[0] < 0.01
    assert estimates.nll("gaussian")[0] == pytest.approx(nll(error.ravel(), sigma.ravel()))


def test_best_constant_depth_is_optimal(estimates, pixels):
    truth = pixels[2].ravel()
    assert estimates.constant_rmse()[0] == pytest.approx(truth.std(), rel=1e-6)
    constants = np.exp(np.linspace(-1, 3, 800))
    a1 = [np.mean(np.maximum(truth / c, c / truth) < 1.25) for c in constants]
    assert estimates.constant_a1()[0] == pytest.approx(max(a1), abs=5e-3)


def test_errors_of_a_median_depth_map_equal_those_of_the_pixels(estimates, pixels):
    truth = pixels[2]
    median_m = np.random.default_rng(5).uniform(2, 5, (16, 20))
    rows = np.arange(truth.shape[1]) * 16 // truth.shape[1]
    columns = np.arange(truth.shape[2]) * 20 // truth.shape[2]
    depth = median_m[rows][:, columns]
    a1, rmse = estimates.median_map_errors(median_m)
    assert rmse[0] == pytest.approx(np.sqrt(((depth - truth) ** 2).mean()), rel=1e-6)
    expected = (np.maximum(depth / truth, truth / depth) < 1.25).mean()
    assert a1[0] == pytest.approx(expected, abs=0.01)


def test_cells_without_a_median_are_excluded(estimates):
    median_m = np.full((16, 20), 3.0)
    half = median_m.copy()
    half[8:] = np.nan
    assert estimates.median_map_errors(half)[1][0] == pytest.approx(
        estimates.median_map_errors(median_m)[1][0], rel=0.1
    )
    assert np.isnan(estimates.median_map_errors(np.full((16, 20), np.nan))[0]).all()


def test_fraction_outside_a_depth_range_equals_that_of_the_pixels(estimates, pixels):
    truth = pixels[2]
    expected = ((truth < 1.5) | (truth > 8)).mean()
    assert estimates.outside(1.5, 8.0)[0] == pytest.approx(expected, abs=5e-3)
    assert estimates.outside(0.01, 1000.0)[0] == 0.0


def test_zero_sigma_with_errors_has_infinite_nll(evaluate_moments):
    estimates = Estimates(evaluate_moments(lambda it: (it.depth, 0 * it.sigma), 12).units)
    assert estimates.nll("laplace")[0] == np.inf
    assert estimates.sigma_factor("laplace", 0.95)[0] == np.inf
    assert estimates.coverage("gaussian", 0.95)[0] == 0.0
