# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Invalid model descriptions, as a topic may have them, are read safely."""

import numpy as np
import pytest

from uncertainty_depth.report import report
from uncertainty_depth.report.model_facts import limits_of, median_depth_of
from uncertainty_depth.report.verdict import judge


@pytest.mark.parametrize("values", [None, [], [[1.0] * 20] * 15, "median", [["x"] * 20] * 16])
def test_invalid_median_depth_is_none(values):
    assert median_depth_of({"training": {"median_depth_m": values}}) is None


def test_null_in_median_depth_is_nan():
    grid = median_depth_of({"training": {"median_depth_m": [[None] + [2.0] * 19] * 16}})
    assert np.isnan(grid[:, 0]).all()
    assert (grid[:, 1:] == 2).all()


@pytest.mark.parametrize(
    "value", [None, 3, "ab", [1], [1, "b"], [2, 1], [0, 1], [1, float("inf")]]
)
def test_invalid_limits_are_none(value):
    assert limits_of(value) is None
    assert limits_of([1, 2.5]) == (1.0, 2.5)


@pytest.mark.parametrize(
    "model",
    [
        {"head": [], "depth_range": "far", "training": "x"},
        {"training": {"camera": 3, "source": {"a": 1}, "median_depth_m": {}}},
        {"training": {"camera": {"aspect": ["a", "b"], "focal_length_per_width": None}}},
        {"model": None, "method": 7, "calibration": "x" * 1000},
    ],
)
def test_invalid_description_gives_a_grey_domain_and_a_report(model, evaluate_moments, tmp_path):
    evaluation = evaluate_moments(frames=3)
    assert judge(evaluation, model, None).lines[-1].color == "grey"
    context = report.Context("live", model)
    assert report.write(evaluation, tmp_path / "report", context, images=False).exists()
