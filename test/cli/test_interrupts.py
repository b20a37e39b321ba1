# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ctrl-C at a chosen place: the frame is finished and the rest written."""

import csv
import shutil

import pytest

from test.cli.conftest import PREDICT
from test.conftest import summary_of
from test.sigma.recorded.test_saved_map import recorded
from uncertainty_depth.core.model_location import SHIPPED_MODEL
from uncertainty_depth.core.output import OutputFolder
from uncertainty_depth.frames.recording import Recording
from uncertainty_depth.report import saved_state

SOURCE = "synthetic:worlds=1,frames=12,width=64,height=48,rings=16"


def evaluate(report, *options):
    model = ["--model", SHIPPED_MODEL, "--samples", "1"]
    return ["evaluate", SOURCE, *model, "--output", report, *options]


FOLD = ("uncertainty_depth.metrics.online", "frame_block")
RENDER = ("uncertainty_depth.report.report", "render")


@pytest.mark.parametrize(
    ("place", "finished"),
    [(PREDICT, (2,)), (FOLD, (2, 3))],  # the third may be in the network meanwhile
)
def test_evaluate_finishes_the_frame_and_writes_its_report(strike, tmp_path, place, finished):
    done = strike(evaluate(tmp_path / "report", "--write-bag", tmp_path / "bag"), place)
    assert done.returncode == 130, done.stderr
    summary = summary_of(tmp_path / "report")
    frames = summary["frames"]["evaluated"]
    assert frames in finished
    assert summary["notes"] == ["interrupted: only the first frames of about 12 were read"]
    metrics = saved_state.read_report(tmp_path / "report").evaluation.metrics
    assert (metrics.frames, metrics.pixels) == (frames, summary["pixels"])
    assert len(list(csv.reader((tmp_path / "report" / "frames.csv").open()))) == 1 + frames
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000
    with Recording(tmp_path / "bag").open() as opened:
        assert opened.topics["/depth/image_rect"].count == frames


def test_a_second_interrupt_aborts_and_leaves_the_earlier_report(strike, tmp_path):
    report = tmp_path / "report"
    with OutputFolder(report, "report").replacing("summary.json") as staging:
        (staging / "summary.json").write_text("earlier")
    done = strike(evaluate(report, "--overwrite"), times=2)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["report"]
    assert (report / "summary.json").read_text() == "earlier"


def test_an_interrupt_while_writing_does_not_lose_the_report(strike, tmp_path):
    done = strike(evaluate(tmp_path / "report"), RENDER, call=1)
    assert done.returncode == 0, done.stderr
    assert summary_of(tmp_path / "report")["notes"] == []


def test_calibrate_reports_on_what_it_has_read_and_leaves_the_model(strike, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(SHIPPED_MODEL, model)
    before = (model / "model.json").read_bytes()
    done = strike(["calibrate", model, SOURCE, "--samples", "2"], call=10)
    assert done.returncode == 130, done.stderr
    assert "only the first frames were read, and no map is written" in done.stderr
    assert "frames not used" in done.stdout
    assert (model / "model.json").read_bytes() == before


def test_calibrate_interrupted_before_it_has_enough_frames_says_so(strike, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(SHIPPED_MODEL, model)
    done = strike(["calibrate", model, SOURCE, "--samples", "2"], call=2)
    assert done.returncode == 130, done.stderr
    assert "expected at least" not in done.stderr, "of frames: it was interrupted"


@pytest.mark.parametrize("call", [2, 12], ids=["too few frames to learn from", "enough"])
def test_calibrate_writes_no_sigma_learned_from_a_part_of_the_frames(strike, tmp_path, call):
    source = recorded(tmp_path / "frames", 30)
    place = ("uncertainty_depth.sigma.recorded.interpreter", "Interpreter.predict")
    done = strike(
        ["calibrate", source, "--learn", "--output", tmp_path / "sigma.json"], place, call
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    assert not (tmp_path / "sigma.json").exists()
