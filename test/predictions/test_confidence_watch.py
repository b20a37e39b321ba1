# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A confidence that is read the wrong way, or in metres by default, is told with its values."""

from __future__ import annotations

import numpy as np
import pytest

from uncertainty_depth.config.prediction import PredictionConfig
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.records import Frame, RecordedMaps


def notes(confidence_of, scene_at, confidence_type):
    interpreter = Interpreter(PredictionConfig(confidence_type=confidence_type))
    for index in range(4):
        scene = scene_at(index)
        maps = RecordedMaps(scene.depth, confidence_of(scene).astype(np.float32))
        interpreter.predict(Frame(index, "f", ground_truth_m=scene.truth, recorded=maps))
    return " ".join(interpreter.notes())


@pytest.mark.parametrize(
    ("read_as", "right"), [("rank_up", "rank_down"), ("rank_down", "rank_up")]
)
def test_a_confidence_that_ranks_better_the_other_way_is_told_with_both_scores(
    read_as, right, scene_at
):
    """As an OAK's, whose sign DepthAI 3 turned."""
    larger_is_worse = read_as == "rank_down"
    said = notes(lambda s: s.sigma if larger_is_worse else 1 / s.sigma, scene_at, read_as)
    assert "better the other way: AUSE (rmse) is" in said
    assert f"expected --confidence-type {right}" in said
    assert notes(lambda s: 1 / s.sigma if larger_is_worse else s.sigma, scene_at, read_as) == ""


def test_noise_has_no_other_way(scene_at):
    random = np.random.default_rng(0)
    assert notes(lambda s: random.uniform(1, 2, s.depth.shape), scene_at, "rank_up") == ""


def test_a_zed_s_confidence_without_its_type_is_asked_about(scene_at):
    def zed(scene):
        return np.rint(1 + 99 * scene.sigma / scene.sigma.max())

    said = notes(zed, scene_at, "")
    assert "is read as sigma in metres" in said
    assert "rank_up for a ZED's confidence of 1 to 100" in said
    assert notes(lambda s: s.sigma, scene_at, "") == ""
    assert notes(zed, scene_at, "sigma") == "", "whoever names the type is not asked"
    assert notes(zed, scene_at, "rank_up") == ""
