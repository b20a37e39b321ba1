# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Running moments are NumPy's, whatever the chunks, and obey the law of total variance."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from uncertainty_depth.uncertainty.estimator import Moments

SHAPES = st.tuples(st.integers(1, 12), st.just(1), st.integers(1, 4), st.integers(1, 4))
DEPTHS = hnp.arrays(np.float32, SHAPES, elements=st.floats(0.125, 100.0, width=32))


def moments_of(depths, variances=None, cuts=()):
    moments = Moments()
    for part in np.split(np.arange(len(depths)), sorted(cuts)):
        if len(part):
            moments.add(
                torch.from_numpy(depths[part]),
                None if variances is None else torch.from_numpy(variances[part]),
            )
    return moments.estimate()


@given(depths=DEPTHS)
def test_mean_and_variance_are_those_of_numpy(depths):
    estimate = moments_of(depths)
    exact = depths[:, 0].astype(np.float64)
    np.testing.assert_allclose(estimate.depth_m, exact.mean(0), rtol=1e-5)
    np.testing.assert_allclose(estimate.epistemic, exact.var(0), rtol=1e-4, atol=1e-5)
    assert estimate.depth_m.dtype == torch.float32


@given(depths=DEPTHS, cuts=st.lists(st.integers(0, 12), max_size=4))
def test_chunks_do_not_change_a_bit(depths, cuts):
    whole = moments_of(depths, depths)
    parts = moments_of(depths, depths, cuts)
    assert all(torch.equal(a, b) for a, b in zip(whole, parts, strict=True))


def test_a_spread_far_smaller_than_the_depth_survives_float32():
    """The textbook sum of squares would lose it: 80^2 has a float32 step of 5e-4."""
    rng = np.random.default_rng(0)
    depths = (80.0 + 1e-3 * rng.standard_normal((1000, 1, 2, 2))).astype(np.float32)
    np.testing.assert_allclose(
        moments_of(depths).epistemic, depths[:, 0].astype(np.float64).var(0), rtol=1e-2
    )


def test_the_law_of_total_variance_in_closed_form():
    """N(1, 4) and N(3, 16): mean 2, variance (4 + 16) / 2 + ((1 - 2)^2 + (3 - 2)^2) / 2 = 11."""
    depths = np.array([1.0, 3.0], np.float32).reshape(2, 1, 1, 1)
    variances = np.array([4.0, 16.0], np.float32).reshape(2, 1, 1, 1)
    estimate = moments_of(depths, variances)
    assert (
        estimate.depth_m.item(),
        estimate.epistemic.item(),
        estimate.aleatoric.item(),
        (estimate.epistemic + estimate.aleatoric).item(),
    ) == (2.0, 1.0, 10.0, 11.0)
    depth, sigma = estimate.maps()
    assert (depth.item(), sigma.item()) == (2.0, np.float32(np.sqrt(11.0)))
