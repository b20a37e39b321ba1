# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""CRPS, interval score and interval width against integrals, loops, and what is proper."""

import math

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad

from uncertainty_depth.metrics import crps, interval_score, mpiw
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS
from uncertainty_depth.metrics.proper_scores import binned_score_sums, score_sums

LAWS = {
    "gaussian": lambda sigma: scipy.stats.norm(scale=sigma),
    "laplace": lambda sigma: scipy.stats.laplace(scale=sigma / math.sqrt(2)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("error", "sigma"), [(0.0, 1.0), (0.3, 0.5), (4.0, 0.2), (1e-3, 7.0)])
def test_crps_is_the_integral_of_the_squared_distance_of_the_distributions(law, error, sigma):
    distribution = LAWS[law](sigma)
    below, _ = quad(lambda x: distribution.cdf(x) ** 2, -40 * sigma, error, points=[0.0])
    above, _ = quad(lambda x: distribution.sf(x) ** 2, error, error + 40 * sigma)
    assert crps([error], [sigma], law) == pytest.approx(below + above, rel=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_interval_score_and_width_follow_their_definition(pixels, law):
    depth, sigma, truth = pixels
    for level in (0.5, 0.95):
        half = [float(LAWS[law](value).ppf((1 + level) / 2)) for value in sigma[:200]]
        scores = []
        for d, g, h in zip(depth, truth, half, strict=False):
            width = 2 * h
            scores.append(width + 2 / (1 - level) * max(g - d - h, d - g - h, 0))
        error = np.abs(depth - truth)[:200]
        assert interval_score(error, sigma[:200], level, law) == pytest.approx(np.mean(scores))
        assert mpiw(sigma[:200], level, law) == pytest.approx(2 * np.mean(half))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("score", [crps, interval_score])
def test_the_true_deviation_has_the_best_score(law, score):
    levels = (np.arange(20_000) + 0.5) / 20_000
    error = np.abs(LAWS[law](2.0).ppf(levels))
    scores = {
        scale: score(error, np.full_like(error, 2.0 * scale), distribution=law)
        for scale in (0.5, 0.8, 1.0, 1.25, 2.0)
    }
    assert min(scores, key=scores.get) == 1.0


@pytest.mark.parametrize("law", LAWS)
def test_a_certain_claim_scores_its_error(law):
    assert crps([0.5, 0.0], [0.0, 0.0], law) == 0.25
    assert interval_score([0.5, 0.0], [0.0, 0.0], 0.95, law) == pytest.approx(10.0)
    nothing = np.zeros(0)
    assert math.isnan(crps(nothing, nothing, law))
    assert math.isnan(interval_score(nothing, nothing, 0.9, law))
    assert math.isnan(mpiw(nothing, 0.9, law))


def test_a_level_outside_0_to_1_is_refused():
    with pytest.raises(ValueError, match="level is 95; expected a number strictly between 0 and"):
        interval_score([1.0], [1.0], 95)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, 4.0])
def test_sums_of_narrow_bins_give_the_scores_of_their_pixels(pixels, name, scale):
    depth, sigma, truth = pixels
    error = np.abs(depth - truth)
    ratio = error / sigma
    law = DISTRIBUTIONS[name]
    index = np.floor(256 * np.log2(ratio)).astype(int)
    index -= index.min()
    bins = [np.bincount(index, values) for values in (error, sigma)]
    expected = score_sums(error, sigma, ratio, law, scale)
    assert binned_score_sums(*bins, law, scale) == pytest.approx(expected, rel=1e-5)
