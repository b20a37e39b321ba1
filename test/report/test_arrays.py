# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Arrays and tensors become a verdict and a report without a file."""

import logging

import numpy as np
import pytest
import torch

from uncertainty_depth import DepthPrediction, Evaluation, Frame, OnlineMetrics
from uncertainty_depth.errors import ConfigError

TRUTH = np.linspace(1.0, 8.0, 24 * 32).reshape(24, 32)


def test_arrays_score_as_the_frames_that_hold_them():
    noise = np.random.default_rng(0).normal(size=TRUTH.shape)
    depth, sigma = TRUTH + TRUTH / 10 * noise, TRUTH / 10
    maps = [values.astype(np.float32) for values in (depth, sigma, TRUTH)]
    expected = Evaluation()
    expected.add(
        Frame(0, "a", ground_truth_m=maps[2], prediction=DepthPrediction(maps[0], maps[1]))
    )
    found = Evaluation()
    found.add_arrays(torch.tensor(depth, requires_grad=True), torch.tensor(sigma), TRUTH)
    assert repr(found.summary()) == repr(expected.summary())  # NaN is no equal of itself
    assert str(found.verdict()).startswith("verdict: grey")
    with pytest.raises(ValueError, match="ground_truth"):
        found.add_arrays(depth, sigma, "truth")


@pytest.mark.parametrize(
    "image", [np.zeros((48, 64, 3), np.uint8), np.zeros((24, 32), np.uint8), np.ones((24, 32, 3))]
)
def test_an_image_that_does_not_fit_the_maps_is_refused_at_once(image):
    evaluation = Evaluation()
    with pytest.raises(ValueError, match=r"image is .*; expected uint8 RGB .*\(24, 32, 3\)"):
        evaluation.add_arrays(TRUTH, TRUTH / 10, TRUTH, image=image)
    assert evaluation.evaluated == 0


def test_options_are_keywords():
    assert Evaluation(max_depth=5).config.max_depth == 5.0
    with pytest.raises(ConfigError, match="unknown option 'maximum'"):
        Evaluation(maximum=5)


@pytest.mark.parametrize("scale", [1000.0, 0.001])
def test_millimetres_are_warned_of(scale, caplog):
    with caplog.at_level(logging.WARNING):
        Evaluation().add_arrays(TRUTH, TRUTH / 10, TRUTH * scale)
        OnlineMetrics().update(TRUTH, TRUTH / 10, TRUTH * scale)
    assert caplog.text.count("as millimetres are; expected metres") == 2


def test_millimetres_of_both_maps_are_warned_of(caplog):
    Evaluation().add_arrays(TRUTH * 1000, TRUTH * 100, TRUTH * 1000)
    assert "as millimetres are; expected metres" in caplog.text
