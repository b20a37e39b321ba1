# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Each variant of sparsification against a loop after its source, and by its properties."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from uncertainty_depth.metrics import sparsification

CASES = [
    ("poggi", "abs_rel"),
    ("poggi", "rmse"),
    ("poggi", "a1"),
    ("gustafsson", "rmse"),
    ("ilg", "mae"),
]


def naive_poggi(depth, sigma, ground_truth, error):
    """Percentile and mask for every step, as the published evaluation does it."""
    values = {
        "abs_rel": np.abs(ground_truth - depth) / ground_truth,
        "rmse": (ground_truth - depth) ** 2,
        "a1": np.maximum(ground_truth / depth, depth / ground_truth),
    }[error]
    reduce = {
        "abs_rel": np.mean,
        "rmse": lambda v: np.sqrt(v.mean()),
        "a1": lambda v: (v >= 1.25).mean(),
    }[error]
    curves = []
    for key in (-sigma, -values):
        thresholds = [np.percentile(key, 100.0 / 50 * step) for step in range(50)]
        curves.append([reduce(values[key >= threshold]) for threshold in thresholds] + [0.0])
    return (
        np.arange(51) / 50,
        np.array(curves[0]),
        np.array(curves[1]),
        np.full(51, reduce(values)),
    )


def naive_kept_number(depth, sigma, ground_truth, error):
    """Sort, keep a number of pixels, divide by the first value.

    gustafsson for rmse, ilg for the mean error.
    """
    values = (ground_truth - depth) ** 2 if error == "rmse" else np.abs(ground_truth - depth)
    reduce = (lambda v: np.sqrt(v.mean())) if error == "rmse" else np.mean
    fractions = (
        np.arange(start=0.0, stop=1.0, step=0.01) if error == "rmse" else np.arange(100) / 100
    )
    numbers = [
        int((1.0 - f) * len(values)) if error == "rmse" else (100 - step) * len(values) // 100
        for step, f in enumerate(fractions)
    ]
    curves = [
        np.array([reduce(values[np.argsort(key)][:number]) for number in numbers])
        for key in (sigma, values)
    ]
    return fractions, curves[0] / curves[0][0], curves[1] / curves[1][0], np.ones(100)


@pytest.mark.parametrize(("variant", "error"), CASES)
def test_follows_its_source(pixels, convert, variant, error):
    loop = naive_poggi if variant == "poggi" else naive_kept_number
    fractions, removal, oracle, random = loop(*pixels, error)
    result = sparsification(*map(convert, pixels), error, variant)
    curves = (result.fractions, result.sparsification, result.oracle, result.random)
    for curve, expected in zip(curves, (fractions, removal, oracle, random), strict=True):
        np.testing.assert_allclose(curve, expected, rtol=1e-10, atol=1e-12)
    assert result.ause == pytest.approx(trapezoid(removal - oracle, fractions), rel=1e-9)
    assert result.aurg == pytest.approx(
        trapezoid(random - removal, fractions), rel=1e-9, abs=1e-12
    )
    assert (result.variant, result.error) == (variant, error)


@given(st.integers(1, 70), st.integers(0, 1000), st.sampled_from(["abs_rel", "rmse", "a1"]))
def test_poggi_keeps_ties_of_the_percentile(number, seed, error):
    rng = np.random.default_rng(seed)
    depth = rng.choice([1.0, 2.0, 4.0], number)
    sigma = rng.choice([0.0, 0.1, 0.3], number)
    ground_truth = rng.choice([1.0, 3.0], number)
    _, removal, oracle, _ = naive_poggi(depth, sigma, ground_truth, error)
    result = sparsification(depth, sigma, ground_truth, error)
    np.testing.assert_allclose(result.sparsification, removal, rtol=1e-12)
    np.testing.assert_allclose(result.oracle, oracle, rtol=1e-12)


@pytest.mark.parametrize(("variant", "error"), CASES)
def test_blind_to_the_order_of_the_pixels_even_with_ties(variant, error):
    rng = np.random.default_rng(1)
    depth = rng.uniform(1, 5, 500)
    sigma = rng.choice([0.1, 0.2, 0.4], 500)
    ground_truth = rng.uniform(1, 5, 500)
    order = rng.permutation(500)
    first, second = (
        sparsification(depth[o], sigma[o], ground_truth[o], error, variant)
        for o in (np.arange(500), order)
    )
    assert first.ause == pytest.approx(second.ause, rel=1e-12)


@pytest.mark.parametrize(("variant", "error"), CASES)
def test_only_the_order_of_sigma_matters(pixels, variant, error):
    depth, sigma, ground_truth = pixels
    first, second = (
        sparsification(depth, values, ground_truth, error, variant)
        for values in (sigma, np.log1p(sigma) * 7)
    )
    assert first.ause == pytest.approx(second.ause, rel=1e-12)


@pytest.mark.parametrize(("variant", "error"), CASES)
def test_the_true_error_as_sigma_has_no_area(pixels, variant, error):
    depth, _, ground_truth = pixels
    absolute = np.abs(depth - ground_truth)
    own = {
        "abs_rel": absolute / ground_truth,
        "a1": np.maximum(depth / ground_truth, ground_truth / depth),
    }.get(error, absolute)
    assert sparsification(depth, own, ground_truth, error, variant).ause == pytest.approx(
        0, abs=1e-12
    )


@pytest.mark.parametrize(("variant", "error"), CASES)
def test_a_constant_sigma_gains_nothing(pixels, variant, error):
    """Only poggi's last point (1, 0) lies below random removal: 0.02 by the full error, halved."""
    depth, _, ground_truth = pixels
    result = sparsification(depth, np.full_like(depth, 0.3), ground_truth, error, variant)
    assert result.aurg == pytest.approx(
        0.01 * result.random[0] if variant == "poggi" else 0, abs=1e-12
    )


def test_exponential_errors_have_the_known_oracle():
    """The mean of the smallest 1 - f of exponential errors is 1 + f ln f / (1 - f)."""
    error = -np.log(1 - (np.arange(100_000) + 0.5) / 100_000)
    result = sparsification(
        10 + error, error[::-1].copy(), np.full_like(error, 10.0), "mae", "ilg"
    )
    f = result.fractions[1:]
    np.testing.assert_allclose(result.oracle[1:], 1 + f * np.log(f) / (1 - f), rtol=2e-3)
    # The worst order keeps the largest errors: their mean is 1 - ln(1 - f), f being removed.
    np.testing.assert_allclose(result.sparsification[1:], 1 - np.log(1 - f), rtol=2e-3)


@pytest.mark.parametrize(("variant", "error"), CASES)
def test_one_pixel_and_none(convert, variant, error):
    one = sparsification(convert([2.0]), convert([0.1]), convert([1.0]), error, variant)
    assert one.ause == pytest.approx(0)
    none = sparsification(*[convert(np.zeros(0))] * 3, error, variant)
    assert math.isnan(none.ause)
    assert math.isnan(none.aurg)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ([1.0], [1.0], [1.0], None, "mine"),
            "variant is 'mine'; expected one of 'poggi', 'gustafsson', 'ilg'",
        ),
        (
            ([1.0], [1.0], [1.0], "mae", "poggi"),
            "error for variant 'poggi' is 'mae'; expected one of 'abs_rel', 'rmse', 'a1'",
        ),
        (
            ([1.0], [1.0], [1.0], "a1", "ilg"),
            "error for variant 'ilg' is 'a1'; expected one of 'mae'",
        ),
        (([1.0], [-1.0], [1.0]), "sigma contains -1; expected no negative value"),
        (([1.0], [1.0], [0.0]), "ground_truth contains 0; expected positive values"),
        (([1.0], [1.0], [1.0, 2.0]), "ground_truth has 2 elements; expected 1, as many as depth"),
    ],
)
def test_wrong_arguments_are_named(arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        sparsification(*arguments)
