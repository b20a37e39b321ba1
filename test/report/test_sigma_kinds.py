# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The scale of the depth, and a sigma without a unit or none at all: nothing invents one."""

import csv
import math

import numpy as np
import pytest

from test.conftest import frame_lines, scored, summary_of
from uncertainty_depth import OnlineMetrics
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import DepthMap, DepthPrediction, Frame
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.metrics.registry import METRICS, flatten
from uncertainty_depth.report import comparison, report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.page import table
from uncertainty_depth.report.requirements import parse
from uncertainty_depth.report.saved_state import merge, read_report

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


MODEL = {"name": "camera", "method": "recorded", "confidence_type": "none"}


def maps(number, noise=0.02, seed=0):
    """Depth of different places with a relative noise, and its truth, (H, W) metres."""
    random = np.random.default_rng(seed)
    for _ in range(number):
        truth = random.uniform(1, 2) + random.uniform(0, 4, (24, 32))
        yield truth * random.normal(1, noise, truth.shape), truth


def evaluation_of(number=40, **options):
    evaluation = Evaluation()
    for depth, truth in maps(number, **options):
        evaluation.add_arrays(depth, None, truth)
    return evaluation


@pytest.fixture(scope="module")
def evaluation():
    return evaluation_of()


def test_its_verdict_has_no_line_of_sigma_and_may_be_green(evaluation):
    verdict = report.summarize(evaluation, report.Context("maps", MODEL))["verdict"]
    assert [line["name"] for line in verdict["lines"]] == ["depth"]
    assert verdict["color"] == "green"
    assert verdict["text"].startswith("Can be trusted here as a depth without sigma: accurate")
    assert any("no confidence" in note for note in verdict["notes"])
    assert evaluation.sigma_kind is SigmaKind.NONE


def test_the_accumulator_takes_it_and_its_metrics_of_sigma_are_no_numbers():
    alone = OnlineMetrics()
    beside = OnlineMetrics()
    for depth, truth in maps(3):
        row = alone.update(depth, None, truth)
        expected = beside.update(depth, np.ones_like(depth), truth)
        assert row["depth"] == expected["depth"]
        assert "uncertainty" not in row
    found = alone.compute()
    expected = beside.compute()
    assert found["depth"] == expected["depth"]
    baselines = flatten(expected["baselines"])
    assert flatten(found["baselines"]) == pytest.approx(baselines, nan_ok=True)
    ause = found["uncertainty"]["ause"]
    assert all(math.isnan(value) for value in ause.values())
    assert math.isnan(found["uncertainty"]["n_merci"])
    assert math.isnan(found["by_distance"]["sigma"]["2_3m"])


def test_a_hole_in_the_depth_is_the_only_hole():
    depth, truth = next(maps(1))
    depth[:6] = np.nan
    metrics = OnlineMetrics()
    metrics.update(depth, None, truth)
    assert metrics.compute()["scored_fraction"] == 0.75


@pytest.mark.parametrize("first", [True, False])
def test_frames_with_and_without_a_sigma_do_not_mix(first):
    depth, truth = next(maps(1))
    sigma = np.ones_like(depth)
    metrics = OnlineMetrics()
    metrics.update(depth, sigma if first else None, truth)
    words = "no sigma; expected one" if first else "a sigma; expected none"
    with pytest.raises(ValueError, match=f"the depth has {words}, as the frames before"):
        metrics.update(depth, None if first else sigma, truth)
    assert metrics.frames == 1
    other = OnlineMetrics()
    other.update(depth, None if first else sigma, truth)
    with pytest.raises(ValueError, match="expected a sigma" if first else "expected no sigma"):
        metrics.merge(other)


def test_a_frame_of_it_has_no_prediction_with_sigma():
    depth, _ = next(maps(1))
    frame = Frame(0, "a", prediction=DepthMap(depth.astype(np.float32)))
    assert frame.need_depth() is frame.prediction
    with pytest.raises(MessageError, match="frame a has a depth without sigma"):
        frame.need_prediction()


@pytest.mark.usefixtures("plots_without_pixels")
def test_its_report_has_no_column_no_map_and_no_plot_of_sigma(evaluation, tmp_path):
    context = report.Context("maps", MODEL)
    report.write(evaluation, tmp_path, context)
    content = summary_of(tmp_path)
    assert content["sigma_kind"] == "none"
    named = {metric.name for metric in METRICS if metric.needs_sigma and not metric.groups}
    assert named <= set(content["undefined"])
    assert "no confidence" in content["undefined"]["uncertainty.auce"]
    assert not [name for name in content["intervals"] if name.startswith("uncertainty.")]
    page = (tmp_path / "report.html").read_text()
    terminal = table(report.summarize(evaluation, context), MODEL)
    for text in (page, terminal):
        assert "AUSE" not in text
        assert "n-MeRCI" not in text
        assert "no confidence" in text
    assert "depth alone" in page
    plots = {path.stem for path in tmp_path.glob("*.png")}
    assert plots == {"by_distance", "scale"}
    columns = csv.DictReader(frame_lines(evaluation)).fieldnames
    assert "depth.abs_rel" in columns
    assert not [name for name in columns if name.startswith("uncertainty.")]


@pytest.mark.parametrize(
    ("make", "requirements", "reason"),
    [
        (
            lambda: fill(Evaluation(sigma_kind=SigmaKind.RANK)),
            ("auce<=0.05", "scale_deviation<=0.2"),
            REASON,
        ),
        (
            evaluation_of,
            ("ause.rmse<=0.2", "by_distance.n_merci.2_3m<=1", "a1>=0.9"),
            "the depth has no confidence",
        ),
    ],
    ids=["without a unit", "none"],
)
def test_a_requirement_on_a_sigma_that_is_not_there_fails_with_the_reason(
    make, requirements, reason
):
    context = report.Context("maps", MODEL, requirements=tuple(map(parse, requirements)))
    *missed, met = report.summarize(make(), context)["requirements"]
    for outcome in missed:
        assert not outcome["passed"]
        assert reason in outcome["text"]
    assert met["passed"]


def test_its_reports_merge_and_compare(tmp_path):
    saved = []
    for seed, noise in enumerate((0.02, 0.05, 0.1)):
        folder = tmp_path / str(seed)
        report.write(evaluation_of(noise=noise), folder, report.Context("maps", MODEL), False)
        saved.append(read_report(folder))
    merged, _ = merge(saved)
    assert merged.sigma_kind is SigmaKind.NONE
    assert merged.evaluated == 120
    compared = comparison.compare(saved)
    rows = {row.name: row for row in compared.rows}
    assert rows["depth.abs_rel"].outcome(1) == "worse"
    assert not [name for name in rows if name.startswith("uncertainty.")]
    assert not [name for name in comparison.figures(compared) if "sparsification" in name]
    assert comparison.headline(compared)


def test_it_compares_with_a_depth_that_has_a_sigma_by_what_both_have(tmp_path):
    with_sigma = Evaluation()
    for depth, truth in maps(20):
        with_sigma.add_arrays(depth, 0.02 * depth, truth)
    for name, each in (("alone", evaluation_of(20)), ("sigma", with_sigma)):
        report.write(each, tmp_path / name, report.Context("maps", MODEL), images=False)
    compared = comparison.compare([read_report(tmp_path / name) for name in ("alone", "sigma")])
    names = {row.name for row in compared.rows}
    assert "depth.rmse" in names
    assert not [name for name in names if name.startswith("uncertainty.")]
