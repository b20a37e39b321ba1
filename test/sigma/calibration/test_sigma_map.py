# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The map: increasing, exact at its knots, unchanged by JSON; other values are refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY, SigmaMap, affine, flat

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
