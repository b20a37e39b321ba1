# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The continuous ranked probability score against its definition."""

import numpy as np
import pytest
from scipy import stats

from uncertainty_depth.calibration.scores import crps, mean_scores

LAWS = {
    "gaussian": lambda sigma: stats.norm(0, sigma),
    "laplace": lambda sigma: stats.laplace(0, sigma / np.sqrt(2)),
}


@pytest.mark.parametrize("distribution", LAWS)
@pytest.mark.parametrize("error", [0.0, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("sigma", [0.2, 1.0, 5.0])
def test_it_is_the_integral_of_the_squared_difference_of_distributions(distribution, error, sigma):
    """Gneiting and Raftery 2007, equation 20: the integral of (F(x) - 1[x >= y])^2."""
    x = np.linspace(-60, 60, 600_001)
    difference = LAWS[distribution](sigma).cdf(x) - (x >= error)
    expected = np.trapezoid(difference**2, x)
    found = crps(np.array([error]), np.array([sigma]), distribution)
    assert found == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("distribution", LAWS)
def test_the_right_size_scores_best(distribution):
    """It is proper."""
    sigma = np.random.default_rng(0).lognormal(0, 0.5, 100_000)
    error = np.abs(LAWS[distribution](sigma).rvs(random_state=1))
    factors = np.linspace(0.5, 2, 31)
    found = [crps(error, factor * sigma, distribution) for factor in factors]
    assert factors[np.argmin(found)] == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("distribution", LAWS)
def test_noise_on_sigma_never_improves_it(distribution):
    random = np.random.default_rng(0)
    sigma = random.lognormal(0, 0.5, 100_000)
    error = np.abs(LAWS[distribution](sigma).rvs(random_state=1))
    noisy = [
        crps(error, sigma * random.lognormal(0, 0.25, len(sigma)), distribution) for _ in range(5)
    ]
    assert min(noisy) > crps(error, sigma, distribution)


@pytest.mark.parametrize("distribution", LAWS)
def test_a_certain_claim_scores_its_error(distribution):
    assert crps(np.array([0.0, 2.0]), np.zeros(2), distribution) == 1.0


def test_miscoverages_of_opposite_sign_do_not_cancel():
    each = [
        {"coverage_95": 0.9, "miscoverage_95": 0.05},
        {"coverage_95": 1.0, "miscoverage_95": 0.05},
    ]
    assert mean_scores(each) == pytest.approx({"coverage_95": 0.95, "miscoverage_95": 0.05})
