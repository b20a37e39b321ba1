# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Histograms over logarithmic bins give fractions and quantiles to a bin."""

import numpy as np
import pytest

from uncertainty_depth.evaluation.log_bins import LogBins

BINS = LogBins(0.1, 100.0, 0.03)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(0).lognormal(1.0, 0.7, 20_000)


def test_fractions_below_equal_those_of_the_values(values):
    limits = np.array([0.5, 2.0, 3.3, 10.0, 99.0])
    expected = [(values <= limit).mean() for limit in limits]
    counts = BINS.counts(values)[None].astype(float)
    assert BINS.fractions_below(counts, limits[None])[0] == pytest.approx(expected, abs=3e-3)
    assert BINS.below(limits) @ counts[0] / len(values) == pytest.approx(expected, abs=3e-3)


@pytest.mark.parametrize("fraction", [0.05, 0.68, 0.95])
def test_quantiles_equal_those_of_the_values(values, fraction):
    counts = BINS.counts(values)[None]
    assert BINS.quantiles(counts, fraction)[0] == pytest.approx(
        np.quantile(values, fraction), rel=0.02
    )


def test_values_out_of_range_are_counted_in_the_open_bins():
    counts = BINS.counts(np.array([0.0, 0.05, 1.0, 200.0, np.inf]))
    assert counts[0] == 2
    assert counts[-1] == 2
    assert counts.sum() == 5
    assert BINS.quantiles(counts[None], 0.95)[0] == np.inf
    assert BINS.quantiles(counts[None], 0.2)[0] == BINS.low


def test_empty_histogram_gives_nan():
    empty = np.zeros((1, BINS.number))
    assert np.isnan(BINS.quantiles(empty, 0.5)).all()
    assert np.isnan(BINS.fractions_below(empty, np.array([[1.0]]))).all()
