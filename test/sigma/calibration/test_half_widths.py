# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Intervals at a coverage, measured or of a distribution, and the guarantee for whole frames."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import CalibrationConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.model_folder.writing import set_calibration
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS
from uncertainty_depth.sigma.calibration import SigmaMap, report
from uncertainty_depth.sigma.calibration.half_widths import (
    BY_DISTRIBUTION,
    MEASURED,
    frame_factor,
    from_record,
    guarantee,
    measured_half_widths,
)
from uncertainty_depth.sigma.calibration.run import calibrate_samples
from uncertainty_depth.sigma.calibration.sample import Sample

MAP = SigmaMap("scale", (0.0, 1.0), (0.0, 2.0))
LINE = np.linspace(0.1, 3.0, 99)


@pytest.mark.parametrize(
    ("name", "distribution"), [("gaussian", stats.norm), ("laplace", stats.laplace)]
)
def test_a_distribution_encloses_the_coverage(name, distribution):
    for coverage in (0.5, 0.9, 0.95, 0.99):
        deviation = distribution.std()
        expected = distribution.ppf((1 + coverage) / 2) / deviation
        assert BY_DISTRIBUTION[name].at(coverage) == pytest.approx(expected, rel=1e-6)


def test_measured_half_widths_cover_just_their_level_of_the_pixels():
    random = np.random.default_rng(0)
    sigma = random.uniform(0.1, 1, 5000)
    error = sigma * np.abs(random.standard_t(3, 5000))
    covered = error[:, None] <= measured_half_widths(error, sigma) * sigma[:, None] * (1 + 1e-12)
    fractions = covered.mean(axis=0)
    assert (fractions >= CONFIDENCE_LEVELS).all()
    assert (fractions < CONFIDENCE_LEVELS + 1.5 / 5000).all()


@pytest.mark.parametrize(
    "values", [[1.0], [1.0] * 98 + [0.5], [float("nan")] * 99, [-1.0] + [1.0] * 98, ["x"] * 99, 3]
)
def test_numbers_that_are_no_half_widths_are_refused(values):
    with pytest.raises(ModelError, match="half_widths"):
        from_record({"half_widths": values})


def test_the_predictor_takes_them_from_the_calibration_in_use(model):
    config = PredictorConfig(samples=2, device="cpu")
    assert Predictor(model, config).half_widths is BY_DISTRIBUTION["gaussian"]
    set_calibration(model, "mc_dropout", MAP, {"half_widths": LINE.tolist()})
    predictor = Predictor(model, config)
    assert predictor.half_widths.at(0.995) == 3.0
    assert predictor.half_widths.at(0.95) == pytest.approx(LINE[94])
    assert predictor.describe()["interval"] == MEASURED
    predictor.config = PredictorConfig(samples=2, device="cpu", calibrated=False)
    assert predictor.half_widths is BY_DISTRIBUTION["gaussian"]
    assert predictor.describe()["interval"] == "gaussian distribution"
    assert "half_widths" not in predictor.describe()


def test_calibrating_measures_them_on_frames_not_used(draw):
    """Sigma is half the true one; on the last frames, which are not used, a fifth."""
    first = draw(lambda raw: 2 * raw, frames=200, seed=1)
    last = draw(lambda raw: 5 * raw, frames=100, seed=2)
    sample = Sample("drive", (*first.frames, *last.frames))
    config = CalibrationConfig(distribution="gaussian")
    calibration = calibrate_samples([sample], config)
    widths = calibration.half_widths()
    assert widths[94] == pytest.approx(2.5 * stats.norm.ppf(0.975), rel=0.06)
    record = json.loads(json.dumps(report.record(calibration, {"samples": 8})))
    assert from_record(record).at(0.95) == pytest.approx(widths[94], rel=1e-5)


def test_a_frame_s_factor_is_the_smallest_that_covers_its_pixels():
    random = np.random.default_rng(0)
    sigma = random.uniform(0.1, 1, 300)
    error = np.abs(random.standard_cauchy(300)) * sigma
    factor = frame_factor(error, sigma)
    assert (error <= factor * sigma * (1 + 1e-12)).mean() >= 0.9
    assert (error <= 0.999 * factor * sigma).mean() < 0.9


@pytest.mark.parametrize("number", [9, 12, 40, 200])
def test_independent_frames_give_the_order_statistic_of_split_conformal(number):
    factors = np.random.default_rng(number).lognormal(0, 1, number)
    one_each = [[factor] for factor in factors]
    order = math.ceil((number + 1) * 0.9 - 1e-9)
    found = guarantee(one_each)
    assert found.factor == np.sort(factors)[order - 1]
    assert (found.number, found.blocks) == (number, number)


def test_too_few_frames_allow_none_and_say_how_many_would():
    some = guarantee([[1.0]] * 9)
    assert some.holds
    assert some.sentence().startswith("guarantee by frame: depth +- 1.00 sigma covers")
    none = guarantee([[1.0]] * 8)
    assert not none.holds
    assert "expected at least 9 blocks" in none.sentence()
    assert json.loads(json.dumps(none.to_mapping()))["factor"] is None


@pytest.mark.parametrize(("number", "blocks"), [(9, 1), (19, 1), (20, 2), (39, 4)])
def test_few_frames_of_one_recording_show_no_correlation_and_make_no_guarantee(number, blocks):
    factors = np.random.default_rng(0).lognormal(0, 1, number)
    found = guarantee([factors])
    assert not found.holds
    assert found.blocks == blocks
    assert f"{number} frames not used, {blocks} independent block" in found.sentence()
    assert guarantee([factors] * 9).holds, "nine recordings are nine blocks at least"


@pytest.mark.parametrize("correlation", [0.0, 0.97])
def test_nine_in_ten_new_frames_are_covered_however_the_frames_are_correlated(correlation):
    """Frames of several recordings share errors: log factors are autoregressive, and so new ones.

    The new frame is of another recording. Many runs: the rate's standard error is .013.
    """
    random = np.random.default_rng(1)
    innovation = math.sqrt(1 - correlation**2)
    covered = []
    few = 0
    for _ in range(500):
        steps = innovation * random.normal(size=(12, 300))
        recordings = np.exp(lfilter([1], [1, -correlation], steps)[:, -60:])
        found = guarantee(recordings)
        few += not found.holds
        covered.append(math.exp(random.normal()) <= found.factor)
    assert np.mean(covered) > 0.87
    assert few < 10
    if correlation == 0:
        assert np.mean(covered) < 0.94, "no more than the promise costs"
