# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A saved evaluation resumes as if it had not been interrupted."""

from __future__ import annotations

import copy
import csv
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from uncertainty_depth.config import EvaluationConfig, EvaluatorNodeConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.records import DepthPrediction, Frame, Skipped
from uncertainty_depth.report import saved_state
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.frame_table import FrameTable
from uncertainty_depth.report.verdict import judge

SHAPE = (20, 30)
CONFIG = EvaluationConfig(example_frames=2)
CAMERA = Camera(30, 20, np.array([[25.0, 0, 15], [0, 25, 10], [0, 0, 1]]))


def add_frame(evaluation, index):
    random = np.random.default_rng(index)
    ground_truth_m = random.uniform(1, 9, SHAPE).astype(np.float32)
    prediction = DepthPrediction(
        (ground_truth_m * random.uniform(0.8, 1.2, SHAPE)).astype(np.float32),
        random.uniform(0.1, 1, SHAPE).astype(np.float32),
    )
    evaluation.add(
        Frame(
            index,
            f"frame {index}",
            CAMERA,
            ground_truth_m=ground_truth_m,
            prediction=prediction,
        )
    )


def evaluation_in(folder, frames):
    folder.mkdir(exist_ok=True)
    evaluation = Evaluation(CONFIG, FrameTable(folder / "frames.csv"))
    for index in range(frames):
        add_frame(evaluation, index)
    evaluation.skip(Skipped(0, "no_camera_info", "no CameraInfo received"))
    return evaluation


@pytest.mark.parametrize("frames", [0, 1, 150])
def test_a_saved_evaluation_goes_on_as_the_first_one(tmp_path, frames):
    evaluation = evaluation_in(tmp_path / "state", frames)
    copy.deepcopy(evaluation).save(tmp_path / "state", {"model": {"name": "tiny"}})
    add_frame(evaluation, 1000)  # after the state was saved: lost, its row too
    saved = saved_state.load(tmp_path / "state", CONFIG)
    assert saved.details == {"model": {"name": "tiny"}}
    for index in range(frames, frames + 5):
        add_frame(saved.evaluation, index)
    expected = evaluation_in(tmp_path / "whole", frames + 5)
    assert saved.evaluation.frames() == expected.frames()
    np.testing.assert_equal(saved.evaluation.summary(), expected.summary())
    np.testing.assert_equal(
        judge(saved.evaluation, {}, None).as_dict(), judge(expected, {}, None).as_dict()
    )
    assert saved.evaluation.cameras.as_dict() == expected.cameras.as_dict()
    np.testing.assert_array_equal(
        saved.evaluation.positions.mean_error_m(), expected.positions.mean_error_m()
    )
    rows = list(csv.DictReader(saved.evaluation.table.text()))
    assert rows == list(csv.DictReader(expected.table.text()))
    assert len(rows) == frames + 5


def test_scores_made_with_other_options_are_refused(tmp_path):
    evaluation = evaluation_in(tmp_path / "state", 2)
    evaluation.save(tmp_path / "state", {})
    saved_state.load(tmp_path / "state", EvaluationConfig(example_frames=5))
    with pytest.raises(ConfigError, match=r"alpha is 0\.5, .* made with 0\.95"):
        saved_state.load(tmp_path / "state", EvaluationConfig(alpha=0.5))


def test_the_state_of_a_node_is_that_of_its_evaluation(tmp_path):
    config = EvaluatorNodeConfig(output="report", queue_size=7)
    evaluation = Evaluation(config, FrameTable(tmp_path / "frames.csv"))
    add_frame(evaluation, 0)
    evaluation.save(tmp_path, {})
    read = saved_state.read(tmp_path).evaluation
    np.testing.assert_equal(read.summary(), evaluation.summary())
    saved = saved_state.load(tmp_path, EvaluatorNodeConfig(output="elsewhere"))
    assert saved.evaluation.evaluated == 1
    assert saved.evaluation.config.output == "elsewhere"


def test_a_damaged_or_missing_state_is_reported(tmp_path):
    folder = tmp_path / "state"
    with pytest.raises(SourceError, match=r"state\.npz"):
        saved_state.load(folder, CONFIG)
    evaluation_in(folder, 3).save(folder, {})
    whole = (folder / saved_state.STATE_FILE).read_bytes()
    for length in (0, 100, len(whole) // 2, len(whole) - 10):
        (folder / saved_state.STATE_FILE).write_bytes(whole[:length])
        with pytest.raises(SourceError, match="not a complete state"):
            saved_state.load(folder, CONFIG)
    (folder / saved_state.STATE_FILE).write_bytes(whole)
    (folder / "frames.csv").write_text("frame")
    with pytest.raises(SourceError, match="expected at least"):
        saved_state.load(folder, CONFIG)


def test_a_flipped_byte_anywhere_is_a_source_error_or_changes_nothing(tmp_path):
    evaluation = evaluation_in(tmp_path, 1)
    evaluation.save(tmp_path, {})
    path = tmp_path / saved_state.STATE_FILE
    data = path.read_bytes()
    sentences = []
    for place in np.linspace(0, len(data) - 1, 150).astype(int):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        path.write_bytes(damaged)
        try:
            read = saved_state.read(tmp_path).evaluation
            np.testing.assert_equal(read.summary(), evaluation.summary())
        except SourceError as error:
            sentences.append(str(error))
    assert len(sentences) > 50
    assert all("\n" not in sentence for sentence in sentences)


def rewritten(path, change):
    """Change the files within a saved state: `change(name, data)` returns the new data."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, change(name, data))


def test_a_small_file_that_claims_gigabytes_is_refused_before_it_takes_them(tmp_path):
    evaluation_in(tmp_path, 1).save(tmp_path, {})
    path = tmp_path / saved_state.STATE_FILE
    shape = str(np.load(path)["blocks/counts"].shape).encode()

    def claims(name, data):
        if "counts" not in name:
            return data
        claimed = b"(" + b"9" * (len(shape) - 3) + b",)"
        return data.replace(shape, claimed) + bytes(200_000_000)

    rewritten(path, claims)
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    with pytest.raises(SourceError, match="blocks/counts"):
        saved_state.read(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 4),
        ("format", "new"),
        ("config", {"min_depth": "far"}),
        ("config", []),
        ("frames_per_block", 3),
        ("frames_in_last_block", -1),
        ("last_log_scale", "x"),
    ],
)
def test_a_header_of_something_else_is_one_sentence(tmp_path, key, value):
    evaluation_in(tmp_path, 1).save(tmp_path, {})
    path = tmp_path / saved_state.STATE_FILE
    header = json.loads(np.load(path)["header"].tobytes())
    text = json.dumps({**header, key: value}).encode()

    def change(name, data):
        if name != "header.npy":
            return data
        file = io.BytesIO()
        np.save(file, np.frombuffer(text, np.uint8))
        return file.getvalue()

    rewritten(path, change)
    with pytest.raises(SourceError) as error:
        saved_state.read(tmp_path)
    assert "\n" not in str(error.value)
