# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A correction keeps the order of sigma, has an inverse, and moves within its limits."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from uncertainty_depth.calibration.correction import (
    IDENTITY,
    KNOTS,
    Correction,
    constant,
    increasing,
)
from uncertainty_depth.errors import MessageError

SIGMA = np.geomspace(1e-4, 200.0, 400)
octaves = st.lists(st.floats(-6, 6), min_size=len(KNOTS), max_size=len(KNOTS)).map(np.array)
corrections = octaves.map(increasing)


@given(correction=corrections)
def test_a_correction_strictly_increases_and_has_an_inverse(correction: Correction) -> None:
    corrected = correction(SIGMA)
    assert (np.diff(corrected) > 0).all()
    assert_allclose(correction.inverse(corrected), SIGMA, rtol=1e-9)


@given(first=corrections, second=corrections, max_factor=st.floats(1.01, 10))
def test_a_step_towards_another_correction_keeps_the_order_and_the_limit(
    first: Correction, second: Correction, max_factor: float
) -> None:
    step = first.towards(second, max_factor, max_factor)
    assert (np.diff(step(SIGMA)) > 0).all()
    change = step(SIGMA) / first(SIGMA)
    assert change.max() <= max_factor * (1 + 1e-9)
    assert change.min() >= 1 / max_factor * (1 - 1e-9)


def test_steps_arrive() -> None:
    correction = IDENTITY
    for _ in range(4):
        correction = correction.towards(constant(3.0), 1.5, 1.5)
    assert correction == constant(3.0)


@pytest.mark.parametrize("correction", [IDENTITY, constant(2.5), increasing(-KNOTS / 4)])
def test_unknown_and_zero_sigma_and_the_dtype_stay(correction: Correction) -> None:
    sigma = np.array([[np.nan, 0.0], [0.5, 100.0]], dtype=np.float32)
    for corrected in (correction(sigma), correction.inverse(sigma)):
        assert corrected.dtype == np.float32
        assert corrected.shape == sigma.shape
        assert np.isnan(corrected[0, 0])
        assert corrected[0, 1] == 0
    assert np.array_equal(IDENTITY(sigma), sigma, equal_nan=True)


@given(correction=corrections)
def test_plain_values_give_the_correction_again(correction: Correction) -> None:
    read = Correction.from_mapping(json.loads(json.dumps(correction.to_mapping())))
    assert_allclose(read.octaves, correction.octaves, atol=1e-12)


GOOD = IDENTITY.to_mapping()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "lists of numbers"),
        ({"sigma_m": "many", "factor": [1.0]}, "lists of numbers"),
        ({"sigma_m": [1.0], "factor": [1.0]}, "sigmas of this version"),
        (GOOD | {"factor": [1.0]}, "factors between"),
        (GOOD | {"factor": [float("nan")] * len(KNOTS)}, "factors between"),
        (GOOD | {"factor": [0.0] * len(KNOTS)}, "factors between"),
        (GOOD | {"factor": [1e9] * len(KNOTS)}, "factors between"),
        (GOOD | {"factor": [8.0, *[1.0] * (len(KNOTS) - 1)]}, "increases with sigma"),
    ],
)
def test_values_that_make_no_correction_are_refused(values: dict, expected: str) -> None:
    with pytest.raises(MessageError, match=expected):
        Correction.from_mapping(values)
