# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The readings of n-MeRCI in the paper's figures, and each interval of depth scored alone."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from experiments.merci_readings import READINGS, by_depth, n_merci_curve, n_merci_of
from uncertainty_depth.metrics import n_merci

SMOOTH = st.integers(2, 60).flatmap(
    lambda n: st.tuples(*[arrays(np.float64, n, elements=st.floats(1e-3, 1e3), unique=True)] * 2)
)
TIED = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        *[arrays(np.float64, n, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5]))] * 2
    )
)
ALPHA = st.floats(0.01, 1.0)


def naive_trimmed(error, sigma, alpha):
    """The definition, pixel by pixel."""
    ratios = [
        0.0 if e == 0 else math.inf if s == 0 else e / s for e, s in zip(error, sigma, strict=True)
    ]
    number = math.ceil(alpha * len(error))
    kept = sorted(range(len(error)), key=lambda i: (ratios[i], error[i]))[:number]
    factor = ratios[kept[-1]]
    mae = sum(error[i] for i in kept) / number
    largest = max(error[i] for i in kept)
    if math.isclose(largest, mae, rel_tol=1e-12):
        return math.nan
    if math.isinf(factor):
        return math.inf
    return (sum(factor * sigma[i] for i in kept) / number - mae) / (largest - mae)


@given(TIED | SMOOTH, ALPHA)
def test_trimmed_follows_its_definition(pair, alpha):
    error, sigma = pair
    expected = naive_trimmed(error.tolist(), sigma.tolist(), alpha)
    found = n_merci_of(error, sigma, alpha, "trimmed")
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert n_merci_curve(error, sigma, [alpha, 1.0], "trimmed")[0] == pytest.approx(
        found, nan_ok=True
    )


@given(SMOOTH, ALPHA)
def test_withdrawn_is_the_plain_one_of_the_smallest_errors(pair, alpha):
    error, sigma = pair
    kept = np.argsort(error, kind="stable")[: math.ceil(alpha * len(error))]
    expected = n_merci(error[kept], sigma[kept], alpha)
    np.testing.assert_allclose(n_merci_of(error, sigma, alpha, "withdrawn"), expected, rtol=1e-9)


@given(SMOOTH, ALPHA, st.sampled_from(READINGS), st.floats(1e-6, 1e6))
def test_every_reading_has_the_scale_the_constant_and_the_oracle(pair, alpha, reading, factor):
    error, sigma = pair
    value = n_merci_of(error, sigma, alpha, reading)
    scaled = n_merci_of(error, factor * sigma, alpha, reading)
    np.testing.assert_allclose(scaled, value, rtol=1e-6, atol=1e-6)
    constant = n_merci_of(error, np.full_like(error, factor), alpha, reading)
    assert math.isnan(constant) or constant == pytest.approx(1, abs=1e-6)
    own = n_merci_of(error, error, alpha, reading)
    assert math.isnan(own) or own == pytest.approx(0, abs=1e-6)


@given(st.integers(1, 50), st.integers(0, 1000), st.sampled_from(READINGS))
def test_each_interval_of_depth_is_scored_alone_with_ties_and_empty_ones(number, seed, reading):
    rng = np.random.default_rng(seed)
    error = rng.choice([0.0, 0.5, 2.0], number)
    sigma = rng.choice([0.0, 1.0, 2.0], number)
    truth = rng.choice([0.5, 3.5, 3.6], number)
    result = by_depth(error, sigma, truth, 1.0, 0.8, reading)
    of_interval = [np.floor(truth) == k for k in range(len(result.pixels))]
    assert result.pixels.tolist() == [int(inside.sum()) for inside in of_interval]
    expected = [n_merci_of(error[m], sigma[m], 0.8, reading) for m in of_interval]
    np.testing.assert_allclose(result.n_merci, expected, rtol=1e-9, atol=1e-12)
    means = [error[m].mean() if m.any() else math.nan for m in of_interval]
    np.testing.assert_allclose(result.mae, means, rtol=1e-9)


def test_the_mean_is_over_intervals_with_enough_pixels_and_the_papers_mae_over_95_percent():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0, 60, 5000)
    sigma = 0.07 * truth * rng.lognormal(0, 0.5, 5000)
    result = by_depth(np.abs(sigma * rng.normal(size=5000)), sigma, truth, 1.0, enough=85)
    counted = result.pixels >= 85
    assert 0 < counted.sum() == result.intervals_with_enough < len(counted)
    assert result.mean_n_merci == pytest.approx(result.n_merci[counted].mean())
    ramp = by_depth(np.arange(1.0, 101.0), np.ones(100), np.full(100, 0.5), 1.0)
    assert ramp.mae[0] == pytest.approx(50.5)
    assert ramp.mae_kept[0] == pytest.approx(48.0)


@pytest.mark.parametrize("width", [0.1, 0.3, 0.7, 1.0])
def test_multiples_of_the_width_lie_within_the_edges_of_their_interval(width):
    for truth in (
        np.round(np.arange(1, 900) * width, 1),
        np.arange(1, 900) * width,
        np.nextafter(np.arange(1, 900) * width, 0),
    ):
        result = by_depth(np.ones(899), np.ones(899), truth, interval=width)
        inside = np.histogram(truth, np.append(result.edges[:-1], np.inf))[0]
        np.testing.assert_array_equal(result.pixels, inside)
        assert truth.max() < result.edges[-1]
        np.testing.assert_allclose(result.edges, np.arange(len(result.edges)) * width, rtol=1e-15)


def test_one_pixel_or_equal_errors_have_no_n_merci():
    """A quotient of roundings otherwise: values between -22 and 7e11 were seen."""
    error = np.array([0.3, 0.1, 0.1, 0.1, 0.7, 0.2])
    sigma = np.array([0.1, 0.2, 0.3, 0.7, 0.1, 0.4])
    result = by_depth(error, sigma, np.array([0.05, 0.15, 0.15, 0.15, 0.25, 0.25]), 0.1)
    assert np.isnan(result.n_merci[:2]).all()
    assert np.isfinite(result.n_merci[2])


def test_nothing_gives_nan_and_wrong_arguments_are_named():
    assert len(by_depth([], [], []).pixels) == 0
    assert math.isnan(by_depth([], [], []).mean_n_merci)
    assert all(math.isnan(n_merci_of([], [], 0.9, reading)) for reading in READINGS)
    for call, sentence in (
        (lambda: by_depth([1.0], [1.0], [1.0], 0), "interval is 0; expected a positive width"),
        (lambda: by_depth([1.0], [1.0], [-1.0]), "ground_truth contains -1; expected no negative"),
        (lambda: n_merci_of([1.0], [1.0], 0.9, "both"), "reading is 'both'; expected one of"),
    ):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            call()
