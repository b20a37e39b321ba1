# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Known depth interpolated along a prediction: met, better between known pixels, and honest."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import griddata

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.measurements import MAX_MEASUREMENTS, Measurements
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.sigma.interpolation import interpolated, spread
from uncertainty_depth.sigma.posterior import corrected, posterior
from uncertainty_depth.sigma.recorded.alignment import MIN_MEASURED


def scene(height: int = 120, width: int = 160) -> tuple[np.ndarray, DepthPrediction]:
    """A wall behind a box; the model sees both, at a wrong scale that drifts across the image.

    Both are as rough as a sensor sees them.
    """
    rng = np.random.default_rng(0)
    truth = np.repeat(np.linspace(4, 5, width, dtype=np.float32)[None], height, axis=0)
    truth[height // 3 :, width // 4 : width // 2] = 2.0
    truth *= np.exp(rng.laplace(scale=0.01, size=truth.shape)).astype(np.float32)
    bias = np.linspace(0.7, 0.9, height, dtype=np.float32)[:, None]
    depth = (truth * bias * np.exp(0.03 * rng.normal(size=truth.shape))).astype(np.float32)
    return truth, DepthPrediction(depth, 0.2 * depth)


def pixels(known: np.ndarray) -> Measurements:
    return Measurements.from_map(np.where(known, 2.0, np.nan))


def known(truth: np.ndarray, count: int) -> np.ndarray:
    sparse = np.full(truth.shape, np.nan, dtype=np.float32)
    chosen = np.random.default_rng(1).choice(truth.size, count, replace=False)
    sparse.flat[chosen] = truth.flat[chosen]
    return sparse


def error(prediction: DepthPrediction, truth: np.ndarray) -> np.ndarray:
    return np.abs(prediction.depth_m - truth)


@pytest.mark.parametrize("size", [(120, 160), (375, 1242)])
def test_known_depth_is_met_and_corrects_what_lies_between(size: tuple[int, int]) -> None:
    truth, prediction = scene(*size)
    sparse = known(truth, 100)
    result = spread(prediction, sparse)
    scale = np.nanmedian(sparse / prediction.depth_m)
    assert error(result, truth).mean() < 0.5 * np.abs(scale * prediction.depth_m - truth).mean()
    if size == (120, 160):
        at_known = np.isfinite(sparse)
        assert error(result, truth)[at_known].max() < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_on_a_street_it_is_about_as_good_as_without_the_prediction(seed: int) -> None:
    """A row lower the road is far nearer: what is as deep lies far aside, and errs otherwise."""
    truth = np.repeat(np.geomspace(80, 2, 40, dtype=np.float32)[:, None], 1240, axis=1)
    aside = cv2.GaussianBlur(np.random.default_rng(seed).normal(size=(1, 1240)), (0, 0), 10)
    depth = (truth * np.exp(0.2 * aside / aside.std())).astype(np.float32)
    sparse = known(truth, 3000)
    result = spread(DepthPrediction(depth, 0.2 * depth), sparse)
    at = np.nonzero(np.isfinite(sparse))
    plain_m = griddata(np.stack(at, axis=1), sparse[at], tuple(np.indices(truth.shape)), "linear")
    inside = np.isfinite(plain_m)
    assert error(result, truth)[inside].mean() < 2 * np.abs(plain_m - truth)[inside].mean()


def test_sigma_covers_what_is_left_and_knows_where_it_is() -> None:
    truth, prediction = scene()
    result = spread(prediction, known(truth, 100))
    left = error(result, truth)
    half_width = -np.log(0.05) / np.sqrt(2) * result.sigma_m
    assert 0.9 < (left <= half_width).mean() < 0.995
    sure = result.sigma_m < np.median(result.sigma_m)
    assert left[sure].mean() < 0.75 * left[~sure].mean()


@pytest.mark.parametrize("count", [100, 2000])
def test_wrong_known_depth_is_not_copied(count: int) -> None:
    """A twentieth is off by a factor of two, among those that the process takes and beyond.

    Away from the box: beside its edge such a depth may be the other side's.
    """
    truth, prediction = scene()
    sparse = known(truth, count)
    wrong = sparse.copy()
    is_near = np.zeros(truth.shape, np.bool_)
    is_near[30:, 30:90] = True
    at = np.flatnonzero(np.isfinite(sparse) & ~is_near)[::20]
    wrong.flat[at] *= np.where(np.arange(len(at)) % 2, 2.0, 0.5)
    right, robust = (
        corrected(prediction, Frame(0, "", sparse_m=one), (0.1, 10.0)) for one in (sparse, wrong)
    )
    assert error(robust, truth).mean() < 1.25 * error(right, truth).mean()
    left = error(robust, truth)
    assert (left.flat[at] <= 5 * robust.sigma_m.flat[at]).all()


def test_known_depth_does_not_vouch_for_itself_in_a_prediction_that_has_seen_it() -> None:
    """What a pixel would be, had it not been seen, tells which known depth is wrong."""
    truth, prediction = scene()
    sparse = known(truth, 100)
    at = np.flatnonzero(np.isfinite(sparse))
    left_out = np.full(truth.shape, np.nan, np.float32)
    left_out.flat[at] = prediction.depth_m.flat[at]
    sparse.flat[at[::20]] *= 6
    seen = np.where(np.isfinite(sparse), sparse, prediction.depth_m)
    prediction = DepthPrediction(seen, 0.2 * seen)
    without = sparse.copy()
    without.flat[at[::20]] = np.nan
    result, expected = (spread(prediction, it, left_out) for it in (sparse, without))
    np.testing.assert_array_equal(result.depth_m, expected.depth_m)
    np.testing.assert_array_equal(result.sigma_m, expected.sigma_m)


def test_where_most_is_known_sigma_stays_small():
    truth, prediction = scene(60, 80)
    sparse = known(truth, int(0.7 * truth.size))
    result = corrected(prediction, Frame(0, "", sparse_m=sparse), (0.1, 10.0))
    assert result.sigma_m.max() < 1


def test_with_hardly_any_known_pixel_the_prediction_stays() -> None:
    truth, prediction = scene()
    assert spread(prediction, known(truth, 3)) is prediction


@pytest.mark.parametrize("rows", [[60], [30, 90], [20, 50, 80, 110], range(40, 76, 4)])
def test_along_rings_the_prediction_stays(rows):
    """What neighbours along a ring disagree by tells nothing of the gap to the next ring."""
    truth, prediction = scene()
    truth, depth = (np.repeat(it, 4, axis=1) for it in (truth, prediction.depth_m))
    prediction = DepthPrediction(depth, 0.2 * depth)
    rings = np.full(truth.shape, np.nan, np.float32)
    rings[list(rows)] = truth[list(rows)]
    assert np.isfinite(rings).sum() > MAX_MEASUREMENTS
    frame = Frame(0, "", sparse_m=rings)
    by_process = posterior(prediction, Measurements.from_map(rings)).prediction
    result = corrected(prediction, frame, (0.1, 10.0))
    left = error(result, truth)[np.isnan(rings)]
    assert ((left <= 3 * result.sigma_m[np.isnan(rings)]).mean()) > 0.9
    np.testing.assert_allclose(result.depth_m, by_process.depth_m, rtol=0.05)


@settings(max_examples=20)
@given(
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-5, 5),
    count=st.integers(MIN_MEASURED, 400),
    wrong=st.booleans(),
)
def test_inverse_depth_without_a_unit_becomes_metres_by_what_is_measured(
    scale, shift, count, wrong
):
    """Of any scale and shift it becomes the same, and about what metres would have become."""
    truth, prediction = scene()
    sparse = known(truth, count)
    if wrong:
        sparse.flat[np.flatnonzero(np.isfinite(sparse))[::20]] *= 2

    def result(scale: float, shift: float) -> DepthPrediction:
        inverse = (1 / prediction.depth_m.astype(np.float64) - shift) * scale
        sigma = scale * prediction.sigma_m / prediction.depth_m.astype(np.float64) ** 2
        return corrected(
            DepthPrediction(inverse, sigma),
            Frame(0, "", sparse_m=sparse),
            (1e-3, 20.0),
            is_relative=True,
        )

    plain, other = result(1.0, 0.0), result(scale, shift)
    np.testing.assert_allclose(other.depth_m, plain.depth_m, rtol=0.05)
    # In float32 a pixel between two known ones may count another as its fourth neighbour.
    assert np.isclose(other.depth_m, plain.depth_m, rtol=1e-3).mean() > 0.999
    assert np.isclose(other.sigma_m, plain.sigma_m, rtol=0.05).mean() > 0.999
    metric = corrected(prediction, Frame(0, "", sparse_m=sparse), (0.1, 20.0))
    assert error(other, truth).mean() < 1.3 * error(metric, truth).mean() + 0.02


@pytest.mark.parametrize(
    ("count", "falls", "reason"),
    [(MIN_MEASURED - 1, False, "too_few_points_to_align"), (100, True, "alignment_failed")],
)
def test_what_is_measured_must_tell_scale_and_shift(count, falls, reason):
    truth, prediction = scene()
    values = prediction.depth_m if falls else 1 / prediction.depth_m
    frame = Frame(0, "", sparse_m=known(truth, count))
    with pytest.raises(MessageError) as caught:
        corrected(DepthPrediction(values, 0.1 * values), frame, (0.1, 20.0), is_relative=True)
    assert caught.value.reason == reason
    assert "--" not in str(caught.value)  # a robot has no such option


def test_measured_pixels_without_a_prediction_are_told() -> None:
    truth, prediction = scene()
    sparse = known(truth, 100)
    values = np.where(np.isfinite(sparse), np.nan, 1 / prediction.depth_m)
    frame = Frame(0, "", sparse_m=sparse)
    with pytest.raises(MessageError, match="0 of the 100 measured pixels have a prediction"):
        corrected(DepthPrediction(values, 0.1 * values), frame, (0.1, 20.0), is_relative=True)


@given(count=st.integers(32, 3000), seed=st.integers(0, 99), step=st.sampled_from([1, 3]))
@settings(max_examples=25)
def test_pixels_at_random_are_everywhere_and_rows_are_not(count, seed, step):
    random = np.random.default_rng(seed)
    at_random = np.zeros((120, 160), np.bool_)
    at_random.flat[random.choice(at_random.size, count, replace=False)] = True
    assert len(interpolated(pixels(at_random), at_random.shape).known) == count
    rows = np.zeros((120, 160), np.bool_)
    rows[15::30, ::step] = True  # four rings
    assert interpolated(pixels(rows), rows.shape) is None


def test_between_many_rings_is_interpolated():
    """As a 16-ring LiDAR sees a street, with nothing near the top."""
    truth, prediction = scene(240, 320)
    rings = np.full(truth.shape, np.nan, np.float32)
    rings[90::7] = truth[90::7]
    by_process = posterior(prediction, Measurements.from_map(rings)).prediction
    result = corrected(prediction, Frame(0, "", sparse_m=rings), (0.1, 10.0))
    unknown = np.isnan(rings) & (np.indices(rings.shape)[0] >= 90)
    left, before = (error(it, truth)[unknown] for it in (result, by_process))
    assert left.mean() < 0.8 * before.mean()
    assert 0.85 < (left <= -np.log(0.05) / np.sqrt(2) * result.sigma_m[unknown]).mean() < 0.995


@pytest.mark.parametrize("seen", [0.55, 0.7])
def test_where_a_sensor_sees_nothing_sigma_says_so(seen: float) -> None:
    """Known pixels tell how wrong it is between them, and not in the part that has none."""
    holds = []
    for seed in range(6):
        truth = scene()[0]
        bumps = cv2.GaussianBlur(np.random.default_rng(seed).normal(size=truth.shape), (0, 0), 20)
        depth = (0.8 * truth * np.exp(0.2 * bumps / bumps.std())).astype(np.float32)
        sparse = known(truth, 400)
        edge = round(seen * truth.shape[1])
        sparse[:, edge:] = np.nan
        frame = Frame(0, "", sparse_m=sparse)
        result = corrected(DepthPrediction(depth, 0.2 * depth), frame, (0.1, 10.0))
        holds.append((error(result, truth) <= 2 * result.sigma_m)[:, edge + 30 :].mean())
    assert np.mean(holds) > 0.8


@pytest.mark.parametrize("hole", [np.s_[60:], np.s_[30:90, 60:110], np.s_[:, ::2]])
def test_beside_a_hole_depth_and_sigma_are_as_good_as_elsewhere(hole):
    """Whatever the unit: a pixel without a value lends its neighbours none."""
    truth, prediction = scene()
    sparse = known(truth, 500)
    prediction.depth_m[hole] = prediction.sigma_m[hole] = np.nan
    has_value = np.isfinite(prediction.depth_m)
    small = DepthPrediction(prediction.depth_m / 1024, prediction.sigma_m / 1024)
    result, other = spread(prediction, sparse), spread(small, sparse / 1024)
    assert (np.isfinite(result.depth_m) == has_value).all()
    assert (np.isfinite(result.sigma_m) == has_value).all()
    np.testing.assert_allclose(1024 * other.depth_m, result.depth_m, rtol=1e-4)
    np.testing.assert_allclose(1024 * other.sigma_m, result.sigma_m, rtol=1e-3)
    assert error(result, truth)[has_value].mean() < 0.15


def test_an_infinite_sigma_spoils_its_own_pixels_alone() -> None:
    truth, prediction = scene()
    plain = spread(prediction, known(truth, 500))
    is_spoilt = np.zeros(truth.shape, np.bool_)
    is_spoilt[:10] = True
    prediction.sigma_m[is_spoilt] = np.inf
    result = spread(prediction, known(truth, 500))
    assert np.isinf(result.sigma_m[is_spoilt]).all()
    np.testing.assert_array_equal(result.depth_m[is_spoilt], prediction.depth_m[is_spoilt])
    ratio = result.sigma_m[~is_spoilt] / plain.sigma_m[~is_spoilt]
    assert 0.8 < np.median(ratio) < 1.25
    assert (result.sigma_m[~is_spoilt] > 0).all()


def test_a_sigma_of_0_contradicts_no_known_depth() -> None:
    """As of a network without a variance head: how far it is off is not known."""
    truth, prediction = scene()
    sure = DepthPrediction(prediction.depth_m, np.zeros_like(prediction.sigma_m))
    sparse = known(truth, 100)
    plain, result = (
        corrected(one, Frame(0, "", sparse_m=sparse), (0.1, 10.0)) for one in (prediction, sure)
    )
    assert error(result, truth).mean() < 1.5 * error(plain, truth).mean()
    assert (result.sigma_m > 0).all()


@pytest.mark.parametrize("own", [0.0, 0.2])
def test_known_depth_that_agrees_to_the_last_bit_leaves_a_sigma(own: float) -> None:
    """A flat wall in whole centimetres: its neighbours disagree by nothing at all."""
    _, prediction = scene()
    wall = np.full_like(prediction.depth_m, 3.0)
    flat = DepthPrediction(wall, own * wall)
    for one in (prediction, flat):
        result = corrected(one, Frame(0, "", sparse_m=known(wall, 100)), (0.1, 10.0))
        np.testing.assert_allclose(result.depth_m, 3.0, rtol=0.05)
        assert (result.sigma_m > 1e-4).all()
