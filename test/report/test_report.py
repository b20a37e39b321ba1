# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A report is complete, self-contained and written atomically."""

import re

import numpy as np
import pytest

from test.conftest import summary_of
from test.report.conftest import evaluated, evaluation_of
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.records import Skipped
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.page import Images, render, table
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
