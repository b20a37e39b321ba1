# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Prompt Depth Anything: wrapped with the LiDAR as its prompt, served and scored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from uncertainty_depth.cli.main import main
from uncertainty_depth.config import NetworkConfig, PredictorConfig, TrainingConfig
from uncertainty_depth.config.prediction import HeldOutConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.frames.held_out import for_model
from uncertainty_depth.frames.predicted import predicted
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.model_folder.pretrained import wrap
from uncertainty_depth.network.families import own_options
from uncertainty_depth.network.sparse import fill
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.training.run import train

FAMILY = "prompt_depth_anything"
SIZE = (112, 84)
CPU = PredictorConfig(device="cpu", samples=3)
CONFIG = NetworkConfig(
    input_size=SIZE, depth_range=(1e-3, 80.0), head="none", sparse_input="lidar"
)


@pytest.fixture
def wrapped(saved, tmp_path):
    return wrap(tmp_path / "model", replace(CONFIG, backbone=str(saved(FAMILY))))


def known_depth(fraction: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    depth = rng.uniform(2, 12, SIZE[::-1]).astype(np.float32)
    return np.where(rng.random(depth.shape) < fraction, depth, np.float32(np.nan))


def photograph() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (*SIZE[::-1], 3), dtype=np.uint8)


@pytest.mark.parametrize("fraction", [0.05, 1.0])
def test_it_predicts_what_the_model_predicts_of_image_and_prompt(
    fraction, wrapped, model, normalisation
):
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in normalisation)
    pixels = torch.from_numpy(photograph()).permute(2, 0, 1)[None].float() / 255
    sparse = torch.from_numpy(np.nan_to_num(known_depth(fraction)))[None, None]
    with torch.no_grad():
        expected = model(FAMILY)((pixels - mean) / std, prompt_depth=fill(sparse)).predicted_depth
    expected = functional.interpolate(expected[:, None], SIZE[::-1], mode="bilinear")[0, 0]
    predictor = Predictor(wrapped, replace(CPU, method="deterministic"))
    actual = predictor.predict(photograph(), sparse_m=known_depth(fraction))
    assert expected.std() > 0.05
    np.testing.assert_allclose(actual.depth_m, expected, rtol=1e-4)


def test_depth_is_in_the_units_of_the_prompt(wrapped):
    predictor = Predictor(wrapped, replace(CPU, method="deterministic"))
    once = predictor.predict(photograph(), sparse_m=known_depth(0.05))
    twice = predictor.predict(photograph(), sparse_m=2 * known_depth(0.05))
    np.testing.assert_allclose(twice.depth_m, 2 * once.depth_m, rtol=1e-4)


def test_without_lidar_it_knows_no_metres(wrapped):
    predictor = Predictor(wrapped, CPU)
    for sparse_m in (None, np.full(SIZE[::-1], np.nan)):
        prediction = predictor.predict(photograph(), sparse_m=sparse_m)
        assert np.isnan(prediction.depth_m).all()
        assert np.isnan(prediction.sigma_m).all()


def test_a_prompt_of_one_depth_gives_that_depth(wrapped):
    sparse_m = np.where(np.isfinite(known_depth(0.05)), 3.0, np.nan)
    prediction = Predictor(wrapped, CPU).predict(photograph(), sparse_m=sparse_m)
    np.testing.assert_allclose(prediction.depth_m, 3.0, rtol=1e-4)


def test_the_command_wraps_it_and_it_is_scored_on_what_was_held_out(saved, tmp_path, source):
    folder = str(tmp_path / "model")
    assert main(["wrap", str(saved(FAMILY)), "--output", folder, "--dropout", "0.1"]) == 0
    predictor = Predictor(folder, CPU)
    assert predictor.describe()["sparse_input"] == "lidar"
    split = for_model(source, predictor.sparse_input, HeldOutConfig())
    summary = evaluate(predicted(split, predictor), progress=False).summary()
    assert summary["frames"]["evaluated"] == len(source)
    known = sum(int(np.isfinite(frame.ground_truth_m).sum()) for frame in source)
    assert 0.4 * known < summary["pixels"] < 0.6 * known
    assert "given" in split.notes[-1]


def test_what_it_cannot_do_is_one_clear_sentence(saved, tmp_path, source):
    backbone = str(saved(FAMILY))
    with pytest.raises(ConfigError, match=r"gives metres only with sparse depth as its prompt"):
        wrap(tmp_path / "model", replace(CONFIG, backbone=backbone, sparse_input=""))
    network = replace(CONFIG, backbone=backbone)
    with pytest.raises(ConfigError, match=r"can be served but not trained here; expected `unc"):
        train(source, tmp_path / "trained", network, TrainingConfig(epochs=1))
    with pytest.raises(ConfigError, match=r"'glpn' depth model takes the image alone"):
        wrap(tmp_path / "model", replace(CONFIG, backbone=str(saved("glpn"))))
    assert own_options(backbone)["sparse_input"] == "lidar"
