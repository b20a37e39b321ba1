# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Maps of sigma: as the errors were drawn, as plain searches find, increasing."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from uncertainty_depth.core.errors import ModelError, SourceError
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
from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY, SigmaMap, affine, flat


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
@settings(max_examples=60)
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
@settings(max_examples=60)
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


steps = st.lists(st.floats(1e-3, 10), min_size=1, max_size=20)


@st.composite
def maps(draw):
    raw = draw(steps)
    low = draw(st.floats(0, 5))
    rises = draw(st.lists(st.floats(1e-3, 10), min_size=len(raw), max_size=len(raw)))
    return SigmaMap(
        "isotonic",
        (0.0, *np.cumsum(raw).tolist()),
        (low, *(low + np.cumsum(rises)).tolist()),
    )


@given(sigma_map=maps(), sigma=st.lists(st.floats(0, 1e3), min_size=2, max_size=50))
def test_a_greater_sigma_stays_greater_and_none_becomes_negative(sigma_map, sigma):
    ascending = np.unique(np.round(sigma, 6))
    calibrated = sigma_map(ascending)
    assert (calibrated >= 0).all()
    assert (np.diff(calibrated) > 0).all()


@given(sigma_map=maps())
def test_knots_are_met_and_the_last_segment_goes_on(sigma_map):
    raw = np.array(sigma_map.raw_m)
    calibrated = np.array(sigma_map.calibrated_m)
    np.testing.assert_allclose(sigma_map(raw), calibrated, rtol=1e-12)
    slope = (calibrated[-1] - calibrated[-2]) / (raw[-1] - raw[-2])
    assert sigma_map(np.array([raw[-1] + 3.0]))[0] == pytest.approx(
        calibrated[-1] + 3 * slope, rel=1e-9
    )


@given(sigma_map=maps())
def test_json_gives_the_same_map_back(sigma_map):
    assert SigmaMap.from_mapping(json.loads(json.dumps(sigma_map.to_mapping()))) == sigma_map


@pytest.mark.parametrize(
    "sigma_map",
    [IDENTITY, affine(0.1, 2.0), SigmaMap("isotonic", (0.0, 1.0, 2.0), (0.1, 0.5, 0.6))],
)
def test_maps_keep_shape_type_and_unknown_pixels(sigma_map):
    sigma = np.array([[0.0, np.nan], [1.0, 5.0]], np.float32)
    calibrated = sigma_map(sigma)
    assert calibrated.shape == (2, 2)
    assert calibrated.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(calibrated), np.isnan(sigma))


@pytest.mark.parametrize("power", [0.0, 1.0, 1.83, 2.0])
def test_a_map_rises_with_the_uncertainty_and_keeps_what_is_unknown(power):
    one = SigmaMap("isotonic", (0.0, 1.0, 2.0), (0.1, 0.2, 0.9), power, 0.01)
    uncertainty = np.array([0, 0.5, 1, 5, np.nan], np.float32)
    sigma = one(uncertainty, np.full(5, 2, np.float32))
    assert sigma.dtype == np.float32
    assert (np.diff(sigma[:4]) > 0).all()
    assert sigma[1] == pytest.approx(2**power * (0.1 + 0.1 * 0.51), rel=1e-6)
    assert np.isnan(sigma[4])
    assert np.isnan(one(uncertainty[:1], np.array([np.nan], np.float32)))[0] == (power > 0)
    assert SigmaMap.from_mapping(json.loads(json.dumps(one.to_mapping()))) == one


def test_a_map_of_the_depth_alone_knows_that_it_ignores_the_uncertainty():
    one = flat(0.02, 2.0, "power of depth")
    sigma = one(np.array([0.0, 1.0, 65535.0], np.float32), np.full(3, 3, np.float32))
    np.testing.assert_allclose(sigma, 0.18, rtol=1e-5)
    assert one.ignores_uncertainty
    assert not IDENTITY.ignores_uncertainty


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"raw_m": [0, 1, 1]}, "raw_m"),
        ({"calibrated_m": [0, 2, 1]}, "calibrated_m"),
        ({"calibrated_m": [0, 1]}, "3 raw and 2 calibrated"),
        ({"raw_m": [0], "calibrated_m": [0]}, "2 or more"),
        ({"raw_m": [0.1, 1, 2]}, "0.1 ->"),
        ({"calibrated_m": [-1, 1, 2]}, "-1 m"),
        ({"calibrated_m": [0, 1, float("inf")]}, "finite"),
        ({"raw_m": "nothing"}, "raw_m"),
        ({"raw_m": None}, "raw_m"),
        ({"depth_power": -1}, "depth_power"),
        ({"offset": float("nan")}, "offset"),
    ],
)
def test_what_is_no_map_is_refused_in_one_sentence(change, words):
    good = {"kind": "isotonic", "raw_m": [0, 1, 2], "calibrated_m": [0, 1, 2]}
    with pytest.raises(ModelError, match="calibration") as caught:
        SigmaMap.from_mapping({**good, **change})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
