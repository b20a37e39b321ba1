# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Invalid model descriptions, as a topic may have them, are read safely."""

import pytest

from uncertainty_depth.report import report
from uncertainty_depth.report.model_facts import median_depth_of
from uncertainty_depth.report.page import Images, render
from uncertainty_depth.strict import limits_of


@pytest.mark.parametrize("value", [3, "ab", [1], [1, "b"], [2, 1], [0, 1], [1, float("inf")]])
def test_what_is_no_pair_of_limits_is_none(value):
    assert limits_of(value) is None


@pytest.mark.parametrize("value", [None, [], [[1.0] * 20] * 15, "median", [["x"] * 20] * 16])
def test_what_is_no_median_depth_is_none(value):
    assert median_depth_of({"training": {"median_depth_m": value}}) is None


@pytest.mark.parametrize(
    "model",
    [
        {"head": [], "depth_range": "far", "training": "x"},
        {"training": {"camera": 3, "source": {"a": 1}, "median_depth_m": {}}},
        {"training": {"camera": {"aspect": ["a", "b"], "focal_length_per_width": None}}},
        {"model": None, "method": 7, "calibration": "x" * 1000},
        {"training": {"median_depth_m": [[None] * 20] * 16, "camera": {"aspect": [2, 1]}}},
    ],
)
def test_invalid_description_gives_a_grey_domain_and_a_report(model, good_moments):
    context = report.Context("live", model)
    summary = report.summarize(good_moments(3), context)
    assert summary["verdict"]["lines"][-1]["color"] == "grey"
    assert render(summary, "", Images({})).startswith("<!doctype html>")
