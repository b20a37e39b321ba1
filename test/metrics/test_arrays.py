"""The fast array operations against the plain ones."""

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from uncertainty_depth.metrics.arrays import NUMPY, arrays_of
from uncertainty_depth.metrics.bins import Bins

FEW = st.sampled_from([0.0, 0.1, 0.25, 1.0, 3.5e-40, 1e300])
VALUES = arrays(
    np.float64, st.integers(1, 50), elements=FEW | st.floats(0, 1e6) | st.floats(0, 100, width=32)
)


@given(VALUES)
def test_order_is_stable(values):
    expected = np.argsort(values, kind="stable")
    np.testing.assert_array_equal(NUMPY.argsort(values), expected)
    tensor = torch.from_numpy(values)
    np.testing.assert_array_equal(arrays_of(tensor).argsort(tensor), expected)


def test_order_of_values_that_differ_in_their_last_bits_and_of_many():
    rng = np.random.default_rng(0)
    for values in (
        1 + rng.integers(0, 5, 300) * 2.0**-52,
        rng.random(200_000).astype(np.float32).astype(np.float64),
        rng.random(200_000),
    ):
        np.testing.assert_array_equal(NUMPY.argsort(values), np.argsort(values, kind="stable"))


def test_order_of_negative_and_signed_zeros_is_stable():
    values = np.array([0.0, -0.0, -1.5, 2.0, -0.0, 0.0])
    np.testing.assert_array_equal(NUMPY.argsort(values), np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(NUMPY.argsort(np.abs(values) * -0.0), np.arange(6))


@given(VALUES)
def test_average_ranks_are_scipys(values):
    ordered = np.sort(values)
    expected = scipy.stats.rankdata(ordered) - (len(values) + 1) / 2
    np.testing.assert_array_equal(NUMPY.average_ranks(ordered), expected)
    tensor = torch.from_numpy(ordered)
    np.testing.assert_array_equal(arrays_of(tensor).average_ranks(tensor), expected)


@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 10)), st.data())
def test_prefix_sums_of_counts_in_any_order_with_repeats(values, data):
    counts = np.array(data.draw(st.lists(st.integers(0, len(values)), min_size=1, max_size=9)))
    expected = [values[:count].sum() for count in counts]
    np.testing.assert_allclose(
        NUMPY.prefix_sums(values, counts), expected, rtol=1e-12, atol=1e-300
    )
    tensor = torch.from_numpy(values)
    np.testing.assert_allclose(
        arrays_of(tensor).prefix_sums(tensor, counts), expected, rtol=1e-12, atol=1e-300
    )


@given(VALUES, st.sampled_from([Bins(-4, 3, 0), Bins(-10, 10, 5), Bins(0, 2, 9)]))
def test_bins_hold_their_values(values, bins):
    index = bins.index(NUMPY, values, (values.min(), values.max()))
    assert ((bins.edges[index] <= values) & (values < bins.edges[index + 1])).all()
    assert bins.edges.size == bins.number + 1
    inner = slice(1, bins.number - 1)
    assert (np.diff(bins.edges)[inner] <= bins.edges[inner] * 2.0**-bins.bits).all()
    tensor = torch.from_numpy(values)
    np.testing.assert_array_equal(bins.index(arrays_of(tensor), tensor, (0.0, np.inf)), index)


@given(VALUES, st.integers(0, 5), st.integers(-12, 0), st.integers(1, 12))
def test_coarse_bins_are_those_of_the_values(values, bits, low, high):
    fine, wanted = Bins(-12, 12, 6), Bins(low, high, bits)
    span = (values.min(), values.max())
    expected = wanted.index(NUMPY, values, span)
    np.testing.assert_array_equal(
        fine.coarse(NUMPY, fine.index(NUMPY, values, span), wanted, span), expected
    )


def test_order_statistics_are_within_a_bin_and_exact_at_the_ends():
    rng = np.random.default_rng(0)
    values, bins = np.sort(10 ** rng.uniform(-3, 4, 5000)), Bins(-20, 20, 10)
    counts = np.bincount(bins.index(NUMPY, values, (values[0], values[-1])), minlength=bins.number)
    numbers = np.arange(1, 5001)
    found = bins.order_statistics(counts, numbers, (values[0], values[-1]))
    np.testing.assert_allclose(found, values, rtol=2.0**-10)
    assert found[-1] == values[-1]


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_operations_are_chosen_by_the_arguments(make):
    assert (arrays_of([1.0], make([1.0])).lib is np) == (make is np.asarray)
