# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Errors of depth against a loop, closed forms, and the choice of valid pixels."""

import math
import re

import numpy as np
import pytest

from uncertainty_depth.metrics import depth_errors, valid_pixels


def test_follows_the_definitions(pixels, convert):
    depth, _, ground_truth = pixels
    pairs = list(zip(depth.tolist(), ground_truth.tolist(), strict=True))
    number = len(pairs)
    logs = [math.log(d) - math.log(g) for d, g in pairs]
    expected = {
        "mae": sum(abs(d - g) for d, g in pairs) / number,
        "abs_rel": sum(abs(d - g) / g for d, g in pairs) / number,
        "sq_rel": sum((d - g) ** 2 / g for d, g in pairs) / number,
        "rmse": math.sqrt(sum((d - g) ** 2 for d, g in pairs) / number),
        "rmse_log": math.sqrt(sum(x**2 for x in logs) / number),
        "silog": math.sqrt(sum((x - sum(logs) / number) ** 2 for x in logs) / number),
        "imae": 1000 * sum(abs(1 / d - 1 / g) for d, g in pairs) / number,
        "irmse": 1000 * math.sqrt(sum((1 / d - 1 / g) ** 2 for d, g in pairs) / number),
        **{
            f"a{k}": sum(max(d / g, g / d) < 1.25**k for d, g in pairs) / number for k in (1, 2, 3)
        },
    }
    assert depth_errors(convert(depth), convert(ground_truth)) == pytest.approx(
        expected, rel=1e-11
    )


def test_a_scaled_depth_has_known_errors():
    ground_truth = np.linspace(1, 50, 1000)
    errors = depth_errors(1.5 * ground_truth, ground_truth)
    assert errors["abs_rel"] == pytest.approx(0.5)
    assert errors["rmse_log"] == pytest.approx(math.log(1.5))
    assert errors["silog"] == pytest.approx(0, abs=1e-14)
    assert [errors[f"a{k}"] for k in (1, 2, 3)] == [0, 1, 1]


def test_a_factor_of_exactly_a_quarter_is_not_accurate(convert):
    assert depth_errors(convert([1.25, 1.0]), convert([1.0, 1.25]))["a1"] == 0


def test_a_depth_that_is_not_positive_is_within_no_factor(convert):
    errors = depth_errors(convert([0.0, -2.0, 1.0]), convert([1.0, 1.0, 1.0]))
    assert errors["a3"] == pytest.approx(1 / 3)
    assert errors["mae"] == pytest.approx(4 / 3)
    assert errors["rmse_log"] == errors["silog"] == math.inf
    assert errors["imae"] == errors["irmse"] == math.inf


def test_nothing_gives_nan(convert):
    assert all(
        math.isnan(value)
        for value in depth_errors(convert(np.zeros(0)), convert(np.zeros(0))).values()
    )


def test_valid_pixels_of_maps(convert):
    nan = math.nan
    inf = math.inf
    depth = np.array([[1, 2, 3, nan, inf], [1, 2, 3, 4, 5], [9, 9, 9, 9, 9]], dtype=np.float32)
    sigma = np.array([[0, 1, -1, 1, 1], [nan, 1, 1, 1, 1], [1, 1, 1, 1, 1]], dtype=np.float32)
    truth = np.array(
        [[1, 2, 2, 2, 2], [2, nan, 0, 80, 81], [0.05, 0.1, -3, inf, 7]], dtype=np.float32
    )
    kept = valid_pixels(convert(depth), convert(sigma), convert(truth), 0.1, 80.0)
    assert [[float(value) for value in values] for values in kept] == [
        [1, 2, 4, 9, 9],
        [0, 1, 1, 1, 1],
        [1, 2, 80, np.float32(0.1), 7],
    ]
    zero_allowed = valid_pixels(convert(depth), convert(sigma), convert(truth), 0.0, 80.0)
    assert float(zero_allowed[2].min()) > 0


def test_wrong_shapes_are_named():
    with pytest.raises(
        ValueError,
        match=re.escape("ground_truth has shape (2, 3); expected (3, 2), that of depth"),
    ):
        valid_pixels(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((2, 3)), 0.1, 80.0)
    with pytest.raises(ValueError, match="ground_truth contains 0; expected positive values"):
        depth_errors([1.0], [0.0])
