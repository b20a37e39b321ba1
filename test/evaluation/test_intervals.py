# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every headline metric has an interval around its value that a second drive lies in."""

import math

import numpy as np
import pytest

from uncertainty_depth.evaluation.estimates import Estimates
from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.evaluation.intervals import intervals, replicates
from uncertainty_depth.evaluation.summary import headline_rows

COARSE = ("uncertainty.n_merci", "uncertainty.n_merci_withdrawn", "uncertainty.merci")
BINNED = ("uncertainty.auce", "uncertainty.auce_laplace")


@pytest.fixture(scope="module")
def drives(evaluate_moments):
    return [evaluate_moments(frames=60, seed=seed) for seed in range(6)]


@pytest.fixture(scope="module")
def found(drives):
    evaluation = drives[0]
    return intervals(Estimates(evaluation.units), evaluation.summary(), evaluation.config.alpha)


def test_every_headline_metric_has_an_interval(found, drives):
    values = flatten(drives[0].summary())
    for law in ("gaussian", "laplace"):
        assert {f"uncertainty.{name}" for name in headline_rows(law)} <= found.keys()
    depth = {name for name in values if name.startswith("depth.")} - {"depth.silog"}
    assert depth <= found.keys()
    for name, interval in found.items():
        assert interval.value == values[name], name
        assert interval.low <= interval.value <= interval.high, name
        assert name == "scored_fraction" or interval.low < interval.high, name


def test_the_sample_of_the_bootstrap_is_the_metric(drives):
    evaluation = drives[0]
    values = flatten(evaluation.summary())
    for name, rows in replicates(Estimates(evaluation.units), 0.95).items():
        sample = rows()[0]
        if name in COARSE:
            assert sample == pytest.approx(values[name], rel=0.03), name
        elif name in BINNED:
            assert sample == pytest.approx(values[name], abs=1e-3), name
        else:
            assert sample == pytest.approx(values[name], rel=1e-9), name


def test_intervals_are_as_wide_as_the_spread_of_drives(found, drives):
    values = [flatten(drive.summary()) for drive in drives]
    for name, interval in found.items():
        spread = np.std([each[name] for each in values], ddof=1)
        width = (interval.high - interval.low) / 2 / 1.96
        if name != "scored_fraction":
            assert 0.25 < width / spread < 4, name


def test_what_is_infinite_has_no_interval(evaluate_moments):
    evaluation = evaluate_moments(lambda it: (it.depth, 0 * it.sigma), frames=4)
    summary = evaluation.summary()
    assert math.isinf(summary["uncertainty"]["nll"])
    names = intervals(Estimates(evaluation.units), summary, 0.95)
    assert "uncertainty.nll" not in names
    assert "uncertainty.crps" in names
