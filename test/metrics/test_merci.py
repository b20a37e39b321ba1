# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""n-MeRCI against a loop that follows the definition, closed forms, and by its properties."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import erfinv

from uncertainty_depth.metrics import merci, n_merci, n_merci_curve

GRID = (np.arange(200_000) + 0.5) / 200_000
# Few different values, zeros among them: ties everywhere.
TIED = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        *[arrays(np.float64, n, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5]))] * 2
    )
)
SMOOTH = st.integers(2, 60).flatmap(
    lambda n: st.tuples(*[arrays(np.float64, n, elements=st.floats(1e-3, 1e3), unique=True)] * 2)
)
ALPHA = st.floats(0.01, 1.0)


def naive(error, sigma, alpha, trimmed):
    """The definition, pixel by pixel."""
    ratios = [
        0.0 if e == 0 else math.inf if s == 0 else e / s for e, s in zip(error, sigma, strict=True)
    ]
    number = math.ceil(alpha * len(error))
    order = sorted(range(len(error)), key=lambda i: (ratios[i], error[i]))
    factor = ratios[order[number - 1]]
    kept = order[:number] if trimmed else range(len(error))
    mae = sum(error[i] for i in kept) / len(kept)
    largest = max(error[i] for i in kept) if trimmed else sorted(error)[number - 1]
    if math.isclose(largest, mae, rel_tol=1e-12):
        return math.nan
    return (
        math.inf
        if math.isinf(factor)
        else (sum(factor * sigma[i] for i in kept) / len(kept) - mae) / (largest - mae)
    )


@given(TIED | SMOOTH, ALPHA, st.booleans())
def test_follows_the_definition(pair, alpha, trimmed):
    error, sigma = pair
    expected = naive(error.tolist(), sigma.tolist(), alpha, trimmed)
    np.testing.assert_allclose(
        n_merci(error, sigma, alpha, trimmed), expected, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        n_merci_curve(error, sigma, [alpha, 1.0], trimmed)[0], expected, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("trimmed", [False, True])
def test_curve_equals_n_merci_at_every_alpha_for_every_array_type(pixels, convert, trimmed):
    depth, sigma, ground_truth = pixels
    error = np.abs(depth - ground_truth)
    curve = n_merci_curve(convert(error), convert(sigma), trimmed=trimmed)
    expected = [naive(error.tolist(), sigma.tolist(), k / 20, trimmed) for k in range(1, 21)]
    np.testing.assert_allclose(curve, expected, rtol=1e-11)
    np.testing.assert_allclose(
        [n_merci(convert(error), convert(sigma), k / 20, trimmed) for k in range(1, 21)],
        expected,
        rtol=1e-11,
    )


@given(SMOOTH, ALPHA)
def test_lambda_is_numpys_inverted_cdf(pair, alpha):
    error, sigma = pair
    expected = np.quantile(error / sigma, alpha, method="inverted_cdf") * sigma.mean()
    assert merci(error, sigma, alpha) == pytest.approx(expected, rel=1e-14)


@given(SMOOTH, ALPHA, st.booleans(), st.floats(1e-6, 1e6))
def test_blind_to_the_scale_of_sigma(pair, alpha, trimmed, scale):
    error, sigma = pair
    np.testing.assert_allclose(
        n_merci(error, scale * sigma, alpha, trimmed),
        n_merci(error, sigma, alpha, trimmed),
        rtol=1e-6,
        atol=1e-6,
    )


@given(SMOOTH, ALPHA, st.booleans(), st.floats(1e-6, 1e6))
def test_one_for_a_constant_and_zero_for_the_error_itself(pair, alpha, trimmed, constant):
    error, _ = pair
    flat = n_merci(error, np.full_like(error, constant), alpha, trimmed)
    assert math.isnan(flat) or flat == pytest.approx(1, abs=1e-6)
    own = n_merci(error, error, alpha, trimmed)
    assert math.isnan(own) or own == pytest.approx(0, abs=1e-6)


@given(SMOOTH, ALPHA, st.booleans(), st.randoms())
def test_blind_to_the_order_of_the_pixels(pair, alpha, trimmed, random):
    order = list(range(len(pair[0])))
    random.shuffle(order)
    shuffled = (values[order] for values in pair)
    np.testing.assert_allclose(
        n_merci(*shuffled, alpha, trimmed), n_merci(*pair, alpha, trimmed), rtol=1e-9, atol=1e-9
    )


@given(SMOOTH, ALPHA, ALPHA)
def test_covering_more_never_takes_shorter_error_bars(pair, first, second):
    assert merci(*pair, min(first, second)) <= merci(*pair, max(first, second))


@pytest.mark.parametrize("alpha", [0.4, 0.8, 0.9, 0.95])
def test_laplace_errors_as_gaussians_of_exponential_variance(alpha):
    """A Gaussian whose variance is exponential is Laplace.

    sigma = sqrt(2 w), w ~ Exp(1), makes e ~ Exp(1), E[sigma] = sqrt(pi / 2).
    """
    even = (np.arange(GRID.size) * (math.sqrt(5) - 1) / 2) % 1  # low discrepancy beside GRID
    sigma = np.sqrt(-2 * np.log(1 - even))
    expected = (_half_normal_quantile(alpha) * math.sqrt(math.pi / 2) - 1) / (
        -math.log(1 - alpha) - 1
    )
    assert n_merci(sigma * _half_normal_quantile(GRID), sigma, alpha) == pytest.approx(
        expected, rel=5e-3
    )


def test_calibrated_half_normal_errors_have_the_known_value_at_95_percent():
    sigma = np.repeat([1.0, 2.0, 4.0], GRID.size)
    error = sigma * np.tile(_half_normal_quantile(GRID), 3)
    # 95 % quantile of the mixture of three half-normals, by bisection on its distribution.
    low = 0.0
    high = 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if np.mean([math.erf(middle / s / math.sqrt(2)) for s in (1, 2, 4)]) < 0.95
            else (low, middle)
        )
    mean_sigma = 7 / 3
    mae = 7 / 3 * math.sqrt(2 / math.pi)
    expected = (_half_normal_quantile(0.95) * mean_sigma - mae) / (low - mae)
    assert n_merci(error, sigma) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.95])
def test_exponential_ratios_independent_of_a_uniform_sigma_trimmed(alpha):
    """Ratio ~ Exp(1), sigma ~ U(1, 3): lambda = -ln(1 - alpha).

    The errors that stay have mean 2 (1 - lambda (1 - alpha) / alpha) and maximum 3 lambda.
    """
    ratio, sigma = (
        values.reshape(-1)
        for values in np.meshgrid(-np.log(1 - GRID[100::200]), 1 + 2 * GRID[100::200])
    )
    factor = -math.log(1 - alpha)
    mae = 2 * (1 - factor * (1 - alpha) / alpha)
    assert n_merci(ratio * sigma, sigma, alpha, trimmed=True) == pytest.approx(
        (2 * factor - mae) / (3 * factor - mae), rel=5e-3
    )


def test_worse_than_nothing_is_above_one():
    error = np.linspace(1, 2, 1000)
    assert n_merci(error, 1 / error) > 1


@pytest.mark.parametrize("trimmed", [False, True])
def test_limits(convert, trimmed):
    error = convert([0.1, 0.2, 0.7])
    sigma = convert([1.0, 1.0, 0.0])
    assert n_merci(error, sigma, 1.0, trimmed) == math.inf
    assert merci(error, sigma, 1.0) == math.inf
    assert math.isnan(n_merci(convert([0.1] * 10), convert(np.arange(10.0)), 0.95, trimmed))
    assert math.isnan(n_merci(convert(np.zeros(0)), convert(np.zeros(0)), 0.95, trimmed))
    assert math.isnan(merci(convert(np.zeros(0)), convert(np.zeros(0))))
    assert np.isnan(
        n_merci_curve(convert(np.zeros(0)), convert(np.zeros(0)), trimmed=trimmed)
    ).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[1.0]], [[1.0]]), "error has shape (1, 1); expected a flat array"),
        (([1.0, 2.0], [1.0]), "sigma has 1 elements; expected 2, as many as error"),
        (([1.0], [-0.5]), "sigma contains -0.5; expected no negative value"),
        (([-1.0], [0.5]), "error contains -1; expected no negative value"),
        (([math.nan], [0.5]), "error contains nan; expected finite values"),
        (([1.0], [math.inf]), "sigma contains inf; expected finite values"),
        (([1.0], [1.0], 0.0), "alpha is 0.0; expected a number in (0, 1]"),
        (([1.0], [1.0], 1.5), "alpha is 1.5; expected a number in (0, 1]"),
    ],
)
def test_wrong_arguments_are_named(convert, arguments, sentence):
    arguments = tuple(convert(value) if isinstance(value, list) else value for value in arguments)
    for function in (n_merci, merci):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            function(*arguments)


def _half_normal_quantile(share):
    return math.sqrt(2) * erfinv(share)


@pytest.mark.parametrize("alpha", ["a", None, [0.5]])
def test_an_alpha_that_is_no_number_is_named(alpha):
    with pytest.raises(
        ValueError, match=re.escape(f"alpha is {alpha!r}; expected a number in (0, 1]")
    ):
        n_merci([1.0], [1.0], alpha)


@pytest.mark.parametrize("error", [["a"], [None, "b"], [[1.0], [1.0, 2.0]], {}])
def test_an_array_of_something_else_is_named(error):
    with pytest.raises(
        ValueError, match=re.escape(f"error is {error!r}; expected an array of numbers")
    ):
        n_merci(error, [1.0])
    with pytest.raises(ValueError, match="sigma is"):
        n_merci([1.0], error)


@given(SMOOTH, ALPHA, st.floats(1e-6, 1e6))
def test_the_withdrawn_reading_has_the_three_properties(pair, alpha, scale):
    error, sigma = pair
    value = n_merci(error, sigma, alpha, withdrawn=True)
    scaled = n_merci(error, scale * sigma, alpha, withdrawn=True)
    np.testing.assert_allclose(scaled, value, rtol=1e-6, atol=1e-6)
    constant = n_merci(error, np.full_like(error, scale), alpha, withdrawn=True)
    assert math.isnan(constant) or constant == pytest.approx(1, abs=1e-6)
    own = n_merci(error, error, alpha, withdrawn=True)
    assert math.isnan(own) or own == pytest.approx(0, abs=1e-6)


@given(SMOOTH, ALPHA)
def test_the_withdrawn_reading_is_the_plain_one_of_the_smallest_errors(pair, alpha):
    error, sigma = pair
    kept = np.argsort(error, kind="stable")[: math.ceil(alpha * len(error))]
    expected = n_merci(error[kept], sigma[kept], alpha)
    np.testing.assert_allclose(n_merci(error, sigma, alpha, withdrawn=True), expected, rtol=1e-9)


def test_two_readings_at_once_are_refused():
    with pytest.raises(ValueError, match="expected at most one reading"):
        n_merci([1.0, 2.0], [1.0, 1.0], trimmed=True, withdrawn=True)
