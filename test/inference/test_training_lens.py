# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth follows the camera's focal length, and a lens unlike the training's is told."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.focal_length import TrainingLens

TRAINED = {"relative_focal_length": [0.5, 1.0], "aspect": [1.0, 2.0]}
OLD = {"focal_length_per_width": [0.6, 0.6], "aspect": [4 / 3, 4 / 3]}


def camera(relative: float) -> Camera:
    focal_length = relative * np.sqrt(320 * 240)
    return Camera(320, 240, np.array([[focal_length, 0, 160], [0, focal_length, 120], [0, 0, 1]]))


def test_a_canonical_model_is_rescaled_unless_told_not_to() -> None:
    lens = TrainingLens(0.8, TRAINED)
    assert lens.factor(camera(0.4), "canonical") == pytest.approx(0.5)
    assert lens.factor(camera(0.4), "always") == pytest.approx(0.5)
    assert lens.factor(camera(0.4), "never") == 1
    assert lens.factor(None, "canonical") == 1


def test_another_model_is_rescaled_only_where_asked_by_the_training_camera() -> None:
    lens = TrainingLens(0.0, OLD)
    trained = 0.6 * np.sqrt(4 / 3)
    assert lens.factor(camera(2 * trained), "canonical") == 1
    assert lens.factor(camera(2 * trained), "always") == pytest.approx(2)
    assert TrainingLens(0.0, None).factor(camera(0.9), "always") == 1


def test_a_lens_far_from_the_trainings_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    lens = TrainingLens(0.0, TRAINED)
    with caplog.at_level(logging.WARNING):
        lens.factor(camera(1.05), "canonical")
        assert not caplog.records
        lens.factor(camera(1.5), "canonical")
        lens.factor(camera(1.6), "canonical")
    (record,) = caplog.records
    assert "1.50 times off" in record.getMessage()
    assert "rescale_depth always" in record.getMessage()


@pytest.mark.parametrize(
    "value", ["wide", {}, [], [1], [None, 1], ["cuda", 1], [-1, 1], [2, 1], 3, [1e-300, 10**300]]
)
def test_a_damaged_record_is_no_training_camera(value: Any) -> None:
    for record in (value, {"relative_focal_length": value}, {**OLD, "aspect": value}):
        factor = TrainingLens(0.0, record).factor(camera(0.4), "always")
        assert np.isfinite(factor)


def test_a_damaged_record_leaves_the_older_one() -> None:
    lens = TrainingLens(0.0, {**OLD, "relative_focal_length": "wide"})
    assert lens.limits == TrainingLens(0.0, OLD).limits
