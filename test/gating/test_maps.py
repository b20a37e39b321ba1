# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Gates and bounds by sigma, pixel by pixel against plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from uncertainty_depth.config.prediction import GatingConfig
from uncertainty_depth.gating import confident_pixels, lower_bound


def maps(pairs):
    depth, sigma = np.array(pairs, np.float32).T
    return depth[None], sigma[None]


@pytest.mark.parametrize(
    ("max_sigma", "max_relative_sigma", "expected"),
    [
        (0.5, 0.125, [True, True, False, False, False, False]),
        (0.5, 0.0, [True, True, True, False, False, False]),
        (0.0, 0.125, [True, True, False, True, False, False]),
        (0.0, 0.0, [True, True, True, True, False, False]),
    ],
)
def test_a_pixel_is_trusted_up_to_both_limits(max_sigma, max_relative_sigma, expected):
    """In order: certain, on both limits, relative sigma too big, sigma too big, unknown twice."""
    config = GatingConfig(max_sigma=max_sigma, max_relative_sigma=max_relative_sigma)
    depth, sigma = maps(
        [(8, 0), (4, 0.5), (2, 0.5), (80, 0.75), (math.nan, math.nan), (4, math.nan)]
    )
    assert_array_equal(confident_pixels(depth, sigma, config)[0], expected)


def test_depth_beyond_range_is_judged_by_its_sigma_alone():
    depth, sigma = maps([(math.inf, 0.1), (math.inf, 9), (-1, 0.1), (math.nan, 0.1)])
    assert confident_pixels(depth, sigma, GatingConfig())[0].tolist() == [
        True,
        False,
        False,
        False,
    ]
    without = GatingConfig(max_sigma=0.0, max_relative_sigma=0.0)
    assert not confident_pixels(depth, sigma, without)[0, 3]


def test_nothing_warns_of_missing_depth(recwarn):
    depth = np.full((3, 4), np.nan, np.float32)
    assert not confident_pixels(depth, depth, GatingConfig()).any()
    assert np.isnan(lower_bound(depth, depth, 1.0)).all()
    assert not recwarn.list
