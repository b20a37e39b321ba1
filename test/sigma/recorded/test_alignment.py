# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A relative prediction made of the truth by a known line is recovered, outliers or not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test.conftest import refused
from uncertainty_depth.sigma.recorded.alignment import MIN_POINTS, Alignment, fit

SCALES = st.floats(1e-3, 1e3)
SHIFTS = st.floats(-20, 20)
SEEDS = st.integers(0, 2**31)


def truth_of(seed, number=400):
    return np.random.default_rng(seed).uniform(0.5, 30, number)


def relative(truth, scale, shift, is_inverse):
    """What aligns to the truth by `scale` and `shift`."""
    target = 1 / truth if is_inverse else truth
    return (target - shift) / scale


@settings(max_examples=40)
@given(seed=SEEDS, scale=SCALES, shift=SHIFTS, is_inverse=st.booleans())
def test_scale_and_shift_are_recovered(seed, scale, shift, is_inverse):
    truth = truth_of(seed)
    found = fit("scale_shift", relative(truth, scale, shift, is_inverse), truth, is_inverse)
    assert found.scale == pytest.approx(scale, rel=1e-6)
    assert found.shift == pytest.approx(shift, rel=1e-6, abs=1e-6)


@settings(max_examples=30)
@given(
    seed=SEEDS, scale=SCALES, is_inverse=st.booleans(), mode=st.sampled_from(("median", "scale"))
)
def test_the_scale_is_recovered(seed, scale, is_inverse, mode):
    truth = truth_of(seed)
    found = fit(mode, relative(truth, scale, 0.0, is_inverse), truth, is_inverse)
    assert found == Alignment(pytest.approx(scale, rel=1e-9), 0.0, is_inverse)


@settings(max_examples=40)
@given(
    seed=SEEDS,
    scale=st.floats(0.1, 10),
    shift=st.floats(-5, 5),
    fraction=st.floats(0.0, 0.3),
    mode=st.sampled_from(("scale", "scale_shift")),
)
def test_outliers_do_not_move_the_fit(seed, scale, shift, fraction, mode):
    truth = truth_of(seed)
    random = np.random.default_rng(seed + 1)
    shift = shift if mode == "scale_shift" else 0.0
    prediction = relative(truth, scale, shift, False)
    outliers = random.choice(len(truth), round(fraction * len(truth)), replace=False)
    measured = truth.copy()
    measured[outliers] = random.uniform(0.5, 80, len(outliers))
    found = fit(mode, prediction, measured, False)
    assert found.scale == pytest.approx(scale, rel=1e-2)
    assert found.shift == pytest.approx(shift, abs=0.15)


@pytest.mark.parametrize("mode", ["median", "scale", "scale_shift"])
def test_too_few_points_are_told(mode):
    truth = truth_of(0, MIN_POINTS - 1)
    with refused("too_few_points_to_align", f"expected at least {MIN_POINTS}"):
        fit(mode, truth, truth, False)


def test_a_disparity_that_is_called_depth_is_told():
    truth = truth_of(0)
    with refused("alignment_failed", "--depth-type inverse_depth"):
        fit("scale_shift", 1 / truth, truth, False)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_prediction_has_no_line(value):
    with refused("alignment_failed"):
        fit("scale_shift", np.full(100, value), truth_of(0, 100), False)


def test_sigma_is_scaled_along_with_the_depth():
    depth = np.array([[1.0, 2.0]], np.float32)
    sigma = np.array([[0.1, 0.2]], np.float32)
    aligned, scaled = Alignment(3.0, 0.5).depth_and_sigma(depth, sigma, 80.0)
    np.testing.assert_allclose(aligned, [[3.5, 6.5]])
    np.testing.assert_allclose(scaled, [[0.3, 0.6]], rtol=1e-6)


def test_sigma_of_an_inverse_depth_follows_its_derivative():
    inverse = np.array([[0.5]], np.float32)
    line = Alignment(0.4, 0.05, is_inverse=True)
    aligned, sigma = line.depth_and_sigma(inverse, np.array([[1e-3]], np.float32), 80.0)
    nearer, _ = line.depth_and_sigma(inverse + np.float32(1e-3), inverse, 80.0)
    assert aligned[0, 0] == pytest.approx(4.0)
    assert sigma[0, 0] == pytest.approx(aligned[0, 0] - nearer[0, 0], rel=0.01)
