# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Running moments are NumPy's, whatever the chunks, and obey the law of total variance."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from uncertainty_depth.depth.estimators.estimator import Moments

SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(1, 4))
DEPTHS = hnp.arrays(np.float32, SHAPES, elements=st.floats(0.125, 100.0, width=32))


def moments_of(depths):
    """The moments of one frame, whose samples come one after the other."""
    moments = Moments()
    for one in depths:
        moments.add(torch.from_numpy(one[None]), None)
    return moments.estimate()


@given(depths=DEPTHS)
def test_in_order_it_does_not_matter_how_many_come_together(depths):
    moments = Moments()
    moments.add(torch.from_numpy(depths), None)
    found = moments.estimate()
    assert all(map(torch.equal, found[:3], moments_of(depths)[:3]))


@given(depths=DEPTHS, cuts=st.lists(st.integers(1, 11), max_size=3))
def test_parts_in_one_reduction_each_give_numpys_moments(depths, cuts):
    variances = depths[::-1] ** 2
    moments = Moments(in_order=False)
    parts = zip(*(np.split(values, sorted(cuts)) for values in (depths, variances)), strict=True)
    for depth, variance in parts:
        if len(depth):
            moments.add(torch.tensor(depth), torch.tensor(variance))
    estimate = moments.estimate()
    exact = depths.astype(np.float64)
    np.testing.assert_allclose(estimate.depth_m, exact.mean(0), rtol=1e-6)
    limit = 1e-6 * exact.max() ** 2
    np.testing.assert_allclose(estimate.epistemic, exact.var(0), rtol=1e-4, atol=limit)
    np.testing.assert_allclose(estimate.aleatoric, variances.mean(0), rtol=1e-5)
    depth, sigma = estimate.maps()
    np.testing.assert_array_equal(depth, estimate.depth_m)
    np.testing.assert_allclose(sigma**2, estimate.epistemic + estimate.aleatoric, rtol=1e-5)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_spread_far_smaller_than_the_depth_survives_float32(in_order):
    """The textbook sum of squares would lose it: 80^2 has a float32 step of 5e-4."""
    rng = np.random.default_rng(0)
    depths = (80.0 + 1e-3 * rng.standard_normal((1000, 2, 2))).astype(np.float32)
    moments = Moments(in_order)
    for part in np.split(depths, 125):
        moments.add(torch.from_numpy(part), None)
    estimate = moments.estimate()
    exact = depths.astype(np.float64).var(0)
    np.testing.assert_allclose(estimate.epistemic, exact, rtol=1e-2)
