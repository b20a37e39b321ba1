# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fitted maps against the sigma that the errors were drawn with, and against plain searches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.metrics import auce, coverage, n_merci, spearman
from uncertainty_depth.sigma.calibration.fit import (
    GROUPS,
    NETWORK,
    NO_CONFIDENCE,
    Pixels,
    coverage_scale,
    grouped,
    interval_scale,
    isotonic_shape,
    maps_to_try,
)
from uncertainty_depth.sigma.calibration.sample import pixels_of


def sigma_and_error(samples):
    return pixels_of(samples)[1:]


def maps_of(sigma, error, distribution="gaussian"):
    return maps_to_try(Pixels(np.ones_like(sigma), sigma, error), NETWORK, distribution)


TRUE = {
    "scale": lambda raw: 3.0 * raw,
    "affine": lambda raw: 0.2 + 0.5 * raw,
    "isotonic": lambda raw: np.sqrt(0.01 + 0.3 * raw),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("scale", "scale"),
        ("affine", "affine"),
        ("isotonic", "isotonic"),
        ("affine", "isotonic"),
    ],
)
def test_the_sigma_that_the_errors_were_drawn_with_is_recovered(draw, kind, name):
    sigma, error = sigma_and_error([draw(TRUE[kind], frames=100)])
    raw = np.quantile(sigma, np.linspace(0.03, 0.97, 30))
    np.testing.assert_allclose(maps_of(sigma, error)[name](raw), TRUE[kind](raw), rtol=0.06)


@pytest.mark.parametrize("tail", [None, 3])
def test_no_factor_gives_a_smaller_auce_than_the_fitted_one(draw, tail):
    sigma, error = sigma_and_error([draw(lambda raw: 0.1 + raw, tail=tail)])
    found = coverage_scale(sigma, error)
    least = min(auce(error, factor * sigma) for factor in found * np.linspace(0.5, 2.0, 301))
    assert auce(error, found * sigma) <= least + 5e-4


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
def test_both_sizes_are_right_in_their_own_distribution(draw, distribution):
    sigma, error = sigma_and_error(
        [draw(lambda raw: 3 * raw, frames=100, distribution=distribution)]
    )
    for size in (coverage_scale, interval_scale):
        assert size(sigma, error, distribution) == pytest.approx(3, rel=0.02)


def test_the_size_at_95_percent_covers_tails_that_the_distribution_lacks(draw):
    sigma, error = sigma_and_error([draw(lambda raw: raw, tail=2)])
    scaled = interval_scale(sigma, error) * sigma
    assert coverage(error, scaled, 0.95) == pytest.approx(0.95, abs=1e-4)


@pytest.mark.parametrize(("power", "mismatched"), [(0.0, 0.02), (1.3, 0.02), (2.0, 0.0)])
def test_the_power_of_the_depth_is_found_beside_mismatched_pixels(power, mismatched):
    random = np.random.default_rng(0)
    depth = random.uniform(0.5, 8, 20_000)
    error = np.abs(random.normal(0, 0.01 * depth**power))
    error[random.random(len(error)) < mismatched] = 20.0
    pixels = Pixels(depth, np.ones_like(depth), error)
    found = maps_to_try(pixels, NO_CONFIDENCE, "gaussian")["power of depth"]
    assert found.depth_power == pytest.approx(power, abs=0.08)
    assert found(np.ones(2), np.array([1.0, 4.0]))[1] == pytest.approx(
        0.01 * 4**found.depth_power, rel=0.1
    )


def test_ranks_survive_every_candidate_and_a_scale_leaves_n_merci_alone(draw):
    sigma, error = sigma_and_error([draw(TRUE["isotonic"], tail=3)])
    for fitted in maps_of(sigma, error).values():
        calibrated = fitted(sigma)
        np.testing.assert_array_equal(
            np.argsort(calibrated, kind="stable"), np.argsort(sigma, kind="stable")
        )
        assert spearman(calibrated, error) == pytest.approx(spearman(sigma, error), abs=1e-12)
    scaled = maps_of(sigma, error)["scale"](sigma)
    assert n_merci(error, scaled) == pytest.approx(n_merci(error, sigma), rel=1e-9)


@given(
    seed=st.integers(0, 10_000),
    spread=st.floats(0, 2),
    anti=st.booleans(),
    number=st.integers(30, 2000),
    levels=st.integers(1, 1000),
)
@settings(deadline=None, max_examples=60)
def test_any_data_gives_strictly_increasing_maps(seed, spread, anti, number, levels):
    random = np.random.default_rng(seed)
    sigma = (
        np.ceil(random.lognormal(-1, spread, number) * levels) / levels
    )  # with ties, down to a single value
    error = np.abs(random.standard_t(2, number)) * (1 / sigma if anti else sigma)
    for kind, fitted in maps_of(sigma, error).items():
        assert (np.diff(fitted(np.unique(sigma))) > 0).all(), kind
        assert len(fitted.raw_m) <= GROUPS + 2


@given(seed=st.integers(0, 10_000), number=st.integers(1, 500), levels=st.integers(1, 50))
@settings(deadline=None, max_examples=60)
def test_groups_hold_every_pixel_and_split_no_ties(seed, number, levels):
    random = np.random.default_rng(seed)
    sigma = random.integers(1, levels + 1, number) / 7
    error = random.uniform(0.1, 1, number)
    raw, spread, counts = grouped(sigma, error)
    assert counts.sum() == number
    assert (np.diff(raw) > 0).all()
    assert (counts * raw).sum() == pytest.approx(sigma.sum())
    assert (error.min() <= spread).all()
    assert (spread <= error.max()).all()
    if len(np.unique(sigma)) <= 8 and number >= 400:
        np.testing.assert_allclose(raw, np.unique(sigma))


def test_the_isotonic_shape_meets_isotonic_regression_at_each_plateau(draw):
    sigma, error = sigma_and_error([draw(TRUE["isotonic"], tail=3)])
    raw, spread, counts = grouped(sigma, error)
    plateaus = IsotonicRegression().fit(raw, spread, sample_weight=counts).predict(raw)
    shape = isotonic_shape(raw, spread, counts)
    np.testing.assert_allclose(shape.calibrated_m[1:-1], np.unique(plateaus), rtol=1e-6)
    assert shape(np.zeros(1))[0] > 0, "no certain claim, even at a raw sigma of 0"


@pytest.mark.parametrize(
    ("sigma", "error", "words"),
    [
        (np.zeros(100), np.ones(100), "sigma is 0 for every pixel"),
        (np.ones(100), np.zeros(100), "the error is 0"),
        (np.repeat((0.0, 1.0), 50), np.repeat((1.0, 0.0), 50), "the error is 0"),
        (np.repeat((0.0, 1.0), (1999, 1)), np.ones(2000), "infinite for nearly every pixel"),
    ],
)
def test_nothing_to_fit_is_one_sentence(sigma, error, words):
    with pytest.raises(SourceError, match=words):
        maps_of(sigma, error)
