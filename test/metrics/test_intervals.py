# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Figures per depth interval: each is the figure of its own pixels."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.metrics import by_depth, n_merci


@pytest.mark.parametrize("trimmed", [False, True])
def test_each_interval_is_scored_alone(pixels, convert, trimmed):
    depth, sigma, ground_truth = pixels
    error = np.abs(depth - ground_truth)
    result = by_depth(
        convert(error),
        convert(sigma),
        convert(ground_truth),
        interval=2.5,
        alpha=0.9,
        trimmed=trimmed,
    )
    assert result.pixels.sum() == error.size
    np.testing.assert_allclose(result.edges, np.arange(len(result.pixels) + 1) * 2.5)
    for k, (low, high) in enumerate(zip(result.edges, result.edges[1:], strict=False)):
        inside = (ground_truth >= low) & (ground_truth < high)
        assert result.pixels[k] == inside.sum()
        if inside.any():
            assert result.mae[k] == pytest.approx(error[inside].mean(), rel=1e-9)
            np.testing.assert_allclose(
                result.n_merci[k], n_merci(error[inside], sigma[inside], 0.9, trimmed), rtol=1e-9
            )


@given(st.integers(1, 50), st.integers(0, 1000), st.booleans())
def test_ties_and_empty_intervals(number, seed, trimmed):
    rng = np.random.default_rng(seed)
    error = rng.choice([0.0, 0.5, 2.0], number)
    sigma = rng.choice([0.0, 1.0, 2.0], number)
    ground_truth = rng.choice([0.5, 3.5, 3.6], number)
    result = by_depth(error, sigma, ground_truth, 1.0, 0.8, trimmed)
    expected = [
        n_merci(error[m], sigma[m], 0.8, trimmed)
        for k in range(len(result.pixels))
        for m in [np.floor(ground_truth) == k]
    ]
    np.testing.assert_allclose(result.n_merci, expected, rtol=1e-9, atol=1e-12)


def test_the_mean_is_over_intervals_with_enough_pixels(make_pixels):
    depth, sigma, ground_truth = make_pixels(5000)
    result = by_depth(np.abs(depth - ground_truth), sigma, ground_truth, 1.0, enough=85)
    counted = result.pixels >= 85
    assert 0 < counted.sum() == result.intervals_with_enough < len(counted)
    assert result.mean_n_merci == pytest.approx(result.n_merci[counted].mean())


def test_empty_input_gives_nan_and_wrong_arguments_raise():
    empty = by_depth([], [], [])
    assert len(empty.pixels) == 0
    assert math.isnan(empty.mean_n_merci)
    with pytest.raises(
        ValueError, match=re.escape("interval is 0; expected a positive width in metres")
    ):
        by_depth([1.0], [1.0], [1.0], 0)
    with pytest.raises(ValueError, match="ground_truth contains -1; expected no negative value"):
        by_depth([1.0], [1.0], [-1.0])


@pytest.mark.parametrize("width", [0.1, 0.3, 0.7, 1.0])
def test_multiples_of_the_width_lie_within_the_edges_of_their_interval(width, convert):
    for ground_truth in (
        np.round(np.arange(1, 900) * width, 1),
        np.arange(1, 900) * width,
        np.nextafter(np.arange(1, 900) * width, 0),
    ):
        result = by_depth(
            *map(convert, (np.ones(899), np.ones(899), ground_truth)), interval=width
        )
        np.testing.assert_array_equal(
            result.pixels, np.histogram(ground_truth, np.append(result.edges[:-1], np.inf))[0]
        )
        assert ground_truth.max() < result.edges[-1]
        np.testing.assert_allclose(result.edges, np.arange(len(result.edges)) * width, rtol=1e-15)


def test_one_pixel_or_equal_errors_have_no_n_merci():
    """A quotient of roundings otherwise: values between -22 and 7e11 were seen."""
    error = np.array([0.3, 0.1, 0.1, 0.1, 0.7, 0.2])
    sigma = np.array([0.1, 0.2, 0.3, 0.7, 0.1, 0.4])
    truth = np.array([0.05, 0.15, 0.15, 0.15, 0.25, 0.25])
    result = by_depth(error, sigma, truth, 0.1)
    assert np.isnan(result.n_merci[:2]).all()
    assert np.isfinite(result.n_merci[2])
    assert result.mae == pytest.approx([0.3, 0.1, 0.45])


def test_the_papers_mae_leaves_out_the_largest_errors():
    error = np.arange(1.0, 101.0)
    result = by_depth(error, np.ones(100), np.full(100, 0.5), 1.0)
    assert result.mae[0] == pytest.approx(50.5)
    assert result.mae_kept[0] == pytest.approx(48.0)


def test_the_withdrawn_reading_is_that_of_each_interval_alone():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0, 3, 2000)
    sigma = rng.uniform(0.1, 1, 2000)
    error = np.abs(sigma * rng.normal(size=2000))
    result = by_depth(error, sigma, truth, 1.0, withdrawn=True)
    expected = [
        n_merci(error[inside], sigma[inside], withdrawn=True)
        for inside in (np.floor(truth) == k for k in range(3))
    ]
    assert result.n_merci == pytest.approx(expected)
