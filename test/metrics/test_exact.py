# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The exact functions against loops after their definitions, SciPy, closed forms, and rules."""

import math
import re

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import trapezoid

from uncertainty_depth.metrics import (
    auce,
    aurc,
    coverage,
    crps,
    depth_errors,
    interval_score,
    merci,
    mpiw,
    n_merci,
    nll,
    sparsification,
    spearman,
    valid_pixels,
)
from uncertainty_depth.metrics.arrays import sorted_order
from uncertainty_depth.metrics.bins import Bins

NAN = math.nan
GRID = (np.arange(100_000) + 0.5) / 100_000
DISTRIBUTIONS = {
    "gaussian": lambda scale: scipy.stats.norm(scale=scale),
    "laplace": lambda scale: scipy.stats.laplace(scale=scale / math.sqrt(2)),
}
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
STATISTICS = ("abs_rel", "rmse", "a1")
OF_ERROR = {
    "auce": auce,
    "aurc": aurc,
    "coverage": lambda error, sigma: coverage(error, sigma, 0.5),
    "crps": crps,
    "interval_score": interval_score,
    "merci": merci,
    "n_merci": n_merci,
    "nll": nll,
    "spearman": lambda error, sigma: spearman(sigma, error),
}
"""The functions of error and sigma."""


@pytest.fixture
def errors(pixels):
    """Error and sigma for 3,000 pixels."""
    depth, sigma, truth = pixels
    return np.abs(depth - truth), sigma


# What all have in common.


@pytest.mark.parametrize("name", OF_ERROR)
@pytest.mark.parametrize("places", [(0,), (1,), (0, 1)])
def test_masked_elements_are_no_values(errors, name, places):
    hidden = [np.arange(errors[0].size) % (3 + place) == 0 for place in range(2)]
    any_hidden = np.any([hidden[place] for place in places], axis=0)
    expected = OF_ERROR[name](*(values[~any_hidden] for values in errors))
    given_values = list(errors)
    for place in places:
        junk = np.where(hidden[place], 65.535, errors[place])
        given_values[place] = np.ma.array(junk, mask=hidden[place])
    assert OF_ERROR[name](*given_values) == expected


@pytest.mark.parametrize("error", STATISTICS)
def test_masked_pixels_of_maps_are_no_values(pixels, error):
    depth, sigma, truth = pixels
    hidden = np.arange(depth.size) % 3 == 0
    junk = np.ma.array(np.where(hidden, np.nan, depth), mask=hidden)
    shown = [values[~hidden] for values in pixels]
    assert sparsification(junk, sigma, truth, error).ause == sparsification(*shown, error).ause
    assert depth_errors(junk, truth) == depth_errors(shown[0], shown[2])
    assert mpiw(np.ma.array(sigma, mask=hidden)) == mpiw(shown[1])
    for values, expected in zip(valid_pixels(junk, sigma, truth, 0, 80), shown, strict=True):
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("name", OF_ERROR)
def test_arrays_of_every_kind_in_any_order_have_one_value(errors, convert, name):
    expected = OF_ERROR[name](*errors)
    order = np.random.default_rng(0).permutation(len(errors[0]))
    assert OF_ERROR[name](*map(convert, errors)) == expected
    assert OF_ERROR[name](*(values[order] for values in errors)) == pytest.approx(
        expected, rel=1e-12
    )


def test_nothing_gives_nan(convert):
    empty = convert(np.zeros(0))
    values = [compute(empty, empty) for compute in OF_ERROR.values()]
    values += depth_errors(empty, empty).values()
    values.append(mpiw(empty))
    for error in STATISTICS:
        none = sparsification(empty, empty, empty, error)
        values += [none.ause, none.aurg]
    assert np.isnan(values).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: n_merci([[1.0]], [[1.0]]), "error has shape (1, 1); expected a flat array"),
        (lambda: merci([1.0, 2.0], [1.0]), "sigma has 1 elements; expected 2, as many as error"),
        (lambda: n_merci([1.0], [-0.5]), "sigma contains -0.5; expected no negative value"),
        (lambda: auce([1.0], [-1.0]), "sigma contains -1; expected no negative value"),
        (lambda: merci([-1.0], [0.5]), "error contains -1; expected no negative value"),
        (lambda: crps([NAN], [0.5]), "error contains nan; expected finite values"),
        (lambda: aurc([1.0], [math.inf]), "sigma contains inf; expected finite values"),
        (lambda: spearman([1.0], [NAN]), "error contains nan; expected finite values"),
        (lambda: n_merci([1.0], [1.0], 0.0), "alpha is 0.0; expected a number in (0, 1]"),
        (lambda: merci([1.0], [1.0], 1.5), "alpha is 1.5; expected a number in (0, 1]"),
        (lambda: n_merci([1.0], [1.0], "a"), "alpha is 'a'; expected a number in (0, 1]"),
        (lambda: n_merci([1.0], [1.0], None), "alpha is None; expected a number in (0, 1]"),
        (lambda: n_merci([1.0], [1.0], [0.5]), "alpha is [0.5]; expected a number in (0, 1]"),
        (lambda: n_merci(["a"], [1.0]), "error is ['a']; expected an array of numbers"),
        (lambda: nll([None, "b"], [1.0]), "error is [None, 'b']; expected an array of numbers"),
        (lambda: nll([1.0], {}), "sigma is {}; expected an array of numbers"),
        (lambda: merci([[1.0], [1.0, 2.0]], [1.0]), "error is [[1.0], [1.0, 2.0]]; expected an"),
        (lambda: coverage([1.0], [1.0], 1.0), "p is 1.0; expected levels strictly between 0 and"),
        (lambda: auce([1.0], [1.0], "cauchy"), "distribution is 'cauchy'; expected one of"),
        (lambda: interval_score([1.0], [1.0], 95), "level is 95; expected a number strictly"),
        (lambda: depth_errors([1.0], [0.0]), "ground_truth contains 0; expected positive values"),
        (
            lambda: sparsification([1.0], [1.0], [1.0], "mae"),
            "error is 'mae'; expected one of 'abs_rel', 'rmse', 'a1'",
        ),
        (
            lambda: sparsification([1.0], [-1.0], [1.0]),
            "sigma contains -1; expected no negative value",
        ),
        (
            lambda: sparsification([1.0], [1.0], [0.0]),
            "ground_truth contains 0; expected positive values",
        ),
        (
            lambda: sparsification([1.0], [1.0], [1.0, 2.0]),
            "ground_truth has 2 elements; expected 1, as many as depth",
        ),
        (
            lambda: valid_pixels(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((2, 3)), 0.1, 80.0),
            "ground_truth has shape (2, 3); expected (3, 2), that of depth",
        ),
    ],
)
def test_wrong_arguments_are_named(call, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        call()


# Depth.


def test_errors_of_depth_follow_their_definitions(pixels, convert):
    depth, _, truth = pixels
    pairs = list(zip(depth.tolist(), truth.tolist(), strict=True))
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
    assert depth_errors(convert(depth), convert(truth)) == pytest.approx(expected, rel=1e-11)


def test_errors_of_depth_at_their_limits(convert):
    assert depth_errors(convert([1.25, 1.0]), convert([1.0, 1.25]))["a1"] == 0
    behind = depth_errors(convert([0.0, -2.0, 1.0]), convert([1.0, 1.0, 1.0]))
    assert behind["a3"] == pytest.approx(1 / 3)
    assert behind["mae"] == pytest.approx(4 / 3)
    assert all(behind[name] == math.inf for name in ("rmse_log", "silog", "imae", "irmse"))


def test_valid_pixels_of_maps(convert):
    inf = math.inf
    depth = np.array([[1, 2, 3, NAN, inf], [1, 2, 3, 4, 5], [9, 9, 9, 9, 9]], dtype=np.float32)
    sigma = np.array([[0, 1, -1, 1, 1], [NAN, 1, 1, 1, 1], [1, 1, 1, 1, 1]], dtype=np.float32)
    truth = np.array(
        [[1, 2, 2, 2, 2], [2, NAN, 0, 80, 81], [0.05, 0.1, -3, inf, 7]], dtype=np.float32
    )
    kept = valid_pixels(convert(depth), convert(sigma), convert(truth), 0.1, 80.0)
    assert [[float(value) for value in values] for values in kept] == [
        [1, 2, 4, 9, 9],
        [0, 1, 1, 1, 1],
        [1, 2, 80, np.float32(0.1), 7],
    ]
    zero_allowed = valid_pixels(convert(depth), convert(sigma), convert(truth), 0.0, 80.0)
    assert float(zero_allowed[2].min()) > 0


# n-MeRCI.


def naive_n_merci(error, sigma, alpha):
    """The definition, pixel by pixel."""
    ratios = [
        0.0 if e == 0 else math.inf if s == 0 else e / s for e, s in zip(error, sigma, strict=True)
    ]
    number = math.ceil(alpha * len(error))
    factor = sorted(ratios)[number - 1]
    mae = sum(error) / len(error)
    largest = sorted(error)[number - 1]
    if math.isclose(largest, mae, rel_tol=1e-12):
        return NAN
    if math.isinf(factor):
        return math.inf
    return (sum(factor * s for s in sigma) / len(sigma) - mae) / (largest - mae)


@given(TIED | SMOOTH, ALPHA)
def test_n_merci_follows_its_definition(pair, alpha):
    expected = naive_n_merci(pair[0].tolist(), pair[1].tolist(), alpha)
    np.testing.assert_allclose(n_merci(*pair, alpha), expected, rtol=1e-9, atol=1e-9)


@given(SMOOTH, ALPHA, st.floats(1e-6, 1e6))
def test_n_merci_has_the_three_properties(pair, alpha, factor):
    error, sigma = pair
    value = n_merci(error, sigma, alpha)
    np.testing.assert_allclose(n_merci(error, factor * sigma, alpha), value, rtol=1e-6, atol=1e-6)
    constant = n_merci(error, np.full_like(error, factor), alpha)
    assert math.isnan(constant) or constant == pytest.approx(1, abs=1e-6)
    own = n_merci(error, error, alpha)
    assert math.isnan(own) or own == pytest.approx(0, abs=1e-6)


@given(SMOOTH, ALPHA, ALPHA)
def test_lambda_is_numpys_inverted_cdf_and_covering_more_takes_longer_bars(pair, first, second):
    error, sigma = pair
    expected = np.quantile(error / sigma, first, method="inverted_cdf") * sigma.mean()
    assert merci(error, sigma, first) == pytest.approx(expected, rel=1e-14)
    assert merci(*pair, min(first, second)) <= merci(*pair, max(first, second))


# The size of sigma.


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_size_is_scipys(errors, distribution):
    error, sigma = errors
    of_pixels = DISTRIBUTIONS[distribution](sigma)
    levels = np.arange(1, 100) / 100
    expected = np.array([np.mean(error <= of_pixels.ppf((1 + p) / 2)) for p in levels])
    np.testing.assert_allclose(coverage(error, sigma, levels, distribution), expected, rtol=1e-12)
    assert coverage(error, sigma, 0.5, distribution) == pytest.approx(expected[49])
    area = trapezoid(np.abs(levels - expected), levels)
    assert auce(error, sigma, distribution) == pytest.approx(area, rel=1e-9)
    likelihood = -of_pixels.logpdf(error).mean()
    assert nll(error, sigma, distribution) == pytest.approx(likelihood, rel=1e-12)
    for level in (0.5, 0.95):
        half = of_pixels.ppf((1 + level) / 2)
        score = 2 * half + 2 / (1 - level) * np.maximum(error - half, 0)
        assert interval_score(error, sigma, level, distribution) == pytest.approx(score.mean())
        assert mpiw(sigma, level, distribution) == pytest.approx(2 * half.mean())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("distance", [0.0, 1e-9, 0.3, 1.7, 8.99, 9.0, 40.0])
def test_crps_is_the_integral_of_its_definition(distribution, distance):
    cdf = DISTRIBUTIONS[distribution](1.0).cdf

    def squared_gap(value):
        return (cdf(value) - (value >= distance)) ** 2

    below = scipy.integrate.quad(squared_gap, -60, min(distance, 59), limit=200)[0]
    above = scipy.integrate.quad(squared_gap, distance, distance + 60, limit=200)[0]
    expected = 0.7 * (below + above)
    assert crps([0.7 * distance], [0.7], distribution) == pytest.approx(
        expected, rel=1e-6, abs=1e-9
    )


def test_a_right_laplace_sigma_has_the_documented_auce_as_a_gaussian():
    error = np.abs(DISTRIBUTIONS["laplace"](1.0).ppf(GRID))
    assert auce(error, np.ones_like(error)) == pytest.approx(0.074, abs=1e-3)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_zero_sigma_is_a_certain_claim(convert, distribution):
    zero = convert([0.0, 0.0])
    assert crps(convert([0.5, 0.0]), zero, distribution) == 0.25
    assert interval_score(convert([0.5, 0.0]), zero, 0.95, distribution) == pytest.approx(10.0)
    assert auce(convert([0.5, 1.0]), zero, distribution) == pytest.approx(
        trapezoid(np.arange(1, 100) / 1e4)
    )
    assert coverage(zero, zero, 0.5, distribution) == 1
    assert nll(convert([0.1, 0.0]), zero, distribution) == math.inf
    assert nll(convert([0.0, 0.5]), convert([0.0, 1.0]), distribution) == -math.inf


# The order of sigma.


@given(st.integers(2, 60), st.integers(0, 10_000), st.sampled_from([3, 1000]))
def test_spearman_is_scipys_with_and_without_ties(number, seed, values):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, values, (2, number)).astype(float)
    if np.ptp(first) and np.ptp(second):
        expected = scipy.stats.spearmanr(first, second).statistic
        assert spearman(first, second) == pytest.approx(expected, abs=1e-12)
    else:
        assert math.isnan(spearman(first, second))


@given(st.integers(1, 30), st.integers(0, 1000))
def test_aurc_is_the_mean_of_the_means_of_the_surest(number, seed):
    rng = np.random.default_rng(seed)
    error = rng.uniform(0, 3, number)
    sigma = rng.permutation(number) + 1.0
    ordered = error[np.argsort(sigma)]
    expected = np.mean([ordered[:kept].mean() for kept in range(1, number + 1)])
    assert aurc(error, sigma) == pytest.approx(expected, rel=1e-12)
    assert aurc(error, np.ones(number)) == pytest.approx(error.mean(), rel=1e-12)


def naive_poggi(depth, sigma, truth, error):
    """Percentile and mask for every step, as the published evaluation does it."""
    values = {
        "abs_rel": np.abs(truth - depth) / truth,
        "rmse": (truth - depth) ** 2,
        "a1": np.maximum(truth / depth, depth / truth),
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
    return np.arange(51) / 50, *map(np.array, curves), np.full(51, reduce(values))


@pytest.mark.parametrize("error", STATISTICS)
def test_sparsification_follows_its_source(pixels, convert, error):
    fractions, removal, oracle, random = naive_poggi(*pixels, error)
    result = sparsification(*map(convert, pixels), error)
    curves = (result.fractions, result.sparsification, result.oracle, result.random)
    for curve, expected in zip(curves, (fractions, removal, oracle, random), strict=True):
        np.testing.assert_allclose(curve, expected, rtol=1e-10, atol=1e-12)
    area = trapezoid(removal - oracle, fractions)
    gain = trapezoid(random - removal, fractions)
    assert (result.ause, result.aurg) == pytest.approx((area, gain), rel=1e-9, abs=1e-12)


@given(st.integers(1, 70), st.integers(0, 1000), st.sampled_from(["abs_rel", "rmse", "a1"]))
def test_poggi_keeps_ties_of_the_percentile(number, seed, error):
    rng = np.random.default_rng(seed)
    depth = rng.choice([1.0, 2.0, 4.0], number)
    sigma = rng.choice([0.0, 0.1, 0.3], number)
    truth = rng.choice([1.0, 3.0], number)
    _, removal, oracle, _ = naive_poggi(depth, sigma, truth, error)
    result = sparsification(depth, sigma, truth, error)
    np.testing.assert_allclose(result.sparsification, removal, rtol=1e-12)
    np.testing.assert_allclose(result.oracle, oracle, rtol=1e-12)


@pytest.mark.parametrize("error", STATISTICS)
def test_equal_sigmas_count_as_in_any_order(pixels, error):
    """A constant removes at random."""
    depth, sigma, truth = pixels
    order = np.random.default_rng(1).permutation(len(depth))
    steps = np.ceil(sigma)
    found, shuffled = (
        sparsification(depth[some], steps[some], truth[some], error)
        for some in (slice(None), order)
    )
    assert shuffled.ause == pytest.approx(found.ause, rel=1e-12)
    constant = sparsification(depth, np.full_like(depth, 0.3), truth, error)
    # Only the last point (1, 0) lies below random removal: 0.02 by the full error, halved.
    assert constant.aurg == pytest.approx(0.01 * constant.random[0], abs=1e-12)
    assert sparsification([2.0], [0.1], [1.0], error).ause == pytest.approx(0)


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


@given(VALUES, st.sampled_from([Bins(-4, 3, 0), Bins(-10, 10, 5), Bins(0, 2, 9)]))
def test_bins_hold_their_values(values, bins):
    index = bins.index(values)
    assert ((bins.edges[index] <= values) & (values < bins.edges[index + 1])).all()
    assert bins.edges.size == bins.number + 1
    inner = slice(1, bins.number - 1)
    assert (np.diff(bins.edges)[inner] <= bins.edges[inner] * 2.0**-bins.bits).all()


@pytest.mark.parametrize("octaves", [-3, 2])
def test_moved_bins_hold_what_they_would_have_counted_and_open_ones_keep_theirs(octaves):
    """Where pixels lie in an open bin is not known."""
    bins = Bins(-4, 3, 1)
    values = np.geomspace(1e-3, 1e3, 500)
    counts = np.bincount(bins.index(values), minlength=bins.number)
    inner = values[(values >= 2.0**-4) & (values < 2.0**3)]
    expected = np.bincount(bins.at(octaves).index(inner), minlength=bins.number)
    expected[[0, -1]] += counts[[0, -1]]
    np.testing.assert_array_equal(bins.moved(counts, octaves), expected)


def test_quantiles_and_shares_of_a_smooth_density_are_far_closer_than_a_bin():
    """Bins of a quarter octave give both to 2e-3: the density within a bin is taken as a line."""
    values = scipy.stats.expon.ppf((np.arange(200_000) + 0.5) / 200_000)
    bins = Bins(-12, 8, 2)
    counts = np.bincount(bins.index(values), minlength=bins.number)
    shares = np.array([0.05, 0.3, 0.68, 0.9, 0.95])
    expected = scipy.stats.expon.ppf(shares)
    none = np.zeros(())
    found = bins.order_statistics(counts, shares * len(values), none, none, (none, none + np.inf))
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    np.testing.assert_allclose(bins.below(counts, expected) / len(values), shares, rtol=2e-3)
