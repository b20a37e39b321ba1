# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Coverage, AUCE, likelihood, rank correlation and divergence against scipy, torch and loops."""

import math
import re

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from uncertainty_depth.metrics import auce, coverage, kl_divergence, nll, spearman


def test_coverage_counts_what_lies_inside(pixels, convert):
    depth, sigma, ground_truth = pixels
    error = np.abs(depth - ground_truth)
    levels = np.array([0.05, 0.5, 0.683, 0.95, 0.999])
    expected = [np.mean(error <= scipy.stats.norm.ppf((1 + p) / 2) * sigma) for p in levels]
    np.testing.assert_allclose(
        coverage(convert(error), convert(sigma), levels), expected, rtol=1e-12
    )
    assert coverage(convert(error), convert(sigma), 0.5) == pytest.approx(expected[1])


def test_auce_is_the_area_between_coverage_and_the_diagonal(pixels, convert):
    depth, sigma, ground_truth = pixels
    error = np.abs(depth - ground_truth)
    levels = np.arange(1, 100) / 100
    gaps = [abs(p - np.mean(error <= scipy.stats.norm.ppf((1 + p) / 2) * sigma)) for p in levels]
    assert auce(convert(error), convert(sigma)) == pytest.approx(trapezoid(gaps, levels), rel=1e-9)


def test_calibrated_errors_have_no_auce_and_a_zero_sigma_has_the_whole_area():
    grid = (np.arange(100_000) + 0.5) / 100_000
    error = scipy.stats.halfnorm.ppf(grid)
    assert auce(error, np.ones_like(error)) == pytest.approx(0, abs=1e-5)
    assert auce(error, np.zeros_like(error)) == pytest.approx(
        trapezoid(np.arange(1, 100) / 100, dx=0.01)
    )
    assert coverage(np.zeros(3), np.zeros(3), 0.5) == 1


def test_nll_is_scipys(pixels, convert):
    depth, sigma, ground_truth = pixels
    expected = -scipy.stats.norm.logpdf(depth, ground_truth, sigma).mean()
    assert nll(convert(np.abs(depth - ground_truth)), convert(sigma)) == pytest.approx(
        expected, rel=1e-12
    )


def test_nll_of_certainty(convert):
    assert nll(convert([0.1, 0.0]), convert([0.0, 0.0])) == math.inf
    assert nll(convert([0.0, 0.5]), convert([0.0, 1.0])) == -math.inf


@given(st.integers(2, 60), st.integers(0, 10_000), st.sampled_from([3, 1000]))
def test_spearman_is_scipys_with_and_without_ties(number, seed, values):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, values, (2, number)).astype(float)
    if np.ptp(first) and np.ptp(second):
        assert spearman(first, second) == pytest.approx(
            scipy.stats.spearmanr(first, second).statistic, abs=1e-12
        )
    else:
        assert math.isnan(spearman(first, second))


def test_spearman_on_every_array_type(pixels, convert):
    _, sigma, ground_truth = pixels
    assert spearman(convert(sigma), convert(ground_truth)) == pytest.approx(
        scipy.stats.spearmanr(sigma, ground_truth).statistic, abs=1e-12
    )


def test_kl_divergence_is_torchs(convert):
    rng = np.random.default_rng(0)
    mean_p, mean_q = rng.normal(size=(2, 50))
    sigma_p, sigma_q = rng.uniform(0.1, 3, (2, 50))
    p, q = (
        torch.distributions.Normal(torch.tensor(m), torch.tensor(s))
        for m, s in ((mean_p, sigma_p), (mean_q, sigma_q))
    )
    expected = torch.distributions.kl_divergence(p, q).mean().item()
    assert kl_divergence(*map(convert, (mean_p, sigma_p, mean_q, sigma_q))) == pytest.approx(
        expected, rel=1e-12
    )
    assert kl_divergence(*map(convert, (mean_p, sigma_p, mean_p, sigma_p))) == pytest.approx(
        0, abs=1e-15
    )


def test_nothing_gives_nan(convert):
    empty = convert(np.zeros(0))
    values = (
        auce(empty, empty),
        nll(empty, empty),
        spearman(empty, empty),
        coverage(empty, empty, 0.5),
        kl_divergence(empty, empty, empty, empty),
    )
    assert all(math.isnan(value) for value in values)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: coverage([1.0], [1.0], 1.0),
            "p is 1.0; expected levels strictly between 0 and 1",
        ),
        (lambda: auce([1.0], [-1.0]), "sigma contains -1; expected no negative value"),
        (lambda: nll([1.0, 2.0], [1.0]), "sigma has 1 elements; expected 2"),
        (lambda: spearman([1.0], [math.nan]), "error contains nan; expected finite values"),
        (
            lambda: kl_divergence([1.0], [0.0], [1.0], [1.0]),
            "sigma_p contains 0; expected positive values",
        ),
    ],
)
def test_wrong_arguments_are_named(call, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        call()


def test_laplace_coverage_auce_and_likelihood_are_scipys(pixels):
    depth, sigma, ground_truth = pixels
    error = np.abs(depth - ground_truth)
    law = scipy.stats.laplace(scale=sigma / math.sqrt(2))
    levels = np.array([0.05, 0.5, 0.68, 0.95])
    expected = [np.mean(error <= law.ppf((1 + p) / 2)) for p in levels]
    np.testing.assert_allclose(coverage(error, sigma, levels, "laplace"), expected, rtol=1e-12)
    assert nll(error, sigma, "laplace") == pytest.approx(-law.logpdf(error).mean(), rel=1e-12)


def test_a_calibrated_laplace_sigma_is_calibrated_as_a_laplace_only():
    grid = (np.arange(100_000) + 0.5) / 100_000
    error = -np.log(1 - grid) / math.sqrt(2)  # of deviation 1
    sigma = np.ones_like(error)
    assert auce(error, sigma, "laplace") == pytest.approx(0, abs=1e-5)
    assert auce(error, sigma) == pytest.approx(0.074, abs=1e-3)
    assert auce(error, 0.76 * sigma) < auce(error, sigma)
    with pytest.raises(ValueError, match="distribution is 'normal'; expected one of 'gaussian'"):
        auce(error, sigma, "normal")
