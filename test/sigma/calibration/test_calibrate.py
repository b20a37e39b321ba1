# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What `calibrate` fits, chooses and refuses, on samples and through its front."""

import numpy as np
import pytest

from test.conftest import ListSource
from uncertainty_depth.core.config.scoring import CalibrationConfig
from uncertainty_depth.core.errors import CalibrationError, MessageError, SourceError
from uncertainty_depth.core.records import DepthPrediction, Frame, Skipped
from uncertainty_depth.sigma.calibration import IDENTITY, report
from uncertainty_depth.sigma.calibration.fit import (
    DEPTH_HEAD,
    NO_CONFIDENCE,
    RECORDED_SIGMA,
    UNITLESS_CONFIDENCE,
)
from uncertainty_depth.sigma.calibration.run import calibrate, calibrate_samples, reject_if_worse
from uncertainty_depth.sigma.calibration.sample import Sample, collect
from uncertainty_depth.stream.stream import PredictedSource

GAUSSIAN = CalibrationConfig(distribution="gaussian")
SHAPE = (24, 32)


def frame(index, factor=3.0, known=0.5):
    """A frame whose errors are `factor` times as large as its sigma, its `sparse_m`, says."""
    random = np.random.default_rng(index)
    sigma_m = random.uniform(0.01, 0.5, SHAPE).astype(np.float32)
    truth = 5 + factor * sigma_m * random.normal(size=SHAPE)
    is_known = random.random(SHAPE) < known
    truth_m = np.where(is_known, truth, np.nan).astype(np.float32)
    return Frame(index, str(index), sparse_m=sigma_m, ground_truth_m=truth_m)


def predict(frame):
    return DepthPrediction(np.full(SHAPE, 5, np.float32), frame.sparse_m)


def drawn(number, start=0, **options):
    records = [frame(start + index, **options) for index in range(number)]
    return ListSource(records, f"list {start}")


def rank_sample(uncertainty_of, frames=12, pixels=300, seed=0, power=2, mismatched=0.0):
    """Errors of `(0.02 + 0.1 v) depth^power / 10`; some pixels are mismatched altogether."""
    random = np.random.default_rng(seed)
    parts = []
    for _ in range(frames):
        depth = random.uniform(1, 8, pixels)
        value = random.uniform(0, 1, pixels)
        error = random.normal(0, (0.02 + 0.1 * value) * depth**power / 10)
        error[random.random(pixels) < mismatched] += 25
        parts.append(np.stack((depth, uncertainty_of(value), depth + error)).astype(np.float32))
    return Sample(f"drive {seed}", tuple(parts))


@pytest.mark.parametrize("mismatched", [0.0, 0.03])
def test_the_confidence_is_used_and_covers_whatever_the_share_of_mismatches(mismatched):
    calibration = calibrate_samples(
        [rank_sample(lambda v: v**3, frames=24, mismatched=mismatched)],
        CalibrationConfig(),
        UNITLESS_CONFIDENCE,
    )
    before, after = calibration.scores()
    assert calibration.choice.sigma_map.depth_power == pytest.approx(2, abs=0.25)
    assert calibration.notes() == []
    assert after["crps"] < before["crps"]
    assert after["auce"] < 0.1
    assert after["coverage_95"] == pytest.approx(0.95, abs=0.025)
    reject_if_worse(calibration)
    assert "rejected: " in report.table(calibration)


def test_without_a_confidence_sigma_is_a_power_of_the_depth_beside_a_constant():
    depth_alone = rank_sample(np.ones_like, frames=30, power=1.5)
    calibration = calibrate_samples([depth_alone], CalibrationConfig(), NO_CONFIDENCE)
    before, after = calibration.scores()
    assert calibration.choice.reference == "constant"
    assert calibration.choice.sigma_map.depth_power == pytest.approx(1.5, abs=0.15)
    assert after["crps"] < 0.97 * before["crps"]
    assert calibration.notes() == []
    constant = rank_sample(np.ones_like, frames=30, power=0)
    kept = calibrate_samples([constant], CalibrationConfig(), NO_CONFIDENCE).choice.sigma_map
    assert kept.depth_power < 0.1


def test_a_right_sigma_stays_and_one_of_the_wrong_size_is_mended(draw):
    parts = []
    for frame in draw(lambda raw: raw, frames=24).frames:
        wrong = np.random.default_rng(len(parts)).random(frame.shape[1]) < 0.002
        parts.append(np.where([wrong, wrong & False, wrong & False], 40, frame).astype(np.float32))
    right = calibrate_samples([Sample("right", tuple(parts))], GAUSSIAN)
    raw = np.linspace(0.05, 0.5, 10)
    np.testing.assert_allclose(right.choice.sigma_map(raw), raw, rtol=0.06)
    small = [np.stack((frame[0], frame[1] / 4, frame[2])) for frame in parts]
    mended = calibrate_samples([Sample("small", tuple(small))], GAUSSIAN, RECORDED_SIGMA)
    before, after = mended.scores()
    assert before["auce"] > 0.2
    assert after["auce"] < 0.03
    reject_if_worse(mended)


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
def test_the_distribution_of_the_errors_is_found_for_a_camera(draw, distribution):
    sample = draw(lambda raw: raw, frames=30, distribution=distribution)
    made = calibrate_samples([sample], CalibrationConfig(), RECORDED_SIGMA)
    assert made.distribution == distribution
    assert made.choice.sigma_map(np.full(1, 0.15), np.ones(1))[0] == pytest.approx(0.15, rel=0.06)
    assert f"{distribution} error" in report.table(made)


def test_a_part_is_scored_by_maps_that_did_not_see_it(draw):
    """Two sequences miscalibrated in opposite ways: one map for both would cover both better."""
    opposite = [draw(lambda raw: raw / 4), draw(lambda raw: 4 * raw, seed=1)]
    made = calibrate_samples(opposite, GAUSSIAN)
    held_out = made.choice.held_out
    assert held_out["scale"]["auce"] > held_out["raw sigma"]["auce"]
    assert made.choice.sigma_map == IDENTITY
    assert "no map beats raw sigma" in report.table(made)
    kept = report.record(made, {"samples": 8})
    assert kept["not_used"]["after"]["auce"] > 0.1, "too much and too little do not cancel"


def test_the_report_of_one_source_is_on_its_last_frames_alone():
    """The last third is miscalibrated otherwise: the map must know nothing of it."""
    source = ListSource([*drawn(20).records, *drawn(10, start=20, factor=0.5).records])
    made = calibrate([PredictedSource(source, predict)], GAUSSIAN, progress=False)
    np.testing.assert_allclose(made.choice.sigma_map(np.array([0.2])), 0.6, rtol=0.05)
    assert [trial.frames for trial in made.trials] == [10]
    before, after = made.scores()
    assert after["auce"] > before["auce"]


def test_errors_of_another_distribution_are_named(draw):
    """Errors that are all 1.3 sigmas: 95 % of them can be covered, not 68 %."""
    random = np.random.default_rng(0)
    frames = []
    for _ in range(12):
        depth, sigma = random.uniform(2, 5, 200), random.uniform(0.1, 0.4, 200)
        truth = depth + 1.3 * sigma * random.normal(1, 0.02, 200)
        frames.append(np.stack([depth, sigma, truth]).astype(np.float32))
    light = calibrate_samples([Sample("light", tuple(frames))], GAUSSIAN)
    assert "the 68% interval of a gaussian error holds" in " ".join(light.notes())
    assert not calibrate_samples([draw(lambda raw: 2 * raw, frames=30)], GAUSSIAN).notes()


def test_what_fails_on_frames_not_used_is_refused_with_its_reasons():
    records = [*drawn(20, factor=0.3).records, *drawn(10, start=20, factor=0.8).records]
    worse = calibrate([PredictedSource(ListSource(records), predict)], GAUSSIAN, progress=False)
    with pytest.raises(CalibrationError, match=r"95% interval holds .*raw sigma.*--force"):
        reject_if_worse(worse)
    lines = report.table(worse).splitlines()
    assert [line for line in lines if line.startswith("CRPS (m)") and line.endswith("worse")]
    reject_if_worse(calibrate([PredictedSource(drawn(30), predict)], GAUSSIAN, progress=False))


def scaled(spread, frames, seed, last=1.0, mismatched=0.0):
    """A right sigma, but for a factor that each frame has, and one on the last third's errors."""
    random = np.random.default_rng(seed)
    parts = []
    for index in range(frames):
        sigma, truth = random.lognormal(-2, 0.7, 400), random.uniform(2, 8, 400)
        factor = np.exp(random.normal(0, spread)) * (last if index >= frames * 2 / 3 else 1)
        depth = truth + sigma * factor * random.normal(size=400)
        is_wrong = random.random(400) < mismatched
        depth[is_wrong] = random.uniform(2, 8, is_wrong.sum())
        parts.append(np.stack((depth, sigma, truth)).astype(np.float32))
    return Sample("scaled", tuple(parts))


def test_a_right_sigma_is_not_refused_by_the_chance_of_nine_frames():
    """Its coverage over nine frames is off by 3 points in one set of four."""
    off = []
    for seed in range(12):
        made = calibrate_samples([scaled(0.35, 27, seed)], GAUSSIAN, RECORDED_SIGMA)
        off.append(abs(made.scores()[1]["coverage_95"] - 0.95) > 0.03)
        reject_if_worse(made)
        covered = made.coverage()
        assert covered.low < 0.95 < covered.high
        assert made.notes() == [] or "(" in made.notes()[0]
    assert sum(off) >= 2


@pytest.mark.parametrize(
    ("last", "is_refused", "words"),
    [
        (1.6, True, ""),
        (0.82, False, "may claim too much"),
        (0.6, True, ""),
    ],
)
def test_too_wide_intervals_are_written_unless_a_report_calls_them_red(last, is_refused, words):
    made = calibrate_samples([scaled(0.02, 90, 0, last)], GAUSSIAN, DEPTH_HEAD)
    assert bool(made.rejected()) == is_refused
    if is_refused:
        assert "the map fails" in report.table(made), "no guarantee beside a refused map"
        assert not report.record(made)["frame_guarantee"]["factor"]
    else:
        assert words in " ".join(made.notes())


@pytest.mark.parametrize("mismatched", [0.02, 0.03])
def test_coverage_decides_among_maps_and_laws_whose_crps_is_as_good(mismatched):
    """A Laplace sigma of Gaussian errors beside mismatches scores as well, and is too large."""
    made = calibrate_samples([scaled(0, 40, 0, 1, mismatched)], CalibrationConfig(), DEPTH_HEAD)
    assert made.distribution == "gaussian"
    assert made.scores()[1]["coverage_95"] == pytest.approx(0.95, abs=0.015)


def test_each_of_several_sources_is_reported_on_by_the_map_of_the_others():
    def calibrated(*sources):
        predicted = [PredictedSource(source, predict) for source in sources]
        return calibrate(predicted, GAUSSIAN, progress=False)

    made = calibrated(drawn(10, 0), drawn(10, 100), drawn(10, 200, factor=0.3))
    assert [trial.name for trial in made.trials] == ["list 0", "list 100", "list 200"]
    np.testing.assert_allclose(made.trials[2].sigma_map(np.array([0.2])), 0.6, rtol=0.05)
    assert made.fitted.frames == 30
    assert "list 100" in report.table(made)
    alike = calibrated(*(drawn(24, 100 * index) for index in range(3)))
    before, after = alike.scores()
    assert before["auce"] > 0.2
    assert after["auce"] < 0.02
    assert after["crps"] < before["crps"]
    assert after["coverage_95"] == pytest.approx(0.95, abs=0.02)
    kept = report.record(alike)["not_used"]
    assert kept["after"]["auce"] < kept["before"]["auce"]


def test_a_sample_is_repeatable():
    skipped = Skipped(50, "bad_image", "frame 50 is torn")
    source = ListSource([*drawn(30).records, skipped, frame(31, known=0.0)])
    predicted = PredictedSource(source, predict)
    one, again = (collect(predicted, CalibrationConfig(), False) for _ in range(2))
    assert len(one.frames) == 30
    for mine, same in zip(one.frames, again.frames, strict=True):
        np.testing.assert_array_equal(mine, same)


def fail(frame):
    raise MessageError("confidence_out_of_range", "the confidence is 300")


def constant(value):
    """A predictor whose sigma is this everywhere."""
    maps = (np.full(SHAPE, filled, np.float32) for filled in (5, value))
    made = DepthPrediction(*maps)
    return lambda frame: made


NO_DEPTH = Skipped(5, "no_depth", "frame 5 has none")
TOO_LITTLE = "expected at least 8 frames and 1000 pixels"


@pytest.mark.parametrize(
    ("source", "predictor", "sentence"),
    [
        (drawn(7), predict, f"7 frames.*{TOO_LITTLE}"),
        (
            drawn(20, known=0.02),
            predict,
            f"pixels with a prediction and a ground truth.*{TOO_LITTLE}",
        ),
        (ListSource([NO_DEPTH]), predict, f"{TOO_LITTLE}.*the first: frame 5 has none"),
        (drawn(20), fail, "of 20 skipped, the first: 0: the confidence is 300"),
        (drawn(20), constant(0.0), "sigma is 0 for every pixel"),
    ],
)
def test_what_nothing_can_be_calibrated_on_is_one_sentence(source, predictor, sentence):
    with pytest.raises(SourceError, match=sentence):
        calibrate([PredictedSource(source, predictor)], GAUSSIAN, progress=False)


def test_a_constant_sigma_gets_the_right_size():
    made = calibrate([PredictedSource(drawn(20), constant(0.25))], GAUSSIAN, progress=False)
    before, after = made.scores()
    assert after["auce"] < 0.1 < before["auce"]
