# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The guarantee by frame holds for new frames, whatever the errors and their correlation."""

import json
import math

import numpy as np
import pytest
from scipy.signal import lfilter

from uncertainty_depth.sigma.calibration.half_widths import (
    frame_factor,
    guarantee,
)


def test_a_frame_s_factor_is_the_smallest_that_covers_its_pixels():
    random = np.random.default_rng(0)
    sigma = random.uniform(0.1, 1, 300)
    error = np.abs(random.standard_cauchy(300)) * sigma
    factor = frame_factor(error, sigma)
    assert (error <= factor * sigma * (1 + 1e-12)).mean() >= 0.9
    assert (error <= 0.999 * factor * sigma).mean() < 0.9


@pytest.mark.parametrize("number", [9, 12, 40, 200])
def test_independent_frames_give_the_order_statistic_of_split_conformal(number):
    factors = np.random.default_rng(number).lognormal(0, 1, number)
    one_each = [[factor] for factor in factors]
    order = math.ceil((number + 1) * 0.9 - 1e-9)
    found = guarantee(one_each)
    assert found.factor == np.sort(factors)[order - 1]
    assert (found.number, found.blocks) == (number, number)


def test_too_few_frames_allow_none_and_say_how_many_would():
    some = guarantee([[1.0]] * 9)
    assert some.holds
    assert some.sentence().startswith("guarantee by frame: depth +- 1.00 sigma covers")
    none = guarantee([[1.0]] * 8)
    assert not none.holds
    assert "expected at least 9 blocks" in none.sentence()
    assert json.loads(json.dumps(none.to_mapping()))["factor"] is None


@pytest.mark.parametrize(("number", "blocks"), [(9, 1), (19, 1), (20, 2), (39, 4)])
def test_few_frames_of_one_recording_show_no_correlation_and_make_no_guarantee(number, blocks):
    factors = np.random.default_rng(0).lognormal(0, 1, number)
    found = guarantee([factors])
    assert not found.holds
    assert found.blocks == blocks
    assert f"{number} frames not used, {blocks} independent block" in found.sentence()
    assert guarantee([factors] * 9).holds, "nine recordings are nine blocks at least"


@pytest.mark.parametrize("correlation", [0.0, 0.97])
def test_nine_in_ten_new_frames_are_covered_however_the_frames_are_correlated(correlation):
    """Frames of several recordings share errors: log factors are autoregressive, and so new ones.

    The new frame is of another recording. Many runs: the rate's standard error is .013.
    """
    random = np.random.default_rng(1)
    innovation = math.sqrt(1 - correlation**2)
    covered = []
    few = 0
    for _ in range(500):
        steps = innovation * random.normal(size=(12, 300))
        recordings = np.exp(lfilter([1], [1, -correlation], steps)[:, -60:])
        found = guarantee(recordings)
        few += not found.holds
        covered.append(math.exp(random.normal()) <= found.factor)
    assert np.mean(covered) > 0.87
    assert few < 10
    if correlation == 0:
        assert np.mean(covered) < 0.94, "no more than the promise costs"
