# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The scale of the depth over the frames, and a sigma without a unit."""

import csv
import math

import numpy as np
import pytest

from test.conftest import frame_lines, scored, summary_of
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.page import table
from uncertainty_depth.report.requirements import parse

SCALES = (1.0, 1.1, 0.9, 1.0, 1.3)
REASON = "the confidence has no unit: it ranks the pixels"


def fill(evaluation, scales=SCALES, aligned=False):
    random = np.random.default_rng(0)
    for index, scale in enumerate(scales):
        truth = random.uniform(1, 8, (24, 32)).astype(np.float32)
        noise = random.normal(0, 0.05, truth.shape)
        depth = ((truth + noise) / (1 if aligned else scale)).astype(np.float32)
        factor = scale if aligned else 1.0
        sigma = np.abs(noise).astype(np.float32)
        made = DepthPrediction(depth, sigma, aligned_by=factor)
        evaluation.add(Frame(index, str(index), ground_truth_m=truth, prediction=made))
    return evaluation


@pytest.mark.parametrize("aligned", [False, True])
def test_drift_and_jump_are_those_of_the_logarithms(aligned):
    found = fill(Evaluation(), aligned=aligned).summary()["scale"]
    logs = np.log(SCALES)
    assert found["mean_factor"] == pytest.approx(math.exp(logs.mean()), rel=0.01)
    assert found["scale_deviation"] == pytest.approx(logs.std(), rel=0.05)
    assert found["scale_jump"] == pytest.approx(np.abs(np.diff(logs)).mean(), rel=0.05)


def test_nothing_seen_has_no_scale_and_a_frame_without_one_is_left_out():
    assert all(math.isnan(value) for value in Evaluation().summary()["scale"].values())
    evaluation = fill(Evaluation(), SCALES[:2])
    before = evaluation.summary()["scale"]
    truth = np.ones((4, 5), np.float32)
    evaluation.add(scored(9, truth, 0 * truth, truth))
    assert evaluation.summary()["scale"] == before
    evaluation.merge(fill(Evaluation(), SCALES[2:]), "later", with_frames=False)
    merged = evaluation.summary()["scale"]
    logs = np.log(SCALES)
    jumps = np.abs(np.diff(logs))[[0, 2, 3]]  # not the one between the parts
    assert merged["scale_deviation"] == pytest.approx(logs.std(), rel=0.05)
    assert merged["scale_jump"] == pytest.approx(jumps.mean(), rel=0.05)


@pytest.mark.usefixtures("plots_without_pixels")
def test_a_sigma_without_a_unit_has_no_size_anywhere(tmp_path):
    evaluation = fill(Evaluation(sigma_kind=SigmaKind.RANK))
    context = report.Context("bag", {"name": "camera"})
    report.write(evaluation, tmp_path / "report", context)
    content = summary_of(tmp_path / "report")
    sigma = content["uncertainty"]
    assert content["sigma_kind"] == "rank"
    sized = {name for name, value in sigma.items() if value is None}
    assert {"auce", "auce_laplace", "coverage_95", "nll", "crps", "mpiw_95"} <= sized
    assert not sized & {"n_merci", "aurc", "spearman", "merci"}
    assert content["baselines"]["constant"]["auce"] is not None
    lines = {line["name"]: line for line in content["verdict"]["lines"]}
    assert lines["size"]["color"] == "grey"
    assert lines["size"]["text"].startswith(REASON)
    assert REASON not in lines["order"]["text"]
    page = (tmp_path / "report" / "report.html").read_text()
    for text in (page, table(report.summarize(evaluation, context), {})):
        assert "no unit" in text
        assert REASON in text
    names = {path.stem for path in (tmp_path / "report").glob("*.png")}
    assert "scale" in names
    assert "reliability" not in names
    row = next(csv.DictReader(frame_lines(evaluation)))
    assert math.isnan(float(row["uncertainty.auce"]))


def test_a_requirement_on_the_size_of_a_sigma_without_a_unit_fails_with_the_reason():
    evaluation = fill(Evaluation(sigma_kind=SigmaKind.RANK))
    required = (parse("auce<=0.05"), parse("scale_deviation<=0.2"))
    context = report.Context("bag", {}, requirements=required)
    missed, met = report.summarize(evaluation, context)["requirements"]
    assert not missed["passed"]
    assert REASON in missed["text"]
    assert met["passed"]
