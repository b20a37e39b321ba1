# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Recorded maps get a meaning: uncertainty from each type of confidence, metres from a line."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test.conftest import refused
from test.sigma.recorded.conftest import scene
from uncertainty_depth.core.config.source import CONFIDENCE_TYPES, PredictionConfig
from uncertainty_depth.core.records import Frame, RecordedMaps
from uncertainty_depth.metrics.metric import NOT_JUDGED, SigmaKind
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.sigma.recorded.alignment import MIN_POINTS, Alignment, fit
from uncertainty_depth.sigma.recorded.confidence import TYPES
from uncertainty_depth.sigma.recorded.interpreter import Interpreter

DEPTH = np.full((1, 5), 4.0, np.float32)
EXAMPLES = {
    "sigma": ([0, 0.1, 0.2, 1, 3], [0, 0.1, 0.2, 1, 3]),
    "variance": ([0, 0.01, 0.04, 1, 9], [0, 0.1, 0.2, 1, 3]),
    "relative_error": ([0, 0.1, 0.2, 0.5, 1], [0, 0.4, 0.8, 2, 4]),
    "log_error": ([0, 0.1, 0.2, 0.5, 1], [0, 0.4, 0.8, 2, 4]),
    "confidence_0_1": ([1, 0.9, 0.5, 0.25, 0], [0, 0.1, 0.5, 0.75, 1]),
    "confidence_0_100": ([100, 90, 50, 25, 0], [0, 0.1, 0.5, 0.75, 1]),
    "dust3r": ([100, 10, 4, 2, 1], [0.01, 0.1, 0.25, 0.5, 1]),
    "uncertainty_rank": ([0, 1, 7, 100, 255], [0, 1, 7, 100, 255]),
    "certainty_rank": ([1000, 10, 1, 0.5, 0], [0.001, 0.1, 1, 2, 4096]),
}


def read(name, values):
    return TYPES[name].read(np.array([values], np.float32), DEPTH[:, : len(values)])


def test_every_type_of_the_option_is_known():
    assert tuple(TYPES) == CONFIDENCE_TYPES == (*EXAMPLES, "none")
    assert (read("none", [7, -1, 0]) == 1).all()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_uncertainty_rises_as_documented(name):
    values, expected = EXAMPLES[name]
    uncertainty = read(name, values)
    assert uncertainty.dtype == np.float32
    np.testing.assert_allclose(uncertainty, [expected], rtol=1e-6, atol=1e-7)
    assert (np.diff(uncertainty) > 0).all()


def test_a_value_that_is_not_finite_becomes_nan():
    uncertainty = read("confidence_0_1", [0.5, np.nan, np.inf])
    np.testing.assert_array_equal(uncertainty, [[0.5, np.nan, np.nan]])


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        (
            "confidence_0_1",
            [0, 250],
            "confidence_type uncertainty_rank (larger = less certain) or certain",
        ),
        ("confidence_0_1", [0, 99], "confidence_type confidence_0_100"),
        ("dust3r", [0.2, 0.9], "confidence_type confidence_0_1"),
        ("sigma", [-1, 2], "values of 0 or more"),
        ("variance", [-1e-3, 2], "values of 0 or more"),
    ],
)
def test_a_type_that_cannot_be_says_what_to_type_instead(name, values, expected):
    with refused("confidence_out_of_range", "cannot be") as caught:
        read(name, values)
    assert name in str(caught.value)
    assert expected in str(caught.value)


def test_a_confidence_without_a_number_is_refused():
    with refused("confidence_empty"):
        read("sigma", [np.nan, np.nan])


def test_types_without_a_unit_say_why_they_have_no_size():
    sized = {name for name, each in TYPES.items() if each.sigma_kind is SigmaKind.METRES}
    assert sized == {"sigma", "variance", "relative_error", "log_error"}
    assert TYPES["none"].sigma_kind is SigmaKind.NONE
    assert "calibrate" in NOT_JUDGED[TYPES["confidence_0_100"].sigma_kind]


def scored(confidence_of, confidence_type):
    interpreter = Interpreter(PredictionConfig(confidence_type=confidence_type))
    evaluation = Evaluation(sigma_kind=interpreter.sigma_kind)
    for index in range(4):
        now = scene(index)
        maps = RecordedMaps(now.depth, confidence_of(now).astype(np.float32))
        frame = Frame(index, str(index), ground_truth_m=now.truth, recorded=maps)
        evaluation.add(replace(frame, prediction=interpreter.predict(frame)))
    return interpreter, evaluation


def notes(confidence_of, confidence_type):
    interpreter, evaluation = scored(confidence_of, confidence_type)
    return " ".join([*interpreter.doubts(evaluation.metrics.total()), *interpreter.notes()])


@pytest.mark.parametrize(
    ("read_as", "right"),
    [("uncertainty_rank", "certainty_rank"), ("certainty_rank", "uncertainty_rank")],
)
def test_a_confidence_that_ranks_better_the_other_way_is_told(read_as, right):
    """As an OAK's, whose sign DepthAI 3 turned."""

    def confidence(now):
        return now.sigma if right == "uncertainty_rank" else 1 / now.sigma

    said = notes(confidence, read_as)
    assert "better the other way: AUSE abs_rel is " in said
    assert f"expected --confidence-type {right}" in said
    assert notes(confidence, right) == ""
    told = float(said.split("and would be ")[1].split(";")[0])
    summary = scored(confidence, right)[1].summary()
    assert told == pytest.approx(summary["uncertainty"]["ause"]["abs_rel"], rel=0.05)


def test_a_reversed_confidence_that_is_read_as_sigma_by_default_is_asked_about():
    def certainty(now):
        return 1 - 0.9 * now.sigma / now.sigma.max()

    said = notes(certainty, "")
    assert "for nobody named its type, but ranks the errors better the other way" in said
    assert "--confidence-type, e.g. confidence_0_1 or certainty_rank" in said
    assert notes(certainty, "confidence_0_1") == ""
    assert notes(certainty, "sigma") == "", "whoever names the type is not asked"


@pytest.mark.parametrize("read_as", ["uncertainty_rank", ""])
def test_noise_has_no_other_way(read_as):
    random = np.random.default_rng(0)
    assert notes(lambda s: random.uniform(1, 2, s.depth.shape), read_as) == ""


def test_a_zed_s_confidence_without_its_type_is_asked_about():
    def zed(now):
        return np.rint(1 + 99 * now.sigma / now.sigma.max())

    said = notes(zed, "")
    assert "is read as sigma in metres" in said
    assert "uncertainty_rank for a ZED's confidence of 1 to 100" in said
    assert notes(lambda s: s.sigma, "") == ""
    assert notes(zed, "sigma") == "", "whoever names the type is not asked"
    mostly_sure = notes(lambda s: np.where(s.sigma < np.quantile(s.sigma, 0.9), 1, zed(s)), "")
    assert "is read as sigma in metres" in mostly_sure
    assert notes(zed, "uncertainty_rank") == ""


@pytest.mark.parametrize("unit", [1e-9, 65535.0, 1e9])
def test_a_rank_in_any_unit_has_the_same_scores(unit):
    """A ZED's confidence as 16 bits, and as a fraction."""
    of_one, of_other = (
        scored(lambda s, factor=factor: s.sigma * factor, "uncertainty_rank")[1].values()
        for factor in (1.0, unit)
    )
    for name, value in of_one.items():
        if name == "by_distance.n_merci.4_6m":
            assert of_other[name] == pytest.approx(value, rel=0.03)
        elif not name.startswith("by_distance.n_merci"):  # few pixels in coarse bins
            assert of_other[name] == pytest.approx(value, rel=1e-2, nan_ok=True), name


SCALES = st.floats(1e-3, 1e3)
SHIFTS = st.floats(-20, 20)
SEEDS = st.integers(0, 2**31)


def truth_of(seed, number=400):
    return np.random.default_rng(seed).uniform(0.5, 30, number)


def relative(truth, scale, shift, is_inverse):
    """What aligns to the truth by `scale` and `shift`."""
    target = 1 / truth if is_inverse else truth
    return (target - shift) / scale


@settings(max_examples=40)
@given(seed=SEEDS, scale=SCALES, shift=SHIFTS, is_inverse=st.booleans())
def test_scale_and_shift_are_recovered(seed, scale, shift, is_inverse):
    truth = truth_of(seed)
    found = fit("scale_shift", relative(truth, scale, shift, is_inverse), truth, is_inverse)
    assert found.scale == pytest.approx(scale, rel=1e-6)
    assert found.shift == pytest.approx(shift, rel=1e-6, abs=1e-6)


@settings(max_examples=30)
@given(
    seed=SEEDS, scale=SCALES, is_inverse=st.booleans(), mode=st.sampled_from(("median", "scale"))
)
def test_the_scale_is_recovered(seed, scale, is_inverse, mode):
    truth = truth_of(seed)
    found = fit(mode, relative(truth, scale, 0.0, is_inverse), truth, is_inverse)
    assert found == Alignment(pytest.approx(scale, rel=1e-9), 0.0, is_inverse)


@settings(max_examples=40)
@given(
    seed=SEEDS,
    scale=st.floats(0.1, 10),
    shift=st.floats(-5, 5),
    fraction=st.floats(0.0, 0.3),
    mode=st.sampled_from(("scale", "scale_shift")),
)
def test_outliers_do_not_move_the_fit(seed, scale, shift, fraction, mode):
    truth = truth_of(seed)
    random = np.random.default_rng(seed + 1)
    shift = shift if mode == "scale_shift" else 0.0
    prediction = relative(truth, scale, shift, False)
    outliers = random.choice(len(truth), round(fraction * len(truth)), replace=False)
    measured = truth.copy()
    measured[outliers] = random.uniform(0.5, 80, len(outliers))
    found = fit(mode, prediction, measured, False)
    assert found.scale == pytest.approx(scale, rel=1e-2)
    assert found.shift == pytest.approx(shift, abs=0.15)


@pytest.mark.parametrize("mode", ["median", "scale", "scale_shift"])
def test_too_few_points_are_told(mode):
    truth = truth_of(0, MIN_POINTS - 1)
    with refused("too_few_points_to_align", f"expected at least {MIN_POINTS}"):
        fit(mode, truth, truth, False)


def test_a_disparity_that_is_called_depth_is_told():
    truth = truth_of(0)
    with refused("alignment_failed", "--depth-type inverse_depth"):
        fit("scale_shift", 1 / truth, truth, False)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_prediction_has_no_line(value):
    with refused("alignment_failed"):
        fit("scale_shift", np.full(100, value), truth_of(0, 100), False)


def test_sigma_is_scaled_along_with_the_depth():
    depth = np.array([[1.0, 2.0]], np.float32)
    sigma = np.array([[0.1, 0.2]], np.float32)
    aligned, scaled = Alignment(3.0, 0.5).depth_and_sigma(depth, sigma, 80.0)
    np.testing.assert_allclose(aligned, [[3.5, 6.5]])
    np.testing.assert_allclose(scaled, [[0.3, 0.6]], rtol=1e-6)


def test_sigma_of_an_inverse_depth_follows_its_derivative():
    inverse = np.array([[0.5]], np.float32)
    line = Alignment(0.4, 0.05, is_inverse=True)
    aligned, sigma = line.depth_and_sigma(inverse, np.array([[1e-3]], np.float32), 80.0)
    nearer, _ = line.depth_and_sigma(inverse + np.float32(1e-3), inverse, 80.0)
    assert aligned[0, 0] == pytest.approx(4.0)
    assert sigma[0, 0] == pytest.approx(aligned[0, 0] - nearer[0, 0], rel=0.01)
