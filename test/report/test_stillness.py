# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A camera that stands still gives one block, however many frames it takes."""

import numpy as np
import pytest

from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.report import saved_state
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.frame_table import FrameTable
from uncertainty_depth.report.verdict import judge

SHAPE = (96, 128)


def scene(random, index):
    """A slanted wall with boxes: ground truth, metres, and an image of it."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    truth = (
        2
        + 0.4 * (index % 3)
        + 3 * random.uniform(0.2, 1) * columns / SHAPE[1]
        + 0.5 * random.uniform() * rows / SHAPE[0]
    )
    image = np.repeat(
        (40 + 150 * random.uniform(0, 1, (12, 16))).repeat(8, 0).repeat(8, 1)[..., None], 3, 2
    )
    return truth, image


def frames(number, moves, kind, seed=0, change=0.05):
    """Frames of sensors with noise; predictions repeat their error in each view."""
    random = np.random.default_rng(seed)
    pose = np.eye(4)
    for index in range(number):
        if index == 0 or moves:
            truth, image = scene(random, index)
            error = random.laplace(0, 0.1, SHAPE)
            pose[0, 3] += 0.3
        measured = truth * random.normal(1, 0.003, SHAPE)
        depth = truth + error + random.normal(0, change, SHAPE)
        made = DepthPrediction(
            depth.astype(np.float32), np.full(SHAPE, 0.15, np.float32) * (1 + index % 2 / 50)
        )
        seen = (image + random.normal(0, 3, image.shape)).clip(0, 255).astype(np.uint8)
        yield Frame(
            index,
            str(index),
            image=seen if kind == "image" else None,
            ground_truth_m=measured.astype(np.float32),
            prediction=made,
            pose=pose.copy() if kind == "pose" else None,
        )


def evaluated(*arguments, **options):
    evaluation = Evaluation(options.pop("config", None), options.pop("table", None))
    for frame in frames(*arguments, **options):
        evaluation.add(frame)
    return evaluation


@pytest.mark.parametrize("kind", ["image", "truth", "pose"])
def test_one_view_is_one_block_and_never_green(kind):
    evaluation = evaluated(40, False, kind)
    assert len(evaluation.metrics.blocks) == 1
    verdict = judge(evaluation, {}, None)
    assert verdict.color != "green"
    assert "green" not in {line.color for line in verdict.lines[:3]}
    assert any("the camera hardly moved: 39 of 40 frames" in note for note in verdict.notes)


@pytest.mark.parametrize("kind", ["image", "truth", "pose"])
def test_a_camera_that_moves_gives_a_block_a_frame(kind):
    evaluation = evaluated(40, True, kind)
    assert len(evaluation.metrics.blocks) == 40
    assert evaluation.stillness.frames == 0
    assert not any("hardly moved" in note for note in judge(evaluation, {}, None).notes)


def test_repeatability_is_the_deviation_of_a_pixel_over_the_frames():
    found = evaluated(60, False, "image", change=0.07).summary()["by_distance"]
    assert found["repeatability"]["2_3m"] == pytest.approx(0.07, rel=0.05)
    assert np.isnan(found["repeatability"]["32_48m"])
    moving = evaluated(10, True, "image").summary()["by_distance"]
    assert np.isnan(moving["repeatability"]["2_3m"])


def test_the_number_of_still_frames_survives_a_restart(tmp_path):
    evaluation = evaluated(5, False, "image", table=FrameTable(tmp_path / "frames.csv"))
    saved_state.save(evaluation, tmp_path, {})
    assert saved_state.read(tmp_path).evaluation.stillness.frames == 4
