# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Reports are compared frame by frame, and merged exactly."""

import csv
import json
import math
import re
import shutil

import numpy as np
import pytest

from test.conftest import frame_lines, scored
from test.report.conftest import evaluation_of, moments, saved
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics.bootstrap import Resampled
from uncertainty_depth.metrics.registry import BY_VALUE, METRICS, flatten
from uncertainty_depth.report import comparison, report
from uncertainty_depth.report.comparison import compare
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.requirements import outcome, parse
from uncertainty_depth.report.saved_state import merge, read_report

FRAMES = 48


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Reports of the same frames: good, with twice the error, and with sigma shuffled."""
    root = tmp_path_factory.mktemp("reports")
    for name, attack in {
        "good": lambda it: (it.depth, it.sigma),
        "double": lambda it: (np.maximum(2 * it.depth - it.truth, 0.05), 2 * it.sigma),
        "shuffled": lambda it: (it.depth, np.random.default_rng(1).permuted(it.sigma)),
    }.items():
        saved(evaluation_of(attack, FRAMES), root / name)
    return root


def reports_of(root, *names):
    return [read_report(root / name) for name in names]


def saved_frames(folder, moments, factor=1.0, pose_of=lambda stamp: None):
    """Return the report of moments by their stamp, whose sigma is multiplied by a factor."""
    evaluation = Evaluation()
    for stamp, it in moments:
        sigma = factor * it.sigma
        evaluation.add(scored(stamp, it.truth, it.depth, sigma, pose=pose_of(stamp)))
    return saved(evaluation, folder)


@pytest.fixture(scope="module")
def compared(folders):
    return compare(reports_of(folders, "good", "double", "shuffled"))


def row_of(comparison, name):
    return next(row for row in comparison.rows if row.name == name)


def test_every_metric_is_that_of_the_reports_and_of_their_verdicts_bit_for_bit(compared):
    """The frames are equal: summary, interval, verdict, requirement and comparison agree."""
    names = {row.name for row in compared.rows}
    for metric in METRICS:
        assert metric.unit == "count" or names.issuperset(metric.names())
    for place, one in enumerate(compared.reports):
        values = flatten(one.summary)
        again = flatten(one.evaluation.summary())
        sample = Resampled(one.evaluation.metrics)
        for row in compared.rows:
            found = row.values[place].value
            stored = values[row.name]
            expected = math.nan if stored is None else float(stored)
            judged = sample.rows(BY_VALUE[row.name])[0].reshape(-1)
            judged = judged[BY_VALUE[row.name].names().index(row.name)]
            np.testing.assert_equal([found, again[row.name], judged], [expected] * 3, row.name)
        checks = {check["name"]: check for line in one.summary["verdict"]["lines"]
                  for check in line["checks"]}  # fmt: skip
        assert checks["a1 against the best constant depth"]["value"] == values["depth.a1"]
        coverage = checks["coverage at 95 % (laplace)"]["value"]
        assert coverage == values["uncertainty.coverage_95_laplace"]
        required = outcome(parse("auce_laplace<=1"), one.summary, "laplace")
        assert required.value == values["uncertainty.auce_laplace"]
        rows = {row.name: row.values[place] for row in compared.rows}
        for name, interval in one.summary["intervals"].items():
            assert [rows[name].low, rows[name].high] == list(interval), name


def test_differences_are_paired_and_called_better_or_worse(compared):
    mae = row_of(compared, "depth.mae")
    assert mae.outcome(0) == "worse"
    assert mae.differences[0].value == pytest.approx(mae.values[0].value, rel=0.05)
    assert row_of(compared, "depth.a1").outcome(0) == "worse"
    assert mae.differences[1].value == mae.differences[1].low == mae.differences[1].high == 0
    assert mae.outcome(1) == ""
    assert row_of(compared, "uncertainty.ause.rmse").outcome(1) == "worse"
    assert row_of(compared, "uncertainty.aurg.rmse").outcome(1) == "worse"
    coverage = row_of(compared, "uncertainty.coverage_95_laplace")
    assert coverage.values[2].value < coverage.values[0].value < 0.97
    assert coverage.outcome(1) == "worse", "farther from what is claimed"
    assert row_of(compared, "uncertainty.mpiw_95").outcome(1) == ""


def test_pairing_makes_the_interval_of_a_difference_narrow(compared):
    """The scene moves both reports alike; resampled apart they would differ by that."""
    for name in ("depth.mae", "uncertainty.crps_laplace"):
        row = row_of(compared, name)
        apart = sum((value.high - value.low) ** 2 for value in row.values[:2]) ** 0.5
        assert row.differences[0].high - row.differences[0].low < 0.8 * apart


def test_the_page_needs_no_other_file(compared, tmp_path):
    page = comparison.write(compared, tmp_path, "compare a b").read_text()
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page)
    assert page.count("data:image/png;base64,") == 7
    assert "compare a b" in page
    table = json.loads((tmp_path / "compare.json").read_text())
    assert table["common_frames"] == FRAMES
    assert table["metrics"]["depth.mae"]["outcomes"] == ["worse", ""]


def test_the_best_value_of_a_metric_is_marked(compared):
    """Twice the error is never best; where there is a target, the nearest value is."""
    assert row_of(compared, "depth.mae").best() == {0, 2}
    coverage = row_of(compared, "uncertainty.coverage_95_laplace")
    gaps = [abs(value.value - 0.95) for value in coverage.values]
    assert coverage.best() == {gaps.index(min(gaps))}
    assert row_of(compared, "uncertainty.mpiw_95").best() == set()
    page = comparison.headline(compared)
    (mae,) = [line for line in page if line.startswith("depth.mae")]
    assert mae.count("*") == 2
    _, after_double, after_shuffled = mae.split(")")
    assert after_double.startswith(" worse")
    assert after_shuffled == ""


def test_tables_and_curves_are_written_for_a_paper(folders, tmp_path, capsys, monkeypatch):
    shown = ("reliability", "sparsification_rmse")
    draw = comparison.figures
    monkeypatch.setattr(
        comparison, "figures", lambda compared: {name: draw(compared)[name] for name in shown}
    )
    reports = [str(folders / name) for name in ("good", "double", "shuffled")]
    files = {"--csv": tmp_path / "all.csv", "--latex": tmp_path / "paper.tex"}
    options = [word for flag, path in files.items() for word in (flag, str(path))]
    arguments = ["compare", *reports, "-o", str(tmp_path / "page"), *options]
    assert main([*arguments, "--curves", "png", "svg", "pdf"]) == 0
    table = json.loads((tmp_path / "page" / "compare.json").read_text())["metrics"]
    with files["--csv"].open() as stream:
        rows = {row["metric"]: row for row in csv.DictReader(stream)}
    assert rows.keys() == table.keys()
    mae = rows["depth.mae"]
    assert mae["best"] == "good; shuffled"
    assert float(mae["double"]) == table["depth.mae"]["values"][1]["value"]
    assert float(mae["double difference high"]) == table["depth.mae"]["differences"][0]["high"]
    assert (mae["double outcome"], mae["shuffled outcome"]) == ("worse", "")
    lines = files["--latex"].read_text().splitlines()
    good, double = (next(line for line in lines if line.startswith(n)) for n in ("good", "double"))
    assert good.startswith(rf"good & \textbf{{{float(mae['good (baseline)']):.4f}}} & ")
    assert good.count("&") == double.count("&") == len(comparison.headline_of(
        compare(reports_of(folders, "good", "double"))))  # fmt: skip
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for name in shown:
        for ending, begin in begins.items():
            assert (tmp_path / "page" / f"{name}.{ending}").read_bytes().startswith(begin)
    assert main(arguments) == 0, "its own files are replaced"
    assert not (tmp_path / "page" / "reliability.pdf").exists()
    files["--csv"].write_text("of somebody else")
    assert main(arguments) == 1
    assert "no run of ours wrote" in capsys.readouterr().err
    assert files["--csv"].read_text() == "of somebody else"


def test_the_worst_frames_of_each_report_are_shown_beside_those_of_the_others(folders, tmp_path):
    shutil.copytree(folders / "good", tmp_path / "good")
    for picture in range(2):
        (tmp_path / "good" / f"worst_{picture}.jpg").write_bytes(b"a picture")
    reports = [*reports_of(tmp_path, "good"), *reports_of(folders, "double")]
    page = comparison.write(compare(reports), tmp_path / "page", "").read_text()
    assert page.count("data:image/jpeg;base64,") == 2
    worst = json.loads((tmp_path / "page" / "compare.json").read_text())["worst"]
    errors = []
    for each in reports:
        with (each.folder / "frames.csv").open() as stream:
            lines = csv.DictReader(stream)
            errors.append({line["frame"]: float(line["depth.abs_rel"]) for line in lines})
    for of_report, found in zip(errors, worst, strict=True):
        frames = sorted(of_report, key=lambda frame: -of_report[frame])[:5]
        assert [row["frame"] for row in found] == frames
        for row in found:
            expected = [each[row["frame"]] for each in errors]
            assert row["values"] == pytest.approx(expected)
            assert f"<td>{row['frame']}</td>" in page


def test_frames_that_only_one_report_has_are_counted(folders, tmp_path):
    short = saved(evaluation_of(frames=40), tmp_path / "short")
    comparison = compare([*reports_of(folders, "good"), short])
    assert comparison.series.shape == (2, 40)
    assert "8 of 48 frames of good are not in every report" in comparison.notes
    assert all(np.isnan(row.differences[0].value) or not row.differences[0].value
               for row in comparison.rows)  # fmt: skip


def test_repeated_frames_are_no_new_evidence_as_in_the_reports(tmp_path):
    """A 12-frame bag that loops four times has the intervals that 12 frames have, not 48."""
    looped = list(enumerate(4 * list(moments(12))))
    reports = [
        saved_frames(tmp_path / name, looped, factor)
        for name, factor in (("once", 1.0), ("wider", 2.0))
    ]
    compared = compare(reports)
    own = reports[0].evaluation.resampled()
    assert compared.blocks == own.drawn_blocks <= 12
    assert not own.has_intervals
    mae = row_of(compared, "depth.mae")
    assert math.isnan(mae.values[0].low)
    assert mae.outcome(0) == row_of(compared, "uncertainty.crps_laplace").outcome(0) == ""
    assert "36 of 48 frames of once have the scores of an earlier frame" in compared.notes[0]


@pytest.mark.parametrize(("left_out", "views"), [((), 1), ((0, 20, 21), 2)])
def test_frames_of_a_still_camera_are_no_new_evidence_as_in_the_reports(tmp_path, left_out, views):
    """Whichever frames are in common: one view's are one block."""

    def pose_of(stamp):
        pose = np.eye(4)
        pose[0, 3] = views == 2 and stamp >= 20
        return pose

    every = list(enumerate(moments(40)))
    some = [moment for moment in every if moment[0] not in left_out]
    reports = [
        saved_frames(tmp_path / "all", every, 1.0, pose_of),
        saved_frames(tmp_path / "wider", some, 2.0, pose_of),
    ]
    assert [len(each.evaluation.metrics.blocks) for each in reports] == [views, views]
    for pair in (reports, reports[::-1]):
        compared = compare(pair)
        assert compared.blocks == views
        assert all(math.isnan(value.low) for row in compared.rows for value in row.values
                   if math.isfinite(value.value))  # fmt: skip
        assert row_of(compared, "uncertainty.crps_laplace").outcome(0) == ""


def test_reports_that_cannot_be_compared_are_refused(folders, tmp_path, capsys):
    (good,) = reports_of(folders, "good")
    with pytest.raises(ConfigError, match="expected two or more"):
        compare([good])
    saved(Evaluation(EvaluationConfig(max_depth=10.0)), tmp_path / "near")
    arguments = ["compare", str(folders / "good"), str(tmp_path / "near")]
    assert main([*arguments, "--output", str(tmp_path / "page")]) == 1
    sentence = capsys.readouterr().err
    assert re.search("near was scored with max_depth 10.0, .*good with 80.0", sentence)
    assert "--max-depth" in sentence
    with pytest.raises(SourceError, match="no frame of empty was scored"):
        compare([good, saved(Evaluation(), tmp_path / "empty")])
    moved = Evaluation()
    flat = np.ones((4, 4), np.float32)
    moved.add(scored(99, flat, flat, flat))
    with pytest.raises(SourceError, match="no frame with the same stamp"):
        compare([good, saved(moved, tmp_path / "elsewhere")])


def test_merged_reports_are_the_evaluation_of_all_frames(folders, tmp_path):
    other = saved(evaluation_of(frames=30, seed=1), tmp_path / "b")
    reports = [*reports_of(folders, "good"), other]
    evaluation, context = merge(reports)
    assert evaluation.evaluated == len(evaluation.metrics.blocks) == FRAMES + 30
    summary = report.summarize(evaluation, context)
    weights = [each.summary["pixels"] for each in reports]
    assert summary["pixels"] == sum(weights)
    crps = [each.summary["uncertainty"]["crps_laplace"] for each in reports]
    expected = np.average(crps, weights=weights)
    assert summary["uncertainty"]["crps_laplace"] == pytest.approx(expected, rel=1e-12)
    rows = list(csv.DictReader(frame_lines(evaluation)))
    assert rows[0]["source"] == "drive"
    # Their rows are computed again from the sums, without the curves.
    single = [line for each in reports for line in frame_lines(each.evaluation)[1:]]
    assert [line.split(",", 1)[1] for line in frame_lines(evaluation)[1:]] == single
    again, _ = merge([read_report(each.folder) for each in reports])
    np.testing.assert_equal(again.metrics.compute(), evaluation.metrics.compute())


def test_merged_unfamiliarity_is_that_of_all_frames(tmp_path):
    scores = np.random.default_rng(3).uniform(0.5, 1.2, 8)
    truth = np.random.default_rng(0).uniform(1, 5, (8, 8)).astype(np.float32)
    reports = []
    for name, part in {"a": scores[:3], "b": scores[3:], "recorded": [None]}.items():
        evaluation = Evaluation()
        for stamp, score in enumerate(part):
            depth = (1.1 + 0.01 * len(reports) + 0.001 * stamp) * truth
            made = DepthPrediction(depth, 0.1 * truth, unfamiliarity=score)
            evaluation.add(Frame(stamp, str(stamp), ground_truth_m=truth, prediction=made))
        reports.append(saved(evaluation, tmp_path / name))
    evaluation, context = merge(reports)
    again = saved(evaluation, tmp_path / "merged", context)
    expected = {
        "frames": len(scores),
        "mean": pytest.approx(scores.mean()),
        "max": scores.max(),
        "fraction_above_1": pytest.approx((scores > 1).mean()),
    }
    assert again.summary["unfamiliarity"] == expected
    (domain,) = [line for line in again.summary["verdict"]["lines"] if line["name"] == "domain"]
    assert f"of {len(scores)} frames" in domain["checks"][0]["text"]
    assert merge([again])[0].summary()["unfamiliarity"] == expected


def test_merge_writes_a_report_that_can_be_merged_again(folders, tmp_path):
    for name, seed in (("b", 1), ("c", 2)):
        saved(evaluation_of(frames=5, seed=seed), tmp_path / name)
    good = str(folders / "good")
    output = tmp_path / "merged"
    requirement = ["--require", f"frames.evaluated>={FRAMES + 5}"]
    assert main(["merge", good, str(tmp_path / "b"), "--output", str(output), *requirement]) == 0
    evaluation, _ = merge([read_report(output), read_report(tmp_path / "c")])
    assert evaluation.evaluated == FRAMES + 10


def test_a_copied_recording_is_counted_once(folders, tmp_path, caplog):
    shutil.copytree(folders / "good", tmp_path / "copy")
    (good,) = reports_of(folders, "good")
    evaluation, context = merge([good, read_report(tmp_path / "copy")])
    assert evaluation.evaluated == FRAMES
    np.testing.assert_equal(evaluation.metrics.compute(), good.evaluation.metrics.compute())
    assert (
        context.notes[0] == "all frames of drive are in earlier sources: a copy, not counted again"
    )
    assert context.notes[0] in caplog.text


def test_a_clip_that_overlaps_is_told(folders, tmp_path):
    """A drive's first frames are the same whatever their number."""
    more = saved(evaluation_of(frames=FRAMES + 6), tmp_path / "more")
    evaluation, context = merge([*reports_of(folders, "good"), more])
    assert evaluation.evaluated == 2 * FRAMES + 6
    assert f"{FRAMES} of {FRAMES + 6} frames of drive are in earlier sources" in context.notes[0]
    assert evaluation.views.repeated == FRAMES


def test_reports_of_other_models_do_not_merge(folders, tmp_path):
    context = report.Context("drive", {"method": "deterministic"})
    other = saved(evaluation_of(frames=2), tmp_path / "other", context)
    with pytest.raises(ConfigError, match="is of another model than"):
        merge([*reports_of(folders, "good"), other])


ODD_NAMES = ("$a$", r"a\$_$\frac$", "_hidden", "two\nlines", "not utf-8 \udcff", "{name}%s")


def test_every_name_stands_in_the_legends_as_it_is(tmp_path, drawing, monkeypatch):
    """What it looks like to matplotlib, a template or an encoder changes nothing."""
    few = evaluation_of(frames=3)
    for name in ODD_NAMES:
        saved(few, tmp_path / name)
    output = tmp_path / "compared"
    shown = [name.replace("\udcff", "?") for name in ODD_NAMES]
    drawn = {}
    draw = comparison.figures

    def drawing_once(compared):
        drawn.update(draw(compared))
        return drawn

    monkeypatch.setattr(comparison, "figures", drawing_once)
    with drawing():
        command = ["compare", *(str(tmp_path / name) for name in ODD_NAMES), "-o", str(output)]
        assert main(command) == 0
    assert (output / "compare.html").read_text(encoding="utf-8").count("data:image/png") == 7
    assert json.loads((output / "compare.json").read_text())["names"] == shown
    for figure in drawn.values():
        (legend,) = figure.legends
        for text, name in zip(legend.get_texts(), shown, strict=True):
            assert text.get_text().startswith(name)


def test_a_comparison_that_cannot_be_drawn_leaves_the_earlier_one(compared, tmp_path, monkeypatch):
    comparison.write(compared, tmp_path, "")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_):
        raise RuntimeError("no font")

    monkeypatch.setattr(comparison, "encoded", fail)
    with pytest.raises(RuntimeError, match="no font"):
        comparison.write(compared, tmp_path, "again")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
