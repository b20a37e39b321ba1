# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The scale that depth follows: closed forms, limits, and that no frame knows its own."""

import math
from dataclasses import replace

import numpy as np
import pytest

from uncertainty_depth.core.config.nodes import DepthScaleConfig, OnlineCorrectionConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.sigma.online.correction import (
    MAX_DEPTH_SCALE,
    AppliedCorrection,
    CorrectionEstimator,
    CorrectionFilter,
    OnlineCorrected,
    ReceivedEstimate,
)
from uncertainty_depth.sigma.online.estimates import (
    MIN_PIXELS,
    SCALE_GAIN,
    DepthScale,
    ScaleEstimate,
    frame_log_scale,
)
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.scoring import score

ON = OnlineCorrectionConfig(use_depth_scale=True)
SECOND_NS = 1_000_000_000
PIXELS = (8, 10)


def prediction(depth: np.ndarray) -> DepthPrediction:
    return DepthPrediction(depth.astype(np.float32), (0.1 * depth).astype(np.float32))


def drive(count: int = 400, correlation: float = 0.9) -> list[Frame]:
    """Frames whose depth is wrong by a factor that wanders, and by 5 % noise at each pixel."""
    rng = np.random.default_rng(0)
    log_scale = 0.0
    frames = []
    for number in range(count):
        log_scale = correlation * log_scale + 0.2 * math.sqrt(1 - correlation**2) * rng.normal()
        truth = rng.uniform(1, 4, PIXELS).astype(np.float32)
        depth = truth * math.exp(-log_scale) * np.exp(0.05 * rng.normal(size=truth.shape))
        stamp_ns = number * SECOND_NS // 10
        frames.append(Frame(stamp_ns, "", ground_truth_m=truth, prediction=prediction(depth)))
    return frames


def constant_drive(true_factor: float, count: int = 6) -> list[Frame]:
    """Frames at 1 Hz whose depth, 2 m, must be multiplied by the factor."""
    depth = np.full(PIXELS, 2.0)
    truth = (true_factor * depth).astype(np.float32)
    return [
        Frame(number * SECOND_NS // 2, "", ground_truth_m=truth, prediction=prediction(depth))
        for number in range(count)
    ]


def published(frames: list[Frame], **options: object) -> list[Frame]:
    nodes = OnlineCorrected(Frame.need_prediction, replace(ON, **options))
    return [replace(frame, prediction=nodes(frame)) for frame in frames]


def log_errors(frames: list[Frame]) -> np.ndarray:
    return np.array([frame_log_scale(f.prediction.depth_m, f.ground_truth_m) for f in frames])


def test_two_frames_late_is_early_enough_for_a_scale_that_wanders():
    frames = drive()
    scaled = published(frames)
    # two frames later an autoregression by 0.9 leaves sqrt(2 (1 - .81)) = .62
    assert abs(log_errors(scaled)).mean() < 0.75 * abs(log_errors(frames)).mean()
    ratio = scaled[50].prediction.sigma_m / scaled[50].prediction.depth_m
    np.testing.assert_allclose(ratio, 0.1, rtol=1e-5)


def test_a_frame_is_never_scaled_by_its_own_ground_truth():
    frames = constant_drive(1.3, 3)
    factors = [f.prediction.depth_m[0, 0] / 2 for f in published(frames)]
    assert factors == pytest.approx([1, 1, 1.3])


@pytest.mark.parametrize(("true_factor", "factor"), [(1.2, 1.2), (5.0, 2.0), (0.1, 0.5)])
def test_the_factor_is_limited_and_settles_at_once(true_factor, factor):
    nodes = OnlineCorrected(Frame.need_prediction, ON)
    frames = constant_drive(true_factor)
    depths = [nodes(frame).depth_m[0, 0] for frame in frames]
    assert depths == pytest.approx([2, 2, *[2 * factor] * 4], rel=1e-6)
    is_limited = factor != true_factor
    assert ("its limit, a factor of 2" in nodes.in_force.warning) == is_limited
    (note,) = nodes.scales.notes()
    assert note.startswith("the depth of 4 of 6 frames was multiplied by")
    assert ("4 were at the limit" in note) == is_limited


def test_frames_too_far_apart_to_follow_are_told():
    """An estimate comes into use two frames late, and is too old then."""
    nodes = OnlineCorrected(Frame.need_prediction, ON)
    for frame in constant_drive(1.3):
        nodes(replace(frame, stamp_ns=4 * frame.stamp_ns))
    (note,) = nodes.scales.notes()
    assert note.startswith("use_depth_scale: the depth of none of 6 frames was multiplied")
    assert "the newest estimate is 4.0 s old; the limit is 2 s" in note


def test_switched_off_the_maps_are_the_model_s_own():
    frames = constant_drive(1.3)
    for frame, same in zip(frames, published(frames, use_depth_scale=False), strict=True):
        np.testing.assert_array_equal(same.prediction.depth_m, frame.prediction.depth_m)
        np.testing.assert_array_equal(same.prediction.sigma_m, frame.prediction.sigma_m)


def test_the_estimate_is_an_exponential_average_of_the_model_s_own_scale():
    """Whatever factor was in force: there is no loop."""
    estimate = ScaleEstimate()
    truth = np.full(50, 3.0)
    needed = [1.2, 0.9, 1.5]
    in_force = [1.0, 1.7, 0.6]
    log_scale = math.log(needed[0])
    missing = []
    for own, factor in zip(needed, in_force, strict=True):
        scale = estimate.add(truth / own * factor, truth, factor)
        log_scale += SCALE_GAIN * (math.log(own) - log_scale)
        missing.append(math.log(own / factor))
        assert scale.factor == pytest.approx(math.exp(log_scale))
        assert scale.scale_sigma == pytest.approx(np.sqrt(np.mean(np.square(missing))))


def test_scale_sigma_is_what_the_published_scale_lacks():
    frames = drive()
    nodes = OnlineCorrected(Frame.need_prediction, ON)
    scale_sigmas = []
    errors = []
    for frame in frames:
        scaled = replace(frame, prediction=nodes(frame))
        if nodes.in_force.last.scale_sigma is not None:
            errors.append(log_errors([scaled])[0])
            scale_sigmas.append(nodes.in_force.last.scale_sigma)
    standardised = np.array(errors) / scale_sigmas
    assert (abs(standardised[30:]) < 1.96).mean() == pytest.approx(0.95, abs=0.03)


def test_few_pixels_and_absurd_ones_do_no_harm():
    truth = np.full(MIN_PIXELS - 1, 3.0)
    assert frame_log_scale(truth, truth) is None
    estimate = ScaleEstimate()
    assert estimate.add(truth, truth) is None
    tiny = np.full(50, 1e-38, np.float32)
    scale = estimate.add(tiny, np.full(50, 80.0, np.float32))
    assert scale == DepthScale(pytest.approx(64), pytest.approx(math.log(64)))


def in_force_at(
    time_s: float, factor: float = 1.3, sigma: str = "raw", **options: object
) -> AppliedCorrection:
    """Return what is in force at a time; the estimate is from 100 s."""
    state = CorrectionFilter(replace(ON, **options))
    scale = DepthScale(factor, 0.1)
    state.receive(ReceivedEstimate(100 * SECOND_NS, sigma, scale=scale))
    state.receive(ReceivedEstimate(100 * SECOND_NS + 1, sigma))  # has nothing to say of it
    return state.at(round(time_s * 1e9), "raw")


def test_depth_is_the_model_s_own_at_once_without_a_fresh_estimate():
    assert in_force_at(101.9).depth_scale == 1.3
    stale = in_force_at(102.1)
    assert (stale.depth_scale, stale.scale_sigma) == (1.0, None)
    assert stale.depth_scale_reason.startswith("the newest estimate is 2.1 s old")
    assert in_force_at(20.0).depth_scale == 1.0  # the clock jumped
    other = in_force_at(100.1, sigma="of another model")
    assert other.depth_scale == 1.0
    assert "expected raw" in other.depth_scale_reason
    assert in_force_at(100.1, use_depth_scale=False).scale_sigma == 0.1


def test_a_factor_at_the_limit_is_not_beyond_it():
    assert not in_force_at(100.1, MAX_DEPTH_SCALE).is_at_depth_limit
    assert in_force_at(100.1, MAX_DEPTH_SCALE + 0.01).is_at_depth_limit


@pytest.mark.parametrize(
    ("seconds", "name", "factor"),
    [(-2, "raw", 1.5), (1, "calibrated", 1.5), (3600, "raw", 1.5), (1, "raw", None)],
    ids=["the clock jumps", "another sigma", "a gap", "it goes on"],
)
def test_what_starts_the_scale_anew(seconds, name, factor):
    depth = np.full(MIN_PIXELS, 2.0)
    estimator = CorrectionEstimator()
    for second in range(10):
        estimator.add(
            (90 + second) * SECOND_NS, (depth, depth, 1.2 * depth), AppliedCorrection(), "raw"
        )
    stamp_ns = (99 + seconds) * SECOND_NS
    sent = estimator.add(stamp_ns, (depth, depth, 1.5 * depth), AppliedCorrection(), name)
    expected = factor or math.exp(math.log(1.2) + SCALE_GAIN * math.log(1.5 / 1.2))
    assert sent.scale.factor == pytest.approx(expected)


def test_the_correction_of_sigma_is_the_same_whatever_the_scale_in_force():
    """Published depth and sigma in metres, the correction in the model's own units."""
    rng = np.random.default_rng(0)
    estimates = [CorrectionEstimator(), CorrectionEstimator()]
    for number in range(30):
        own = prediction(rng.uniform(1, 4, 500))
        truth = own.depth_m * (1 + 0.3 * rng.normal(size=500)).astype(np.float32)
        scaled = AppliedCorrection(1.7, depth_scale=1.4)
        for estimator, in_force in zip(estimates, (AppliedCorrection(), scaled), strict=True):
            maps = in_force.applied(own)
            factor = np.float32(in_force.depth_scale)
            # the same errors in the model's units
            sent = estimator.add(
                number * SECOND_NS, (maps.depth_m, maps.sigma_m, truth * factor), in_force, ""
            )
            assert (sent.correction is None) == (number < 19)
    first, second = (estimator.of_sigma.factor for estimator in estimates)
    assert first == pytest.approx(second, rel=1e-5)


@pytest.mark.parametrize(("worlds", "is_noted"), [(3, False), (2, True)], ids=["fits", "unknown"])
def test_a_report_says_if_nothing_shows_that_the_ground_truth_fits_the_image(worlds, is_noted):
    """Two frames are too few for the geometry check, which needs three to confirm anything."""
    source = f"synthetic:worlds={worlds},frames=1,seed=7,width=320,height=240,rings=64"
    scale = DepthScaleConfig(use_depth_scale=True)
    _, context = score(Job(sources=(source,), model="indoor", scale=scale))
    noted = [note for note in context.notes if "nothing shows that it fits the image" in note]
    assert len(noted) == is_noted


def test_evaluate_scores_the_depth_that_follows_the_scale():
    source = "synthetic:worlds=1,frames=8,seed=7,width=160,height=120,rings=16"
    once = PredictorConfig(method="deterministic")
    scales = []
    for follows in (False, True):
        scale = DepthScaleConfig(use_depth_scale=follows)
        evaluation, _ = score(Job(sources=(source,), model="demo", predictor=once, scale=scale))
        scales.append(abs(math.log(evaluation.summary()["scale"]["mean_factor"])))
    assert scales[1] < 0.7 * scales[0]
