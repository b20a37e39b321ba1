# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a report says of the places where its intervals fail, and when it cannot."""

import json

import numpy as np
import pytest

from uncertainty_depth.metrics.conditional import excess_risk
from uncertainty_depth.metrics.metric import percent_text
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.page import conditional_text
from uncertainty_depth.report.saved_state import merge, read_report

SHAPE = (24, 30)


@pytest.fixture(autouse=True)
def whole_reports(monkeypatch):
    monkeypatch.setattr(report, "excess_risk", excess_risk)


CONTEXT = report.Context("drive", {"head": "gaussian"})


def evaluation_of(frames=60, too_small=1.0, has_sigma=True):
    """Score frames whose sigma is too small by a factor in the left half of the image."""
    evaluation = Evaluation()
    for index in range(frames):
        random = np.random.default_rng([index, 2])
        truth = np.exp(random.uniform(0, 2) + random.uniform(0, 0.5, SHAPE))
        sigma = 0.02 * truth
        errors = sigma * random.standard_normal(SHAPE)
        sigma[:, :15] /= too_small
        evaluation.add_arrays(truth + errors, sigma if has_sigma else None, truth)
    return evaluation


@pytest.mark.parametrize(("too_small", "expected"), [(1, 0), (3, 0.2318)])
def test_a_report_tells_whether_the_place_in_the_image_foretells_a_failure(too_small, expected):
    evaluation = evaluation_of(too_small=too_small)
    summary = report.summarize(evaluation, CONTEXT)
    found = summary["conditional_coverage"]
    assert found["excess_risk"] == pytest.approx(expected, abs=0.015)
    coverage = summary["uncertainty"]["coverage_95"]
    assert found["all_pixels"] == pytest.approx(abs(coverage - 0.95))
    assert found["frames"] == 60
    sentence = conditional_text(found)
    assert f"2025): {percent_text(found['excess_risk'])}. So far from 95 %" in sentence
    others = report.summarize(evaluation, CONTEXT, is_quick=True)
    assert others.pop("conditional_coverage") == {}
    summary.pop("conditional_coverage")
    assert json.dumps(others) == json.dumps(summary), "the verdict does not ask it"


def test_what_cannot_be_known_is_not_a_number_with_its_reason(tmp_path):
    cases = {
        "independent blocks; expected at least 10": evaluation_of(frames=12),
        "the depth has no confidence": evaluation_of(frames=12, has_sigma=False),
    }
    for folder in ("one", "two"):
        evaluation_of(frames=21 if folder == "one" else 24).write(tmp_path / folder)
    merged, context = merge(map(read_report, (tmp_path / "one", tmp_path / "two")))
    for reason, evaluation in (*cases.items(), ("its sources' own reports have", merged)):
        found = report.summarize(evaluation, CONTEXT)["conditional_coverage"]
        assert np.isnan(found["excess_risk"])
        assert reason in found["undefined"]
    assert "its sources&#39; own reports have" in report.page(merged, context)
