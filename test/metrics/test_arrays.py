# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The array operations and the bins against plain ones."""

import numpy as np
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from uncertainty_depth.metrics.arrays import (
    sorted_order,
    sorted_values,
)
from uncertainty_depth.metrics.bins import Bins

FEW = st.sampled_from([0.0, 0.1, 0.25, 1.0, 3.5e-40, 1e300])
VALUES = arrays(
    np.float64, st.integers(1, 50), elements=FEW | st.floats(0, 1e6) | st.floats(0, 100, width=32)
)


CLOSE = st.integers(0, 9).map(lambda steps: 1 + steps * 2.0**-52)
"""Values that differ in their last bits only."""


@given(arrays(np.float64, st.integers(1, 50), elements=FEW | CLOSE | st.floats(0)))
def test_values_are_sorted_and_equals_stay_in_their_order(values):
    order, ascending = sorted_order(values)
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(ascending, np.sort(values))
    np.testing.assert_array_equal(sorted_values(values), np.sort(values))


@given(VALUES, st.sampled_from([Bins(-4, 3, 0), Bins(-10, 10, 5), Bins(0, 2, 9)]))
def test_bins_hold_their_values(values, bins):
    index = bins.index(values)
    assert ((bins.edges[index] <= values) & (values < bins.edges[index + 1])).all()
    assert bins.edges.size == bins.number + 1
    inner = slice(1, bins.number - 1)
    assert (np.diff(bins.edges)[inner] <= bins.edges[inner] * 2.0**-bins.bits).all()


def test_quantiles_and_shares_of_a_smooth_density_are_far_closer_than_a_bin():
    """Bins of a quarter octave give both to 2e-3: the density within a bin is taken as a line."""
    values = scipy.stats.expon.ppf((np.arange(200_000) + 0.5) / 200_000)
    bins = Bins(-12, 8, 2)
    counts = np.bincount(bins.index(values), minlength=bins.number)
    shares = np.array([0.05, 0.3, 0.68, 0.9, 0.95])
    expected = scipy.stats.expon.ppf(shares)
    none = np.zeros(())
    found = bins.order_statistics(counts, shares * len(values), none, none)
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    np.testing.assert_allclose(bins.below(counts, expected) / len(values), shares, rtol=2e-3)
