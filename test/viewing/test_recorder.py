# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Files for rerun, read back by rerun itself."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rerun", reason="rerun-sdk is not installed")

from uncertainty_depth.cli.main import main
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.frames.predicted import predicted
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.records import DepthPrediction, Frame, Skipped
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.viewing.config import ViewConfig
from uncertainty_depth.viewing.recorder import Recorder
from uncertainty_depth.viewing.sources import report_frames, scored_frames, scores_of

SHAPE = (24, 32)
CAMERA = Camera(32, 24, np.array([[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]]))
CHUNK = re.compile(r"with (\d+) rows .*? - (/\S+)")
ROW = {
    "frame": "a",
    "stamp_ns": 5,
    "depth.abs_rel": 0.1,
    "uncertainty.coverage_95": 0.9,
    "uncertainty.coverage_95_laplace": 0.93,
    "uncertainty.auce": float("nan"),
}


def read_back(path: Path) -> tuple[Counter[str], str]:
    """Rows of each entity, and all that rerun prints of the file."""
    command = [sys.executable, "-m", "rerun", "rrd", "print", "-vvv", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows: Counter[str] = Counter()
    for count, entity in CHUNK.findall(printed):
        rows[entity] += int(count)
    return rows, printed


def frame(seed: int) -> Frame:
    random = np.random.default_rng(seed)
    truth = random.uniform(1, 5, SHAPE).astype(np.float32)
    truth[::2] = np.nan
    image = random.integers(0, 256, (*SHAPE, 3), np.uint8)
    return Frame(seed * 10**9, str(seed), CAMERA, image, ground_truth_m=truth)


class ConstantPredictor:
    """Predicts 3 m with a sigma of 0.2 m everywhere."""

    def predict(self, image, stamp_ns, camera=None):
        depth = np.full(image.shape[:2], 3, np.float32)
        return DepthPrediction(depth, depth / 15)


class Frames(list):
    """A source of these frames."""

    name = "frames"
    notes = ()


def test_every_part_of_each_frame_is_in_the_file(tmp_path):
    path = tmp_path / "run.rrd"
    source = Frames([frame(1), Skipped(2, "no_lidar", "no cloud"), frame(3)])
    evaluation = Evaluation(EvaluationConfig())
    recorder = Recorder(ViewConfig(), path)
    for shown in scored_frames(predicted(source, ConstantPredictor()), evaluation):
        recorder.add(*shown)
    recorder.note("two frames")
    recorder.close()
    rows, printed = read_back(path)
    entities = ("image", "depth", "sigma", "error")
    for entity in (
        *(f"/maps/{name}" for name in entities),
        "/world/trusted_points",
        "/coverage/coverage_68",
        "/coverage/nominal_95",
        "/scores/abs_rel",
        "/scores/rmse",
    ):
        assert rows[entity] == 2, entity
    assert rows["/notes"] == 1
    assert rows["/viewport"] == 1  # of the layout
    for timeline in ("frame", "stamp"):
        assert timeline in printed
    assert evaluation.skipped == {"no_lidar": 1}


def test_what_a_frame_lacks_is_not_in_the_file(tmp_path):
    path = tmp_path / "run.rrd"
    recorder = Recorder(ViewConfig(), path)
    recorder.add(Frame(1, "1"), {"rmse": 0.5, "auce": float("nan"), "other": 1.0})
    recorder.close()
    rows, _ = read_back(path)
    assert rows["/scores/rmse"] == 1
    assert not {"/maps/depth", "/scores/auce", "/scores/other"} & rows.keys()


def test_coverage_is_that_of_the_heads_distribution():
    assert scores_of(ROW)["coverage_95"] == 0.9
    assert scores_of(ROW, "laplace") == {"abs_rel": 0.1, "coverage_95": 0.93}


@pytest.fixture
def report(tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps({"model": {"head": "laplace"}}))
    with (folder / "frames.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROW))
        writer.writeheader()
        writer.writerows([ROW, ROW])
    return folder


def test_the_command_saves_the_scores_of_a_report(report, capsys):
    path = report / "scores.rrd"
    assert main(["view", str(report), "--save", str(path)]) == 0
    assert f"2 frames shown; {path}" in capsys.readouterr().out
    rows, _ = read_back(path)
    assert rows["/coverage/coverage_95"] == rows["/scores/abs_rel"] == 2


def test_a_report_that_cannot_be_read_is_one_sentence(report):
    (report / "frames.csv").write_text("no table\n1\n")
    with pytest.raises(SourceError, match=r"frames\.csv cannot be read"):
        list(report_frames(report))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "expected a source"),
        (["bag", "--live"], "expected a source"),
        (["synthetic:worlds=1,frames=1"], "--model is missing"),
    ],
)
def test_missing_arguments_are_named(arguments, sentence, tmp_path, capsys):
    assert main(["view", *arguments, "--save", str(tmp_path / "x.rrd")]) == 1
    assert sentence in capsys.readouterr().err
