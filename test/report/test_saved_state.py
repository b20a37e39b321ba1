# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A saved evaluation resumes as if it had not been interrupted."""

from __future__ import annotations

import copy
import csv

import numpy as np
import pytest

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError
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
