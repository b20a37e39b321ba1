# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The posterior against a Gaussian process written down densely, and what must not change it."""

import math
from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.sigma.error_prior import ErrorPrior
from uncertainty_depth.sigma.posterior import (
    CORNER_OWN,
    MAX_WITNESSES,
    corrected,
    posterior,
)

SHAPE = (30, 40)
"""One pixel a grid cell, so that nothing is interpolated."""


def network(seed=0, factor=1.0):
    rng = np.random.default_rng(seed)
    depth = (factor * rng.uniform(1, 4, SHAPE)).astype(np.float32)
    return DepthPrediction(depth, depth * rng.uniform(0.1, 0.3, SHAPE).astype(np.float32))


def measured(prediction, count=12, seed=1, common=0.0, factor=1.3):
    """`count` pixels of a depth that is `factor` times the predicted one, with noise."""
    rng = np.random.default_rng(seed)
    at = rng.choice(prediction.depth_m.size, count, replace=False)
    rows, columns = np.divmod(at, SHAPE[1])
    noise = np.exp(rng.normal(0, 0.03, count))
    depth = prediction.depth_m[rows, columns].astype(np.float64) * factor * noise
    return Measurements(
        rows, columns, depth, np.full(count, 0.03), common * rng.uniform(0.5, 1, count)
    )


def covariance_of(prediction, own=0.0, image=None):
    """Two pixels' prior covariance (row, column), written down one by one."""
    relative = (prediction.sigma_m / prediction.depth_m).astype(np.float64)
    log_depth = np.log(prediction.depth_m.astype(np.float64))
    lab = np.zeros((*SHAPE, 3))
    if image is not None:
        lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB).astype(np.float64) * (100 / 255, 1, 1)

    prior = ErrorPrior()

    def matern(one, other, length, depth_length, colour_length):
        place = math.hypot(one[0] - other[0], one[1] - other[1]) / SHAPE[1] / length
        depth = (log_depth[one] - log_depth[other]) / depth_length
        colour = np.linalg.norm(lab[one] - lab[other]) / colour_length
        distance = math.sqrt(3) * math.hypot(place, depth, colour)
        return (1 + distance) * math.exp(-distance)

    def covariance(one, other):
        lengths = (prior.wide_length, prior.wide_depth_length, math.inf)
        shared = prior.common**2 + prior.wide**2 * matern(one, other, *lengths)
        lengths = (prior.local_length, prior.local_depth_length, prior.colour_length)
        local = prior.local**2 * matern(one, other, *lengths) + own * (one == other)
        return shared * relative.mean() ** 2 + local * relative[one] * relative[other]

    return covariance


PIXELS = [(row, column) for row in range(SHAPE[0]) for column in range(SHAPE[1])]


def measured_system(prediction, measurements, own, result, image=None):
    """The prior covariance, the measured pixels, their covariance with noise, and residuals."""
    covariance = covariance_of(prediction, own, image)
    used = list(zip(measurements.rows.tolist(), measurements.columns.tolist(), strict=True))
    total = result.sigma_factor**2 * np.array([[covariance(a, b) for b in used] for a in used])
    total += np.outer(measurements.common_log_sigma, measurements.common_log_sigma)
    total += np.diag(measurements.log_sigma**2 / result.weights)
    residual = np.log(measurements.depth_m)
    residual = residual - np.log([float(prediction.depth_m[a]) for a in used])
    return covariance, used, total, residual


def dense(prediction, measurements, own, result, image=None):
    """Rasmussen and Williams 2006, equations 2.23 and 2.24, pixel by pixel, in loops.

    Only pixels that were not measured: a measured one's own part is what it is.
    """
    system = measured_system(prediction, measurements, own, result, image)
    covariance, used, total, residual = system
    others = [pixel for pixel in PIXELS if pixel not in used]
    variance = result.sigma_factor**2
    inverse = np.linalg.inv(total)
    to_used = variance * np.array([[covariance(a, b) for b in used] for a in others])
    mean = to_used @ inverse @ residual
    left = variance * np.array([covariance(a, a) for a in others])
    left -= np.einsum("ij,jk,ik->i", to_used, inverse, to_used)
    at = tuple(np.array(others).T)
    depth = prediction.depth_m[at] * np.exp(mean)
    return at, depth, depth * np.sqrt(left)


@pytest.mark.parametrize("common", [0.0, 0.1])
@pytest.mark.parametrize("is_coloured", [False, True])
def test_it_is_the_dense_gaussian_process(common, is_coloured):
    prediction = network()
    measurements = measured(prediction, common=common)
    image = np.random.default_rng(2).integers(0, 255, (*SHAPE, 3), np.uint8)
    image = image if is_coloured else None
    result = posterior(prediction, measurements, image)
    own = CORNER_OWN if common else 0.0
    at, depth, sigma = dense(prediction, measurements, own, result, image)
    np.testing.assert_allclose(result.prediction.depth_m[at], depth, rtol=1e-4)
    np.testing.assert_allclose(result.prediction.sigma_m[at], sigma, rtol=1e-3)


def test_a_picture_of_other_directions_shows_no_edges():
    prediction = network()
    measurements = measured(prediction)
    image = np.random.default_rng(2).integers(0, 255, (*SHAPE, 3), np.uint8)
    frame = Frame(0, "", image=image, measurements=measurements)
    plain = posterior(prediction, measurements).prediction.depth_m
    for is_registered in (True, False):
        one = replace(frame, is_registered=is_registered)
        depth_m = corrected(prediction, one, (0.1, 10.0)).depth_m
        assert np.array_equal(depth_m, plain) != is_registered


@pytest.mark.parametrize("common", [0.0, 0.1])
def test_what_the_others_say_of_a_measured_pixel(common):
    """Each measurement left out in turn, by loops; its weight and the variance stay."""
    prediction = network()
    measurements = measured(prediction, common=common)
    result = posterior(prediction, measurements)
    own = CORNER_OWN if common else 0.0
    _, used, total, residual = measured_system(prediction, measurements, own, result)
    for index, pixel in enumerate(used):
        others = np.arange(len(used)) != index
        weights = np.linalg.solve(total[np.ix_(others, others)], residual[others])
        expected = prediction.depth_m[pixel] * np.exp(total[index, others] @ weights)
        assert result.left_out_m[index] == pytest.approx(expected, rel=1e-5)


def test_without_measurements_it_is_the_networks_own():
    prediction = network()
    result = posterior(prediction, Measurements.none())
    assert result.prediction is prediction
    assert result.prediction.scale_log_sigma is None


def test_one_measurement_corrects_the_scale():
    prediction = network()
    measurements = measured(prediction, count=1, factor=1.5)
    result = posterior(prediction, measurements)
    correction = np.log(result.prediction.depth_m / prediction.depth_m)
    assert (correction > 0.05).all(), "the whole frame follows, the far less than the near"
    near = correction[measurements.rows[0], measurements.columns[0]]
    assert near > 0.3
    assert near > 0.97 * correction.max(), "nowhere more than about where it was measured"


@given(factor=st.floats(1e-3, 1e3), order=st.permutations(range(12)))
@settings(max_examples=20)
def test_it_follows_the_unit_and_ignores_the_order(factor, order):
    prediction = network()
    measurements = measured(prediction)
    result = posterior(prediction, measurements)
    scaled = DepthPrediction(
        prediction.depth_m * np.float32(factor), prediction.sigma_m * np.float32(factor)
    )
    other = Measurements(
        measurements.rows,
        measurements.columns,
        measurements.depth_m * np.float32(factor),
        measurements.log_sigma,
        measurements.common_log_sigma,
    ).taken(np.array(order))
    again = posterior(scaled, other)
    for name in ("depth_m", "sigma_m"):
        np.testing.assert_allclose(
            getattr(again.prediction, name),
            factor * getattr(result.prediction, name),
            rtol=1e-4,
        )


def test_an_outlier_loses_its_weight():
    prediction = network()
    clean = measured(prediction, count=60)
    wrong = clean.depth_m.copy()
    wrong[0] *= 4
    spoilt = Measurements(
        clean.rows, clean.columns, wrong, clean.log_sigma, clean.common_log_sigma
    )
    result = posterior(prediction, spoilt)
    assert result.weights[0] < 0.1
    assert np.median(result.weights[1:]) > 0.9
    assert result.weights.max() <= 1
    change = np.log(result.prediction.depth_m / posterior(prediction, clean).prediction.depth_m)
    assert np.abs(change).mean() < 0.02


def bumpy_room(seed):
    """A wall behind a box, as a network sees it that errs as its sigma says; 64 known pixels."""
    random = np.random.default_rng(seed)
    truth = np.repeat(np.linspace(2, 6, 320, dtype=np.float32)[None], 240, axis=0)
    truth[80:, 80:160] = 1.5
    bumps = cv2.GaussianBlur(random.normal(size=truth.shape), (0, 0), 25)
    depth = (0.8 * truth * np.exp(0.2 * bumps / bumps.std())).astype(np.float32)
    at = random.choice(truth.size, 64, replace=False)
    known = np.full(truth.shape, np.nan)
    known.flat[at] = truth.flat[at]
    return truth, DepthPrediction(depth, 0.2 * depth), known, at


def errors(truth, prediction, *known):
    """Return the mean error after each map of known depth."""
    results = [posterior(prediction, Measurements.from_map(it)) for it in known]
    return [np.abs(result.prediction.depth_m - truth).mean() for result in results]


@pytest.mark.parametrize("factor", [0.01, 10, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_measurements_of_nothing_seen_move_nothing(factor, seed):
    """Three of 64 far too far: a sensor's greatest depth, where it has no echo."""
    truth, prediction, known, at = bumpy_room(seed)
    wrong = known.copy()
    wrong.flat[at[:3]] *= factor
    right, robust = errors(truth, prediction, known, wrong)
    assert robust < 1.2 * right


def test_wrong_measurements_do_not_make_it_believe_that_the_frame_errs_everywhere():
    """Three or 16 in 64 off by a factor of two, as a stereo matcher makes them."""
    worse = []
    factors = []
    for seed in range(6):
        truth, prediction, known, at = bumpy_room(seed)
        wrong = known.copy()
        wrong.flat[at[:3]] *= [0.5, 2, 0.5]
        right, robust = errors(truth, prediction, known, wrong)
        worse.append(robust / right)
        wrong.flat[at[3:16:2]] *= 2
        wrong.flat[at[4:16:2]] /= 2
        factors.append(posterior(prediction, Measurements.from_map(wrong)).sigma_factor)
    assert np.mean(worse) < 1.4
    assert np.mean(factors) < 1.6


def test_a_corner_that_is_far_off_is_one_all_the_same():
    """A wrong match may be off by any distance: it loses its weight, and is not dropped."""
    prediction = network()
    corners = measured(prediction, count=60, common=0.1)
    wrong = corners.depth_m.copy()
    wrong[0] *= 100
    result = posterior(prediction, replace(corners, depth_m=wrong))
    assert len(result.used) == 60
    assert result.weights[0] < 0.01


def test_an_error_that_all_measurements_share_stays_in_the_scale():
    prediction = network()
    few, many = (measured(prediction, count) for count in (10, 250))

    def scale(measurements, common):
        shared = Measurements(
            measurements.rows,
            measurements.columns,
            measurements.depth_m,
            measurements.log_sigma,
            np.full(len(measurements), common),
        )
        return posterior(prediction, shared).prediction.scale_log_sigma

    assert scale(many, 0.0) < scale(few, 0.0) / 2
    assert scale(many, 0.1) > 0.07, "as many measurements as one likes cannot tell it"


def test_a_corner_at_an_edge_of_predicted_depth_tells_little():
    """It may belong to either side; one on a surface corrects its neighbourhood."""
    depth = np.full((120, 160), 2.0, np.float32)
    depth[:, 80:] = 4.0
    prediction = DepthPrediction(depth, 0.2 * depth)

    def correction(column):
        one = [np.array([60]), np.array([column]), np.array([1.2 * depth[60, column]])]
        corner = Measurements(*one, np.array([0.05]), np.array([0.01]))
        corrected = posterior(prediction, corner).prediction.depth_m
        return np.log(corrected / depth).max()

    assert correction(79) < 0.1 * correction(60)


def test_a_corner_beside_a_sensor_takes_nothing_from_it():
    """Each measurement has its own kind's noise, whatever measures beside it."""
    prediction = network()
    sensor = measured(prediction, count=60)
    free = next(pixel for pixel in PIXELS if not sensor.mask(SHAPE)[pixel])
    one = [np.array([free[0]]), np.array([free[1]]), np.array([1.3 * prediction.depth_m[free]])]
    both = sensor.joined(Measurements(*one, np.array([0.2]), np.array([0.05])))
    alone = posterior(prediction, sensor)
    beside = posterior(prediction, both)
    assert beside.sigma_factor == pytest.approx(alone.sigma_factor, rel=1e-6)
    ratio = beside.prediction.sigma_m / alone.prediction.sigma_m
    assert ratio.max() < 1.01, "it can only tell more"
    assert np.median(ratio) == pytest.approx(1, abs=0.01)


def test_at_an_edge_of_depth_sigma_grows_by_a_part_of_the_step():
    depth = np.full((120, 160), 2.0, np.float32)
    depth[:, 80:] = 4.0
    known = np.full(depth.shape, np.nan)
    known[::12, ::12] = depth[::12, ::12]
    measured = Measurements.from_map(known)
    corrected = posterior(DepthPrediction(depth, 0.02 * depth), measured).prediction
    relative = corrected.sigma_m / corrected.depth_m
    np.testing.assert_allclose(relative[:, 79], 0.3 * math.log(2), rtol=0.02)
    assert relative[:, :77].max() < 0.03


def test_sigma_is_the_scales_and_the_pixels_own():
    prediction = network()
    result = posterior(prediction, measured(prediction, common=0.1))
    relative = result.prediction.sigma_m / result.prediction.depth_m
    assert (result.relative_sigma <= relative * (1 + 1e-5)).all()
    scale = result.prediction.scale_log_sigma
    assert (result.relative_sigma**2 + (3 * scale) ** 2 > relative**2).all()


@pytest.mark.parametrize("truly", [0.5, 1.0, 3.0])
def test_sigma_is_right_even_if_the_network_is_better_or_worse_than_it_says(truly):
    """Errors drawn from the prior, but `truly` times as large: few witnesses tell most of that."""
    rng = np.random.default_rng(5)
    prediction = network()
    covariance = covariance_of(prediction)
    some = [PIXELS[index] for index in rng.choice(len(PIXELS), 300, replace=False)]
    full = np.array([[covariance(a, b) for b in some] for a in some])
    factor = truly * np.linalg.cholesky(full + 1e-9 * np.eye(len(some)))
    rows, columns = np.array(some).T
    ratios = []
    factors = []
    for _ in range(30):
        error = factor @ rng.standard_normal(len(some))
        truth = prediction.depth_m[rows, columns] * np.exp(error)
        known = np.full(SHAPE, np.nan)
        known[rows[:60], columns[:60]] = truth[:60]
        result = posterior(prediction, Measurements.from_map(known, 0.001))
        at = rows[60:], columns[60:]
        relative = (result.prediction.sigma_m / result.prediction.depth_m)[at]
        ratios.append(np.log(truth[60:] / result.prediction.depth_m[at]) / relative)
        factors.append(result.sigma_factor)
    prior = ErrorPrior().freedom / result.used.coverage(SHAPE)
    expected = math.sqrt((prior + MAX_WITNESSES * truly**2) / (prior + MAX_WITNESSES))
    assert np.mean(factors) == pytest.approx(expected, rel=0.1)
    holds = math.erf(1.96 * expected / truly / math.sqrt(2))
    assert np.mean(np.abs(ratios) < 1.96) == pytest.approx(holds, abs=0.03)


def test_measurements_of_one_row_that_agree_do_not_make_the_rest_certain():
    """As a planar LiDAR's: the network may be wrong in a way that only the rest shows."""
    prediction = network()
    count = SHAPE[1]

    def sigma_factor(rows, columns):
        depth = prediction.depth_m[rows, columns].astype(np.float64)
        noise = np.full(count, 0.03)
        measurements = Measurements(rows, columns, depth, noise, np.zeros(count))
        return posterior(prediction, measurements).sigma_factor

    one_row = sigma_factor(np.full(count, 15), np.arange(count))
    at = np.random.default_rng(0).choice(prediction.depth_m.size, count, replace=False)
    assert sigma_factor(*np.divmod(at, SHAPE[1])) < 0.75 * one_row < 0.75


@pytest.mark.parametrize("shape", [(1, 1), (1, 640), (2, 1000)])
def test_a_strip_is_corrected_as_any_image(shape):
    """As of a camera's single row: less high than the places are apart where edges are sought."""
    depth = np.full(shape, 2.0, np.float32)
    known = np.full(shape, np.nan)
    known.flat[:: max(depth.size // 40, 1)] = 3.0
    result = posterior(DepthPrediction(depth, 0.2 * depth), Measurements.from_map(known))
    near = result.prediction.depth_m[np.isfinite(known)]
    np.testing.assert_allclose(np.median(near), 3.0, rtol=0.05)
    assert np.isfinite(result.prediction.sigma_m).all()
    assert (result.prediction.sigma_m > 0).all()


@pytest.mark.parametrize(("depth", "sigma"), [(np.nan, np.nan), (2.0, np.inf)])
def test_pixels_without_a_depth_or_a_sigma_stay_so_and_spoil_no_others(depth, sigma):
    spoilt = network()
    known = np.where(np.arange(SHAPE[0])[:, None] % 4 == 0, spoilt.depth_m, np.nan)
    spoilt.depth_m[:5] = depth
    spoilt.sigma_m[:5] = sigma
    result = posterior(spoilt, Measurements.from_map(known))
    assert (result.used.rows >= 5).all()
    assert_array_equal(np.isnan(result.prediction.depth_m), np.isnan(spoilt.depth_m))
    assert_array_equal(result.prediction.sigma_m[:5], spoilt.sigma_m[:5])
    assert np.isfinite(result.prediction.sigma_m[5:]).all()
    assert_array_equal(np.isnan(result.relative_sigma), np.isnan(spoilt.depth_m))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"depth_m": np.array([1.0, -1.0])}, "depth_m has values"),
        ({"log_sigma": np.array([0.1, np.nan])}, "log_sigma has values"),
        ({"common_log_sigma": np.array([0.0, -1.0])}, "common_log_sigma has values"),
        ({"rows": np.array([3, 3]), "columns": np.array([4, 4])}, "measured twice"),
        ({"columns": np.array([4])}, "columns has 1 values; expected 2"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, sentence):
    fields = {
        "rows": np.array([1, 2]),
        "columns": np.array([1, 2]),
        "depth_m": np.ones(2),
        "log_sigma": np.ones(2),
        "common_log_sigma": np.zeros(2),
    }
    with pytest.raises(ValueError, match=sentence):
        Measurements(**(fields | change))


def test_a_measurement_outside_the_prediction_is_refused():
    outside = Measurements.from_map(np.ones((31, 40)))
    with pytest.raises(ValueError, match="outside the prediction, which is 40x30"):
        posterior(network(), outside)


def test_many_measurements_are_thinned_evenly():
    known = np.ones((120, 160))
    some = Measurements.from_map(known)
    some = some.taken(some.evenly(300, known.shape))
    assert len(some) == 300
    counts, _, _ = np.histogram2d(some.rows, some.columns, bins=(6, 8), range=((0, 120), (0, 160)))
    assert counts.min() >= 4, "every cell has about its six"
    assert counts.max() <= 9


def test_the_most_certain_measurement_of_a_place_is_kept():
    known = np.ones((120, 160))
    noise = np.full(known.shape, 0.2)
    noise[::3, ::3] = 0.01
    some = Measurements.from_map(known, noise)
    some = some.taken(some.evenly(200, known.shape))
    assert (some.log_sigma == 0.01).mean() > 0.95
