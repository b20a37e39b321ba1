# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A report is complete, self-contained and written atomically; it says where intervals fail."""

import json
import re

import numpy as np
import pytest

from test.conftest import summary_of
from test.report.conftest import evaluated, evaluation_of
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.records import Skipped
from uncertainty_depth.metrics.conditional import excess_risk
from uncertainty_depth.metrics.metric import percent_text
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.page import Images, conditional_text, render, table
from uncertainty_depth.report.saved_state import merge, read_report
from uncertainty_depth.report.scores import frame_name

CONTEXT = report.Context("a test", {"method": "mc_dropout"}, ("one note <b>",))


@pytest.fixture(scope="module")
def written(tmp_path_factory, drawing):
    evaluation = evaluation_of(frames=3)
    evaluation.skip(Skipped(9, "bad_image", "..."))
    folder = tmp_path_factory.mktemp("report") / "new" / "folder"
    with drawing():
        return evaluation, folder, report.write(evaluation, folder, CONTEXT)


def test_summary_json_says_what_was_scored(written):
    summary = summary_of(written[1])
    assert summary["frames"] == {"read": 4, "evaluated": 3, "skipped": {"bad_image": 1}}
    assert summary["pixels"] == 3 * 24 * 32
    assert summary["model"] == {"method": "mc_dropout"}
    assert summary["config"]["max_depth"] == 80


def test_page_is_self_contained_and_escaped(written):
    page = written[2].read_text()
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page)
    assert page.count("data:image/png;base64,") == 8, "curves, scale, timeline, positions"
    assert page.count("data:image/jpeg;base64,") == 1 + 3, "overlay, worst and typical frames"
    assert "one note &lt;b&gt;" in page
    assert "bad_image" in page


def test_every_term_of_the_page_is_linked_to_what_it_means(written):
    page = written[2].read_text()
    links = set(re.findall('href="#([^"]+)"', page))
    assert {"term-ause", "term-order", "term-spearman"} <= links
    assert links <= set(re.findall('<dt id="([^"]+)"', page))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("1000.000000000", "1000 s"),
        ("1722433333.123456789", "1722433333.123 s"),
        ("0443", "0443"),
        ("0000000012.png", "0000000012.png"),
    ],
)
def test_a_stamp_is_shown_without_its_last_digits(name, shown):
    assert frame_name(name) == shown


def test_terminal_and_page_write_a_number_in_one_way(written):
    summary = report.summarize(written[0], CONTEXT)
    summary["uncertainty"]["coverage_95"] = 0.9426
    summary["depth"].update(imae=123.7628, bias=-0.00001)
    for text in (table(summary, {}), render(summary, "", Images({}))):
        assert "94.3 %" in text
        assert "0.9426" not in text
        assert "123.8" in text
        assert "-0.0000" not in text


def test_page_shows_geometry_warnings_once_above_the_verdict(tmp_path):
    warning = "the median depth is 3,100 m: the ground truth is in millimetres"
    geometry = {"description": "median depth 3.1e+03 m", "warnings": [warning]}
    context = report.Context("bag", {}, ("another note", warning), geometry=geometry)
    page = report.write(evaluated(frames=3), tmp_path, context, images=False).read_text()
    assert f'<p class="warning">{warning}</p>' in page
    assert page.index(warning) < page.index('<div class="verdict')
    assert page.count(warning) == 1
    assert "median depth 3.1e+03 m" in page
    assert "another note" in page
    summary = summary_of(tmp_path)
    assert summary["geometry"] == geometry
    assert warning in summary["notes"]


def test_report_of_nothing_scored_says_why(tmp_path):
    evaluation = Evaluation()
    evaluation.skip(Skipped(None, "bad_image", "..."))
    report.write(evaluation, tmp_path, CONTEXT)
    summary = summary_of(tmp_path)
    assert summary["verdict"]["text"] == "no frame could be scored: 1 bad_image"
    assert summary["depth"]["mae"] is None
    assert "1 bad_image" in table(evaluation.summary(), {})


def test_failed_report_leaves_the_earlier_one_unchanged(tmp_path, monkeypatch):
    folder = tmp_path / "report"
    report.write(Evaluation(), folder, CONTEXT, images=False)
    (folder / "notes of mine").write_text("keep")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "render", full)
    with pytest.raises(SourceError, match=r"cannot be written to .*report: No space left"):
        report.write(evaluated(frames=3), folder, CONTEXT, images=False)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


@pytest.mark.usefixtures("plots_without_pixels")
def test_second_report_removes_the_images_of_the_first_and_no_other_file(tmp_path):
    folder = tmp_path / "report"
    report.write(evaluated(frames=3), folder, CONTEXT)
    images = [*folder.glob("*.png"), *folder.glob("*.jpg")]
    assert len(images) > 5
    (folder / "sub").mkdir()
    foreign = [folder / name for name in ("notes", "a.png", "worst_99.jpg", "sub/b.png")]
    for path in foreign:
        path.write_text("keep")
    inodes = [path.stat().st_ino for path in (folder, *foreign)]
    report.write(Evaluation(), folder, CONTEXT)
    assert not [path for path in images if path.exists()]
    assert [path.read_text() for path in foreign] == ["keep"] * 4
    assert [path.stat().st_ino for path in (folder, *foreign)] == inodes, "nothing was moved"


def test_existing_report_is_refused(tmp_path):
    report.check_output(tmp_path, overwrite=False)
    report.write(Evaluation(), tmp_path / "report", CONTEXT)
    with pytest.raises(SourceError, match=r"report holds a report already.*overwrite"):
        report.check_output(tmp_path / "report", overwrite=False)


def test_without_memory_for_plots_the_numbers_are_written(tmp_path, monkeypatch, caplog):
    plain = report.write(evaluated(frames=3), tmp_path / "plain", CONTEXT, images=False)
    monkeypatch.setattr(report, "draw", lambda *_: np.empty(2**47, np.uint8))
    page = report.write(evaluated(frames=3), tmp_path / "report", CONTEXT)
    assert caplog.text.count("no memory is left for the report's plots: Unable to allocate") == 1
    written = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")  # a minute may pass between them
    assert written.sub("", page.read_text()) == written.sub("", plain.read_text())
    for name in report.NUMBERS:
        content = (page.parent / name).read_bytes()
        assert content == (plain.parent / name).read_bytes()


SHAPE = (24, 30)


@pytest.fixture
def whole_reports(monkeypatch):
    monkeypatch.setattr(report, "excess_risk", excess_risk)


OF_GAUSSIAN = report.Context("drive", {"head": "gaussian"})


def failing_on_the_left(frames=60, too_small=1.0, has_sigma=True):
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


@pytest.mark.usefixtures("whole_reports")
@pytest.mark.parametrize(("too_small", "expected"), [(1, 0), (3, 0.2318)])
def test_a_report_tells_whether_the_place_in_the_image_foretells_a_failure(too_small, expected):
    evaluation = failing_on_the_left(too_small=too_small)
    summary = report.summarize(evaluation, OF_GAUSSIAN)
    found = summary["conditional_coverage"]
    assert found["excess_risk"] == pytest.approx(expected, abs=0.015)
    coverage = summary["uncertainty"]["coverage_95"]
    assert found["all_pixels"] == pytest.approx(abs(coverage - 0.95))
    assert found["frames"] == 60
    sentence = conditional_text(found)
    assert f"2025): {percent_text(found['excess_risk'])}. So far from 95 %" in sentence
    others = report.summarize(evaluation, OF_GAUSSIAN, is_quick=True)
    assert others.pop("conditional_coverage") == {}
    summary.pop("conditional_coverage")
    assert json.dumps(others) == json.dumps(summary), "the verdict does not ask it"


@pytest.mark.usefixtures("whole_reports")
def test_what_cannot_be_known_is_not_a_number_with_its_reason(tmp_path):
    cases = {
        "independent blocks; expected at least 10": failing_on_the_left(frames=12),
        "the depth has no confidence": failing_on_the_left(frames=12, has_sigma=False),
    }
    for folder in ("one", "two"):
        failing_on_the_left(frames=21 if folder == "one" else 24).write(tmp_path / folder)
    merged, context = merge(map(read_report, (tmp_path / "one", tmp_path / "two")))
    for reason, evaluation in (*cases.items(), ("its sources' own reports have", merged)):
        found = report.summarize(evaluation, OF_GAUSSIAN)["conditional_coverage"]
        assert np.isnan(found["excess_risk"])
        assert reason in found["undefined"]
    assert "its sources&#39; own reports have" in report.page(merged, context)
