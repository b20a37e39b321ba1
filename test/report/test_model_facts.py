# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Invalid model descriptions, as a topic may have them, are read safely."""

import pytest

from uncertainty_depth.report import report
from uncertainty_depth.report.page import Images, render

MEDIANS = (None, [], [[1.0] * 20] * 15, "median", [["x"] * 20] * 16, [[None] * 20] * 16)
LIMITS = (3, "ab", [1], [1, "b"], [2, 1], [0, 1], [1, float("inf")])


@pytest.mark.parametrize(
    "model",
    [
        {"head": [], "depth_range": "far", "training": "x"},
        {"training": {"camera": 3, "source": {"a": 1}, "median_depth_m": {}}},
        {"training": {"camera": {"aspect": ["a", "b"], "focal_length_per_width": None}}},
        {"model": None, "method": 7, "calibration": "x" * 1000},
        *({"training": {"median_depth_m": values}} for values in MEDIANS),
        *({"training": {"camera": {"aspect": values}}} for values in LIMITS),
    ],
)
def test_invalid_description_gives_a_grey_domain_and_a_report(model, good_moments):
    context = report.Context("live", model)
    summary = report.summarize(good_moments(3), context)
    assert summary["verdict"]["lines"][-1]["color"] == "grey"
    assert render(summary, "", Images({})).startswith("<!doctype html>")
