# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks with sparse input: what they are given in training, and what comes of it."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.frames import (
    EMPTY_FRACTION,
    warn_of_sparse_ground_truth,
    with_sparse_input,
)
from uncertainty_depth.depth.training.run import train
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.sigma.sparse_depth import SparseInput
from uncertainty_depth.stream.held_out import for_model
from uncertainty_depth.stream.stream import predicted

CPU = PredictorConfig(device="cpu")


def batch(frames: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    depth_m = 1 + torch.rand(frames, 1, 16, 20, generator=generator)
    depth_m[torch.rand(depth_m.shape, generator=generator) < 0.3] = torch.nan
    return torch.rand(frames, 3, 16, 20, generator=generator), depth_m


@pytest.mark.parametrize("count", [0, 20])
def test_what_is_given_is_no_target_and_one_frame_in_ten_gets_nothing(count):
    images, depth_m = batch()
    generator = torch.Generator().manual_seed(1)
    inputs, targets = with_sparse_input(images, depth_m, SparseInput(count), generator)
    given = inputs[:, 3:] > 0
    assert torch.equal(inputs[:, :3], images)
    assert torch.equal(inputs[:, 3:][given], depth_m[given])
    assert torch.isnan(targets[given]).all()
    assert torch.equal(torch.isfinite(targets) | given, torch.isfinite(depth_m))
    each = given.sum(dim=(1, 2, 3))
    assert (each == 0).float().mean() == pytest.approx(EMPTY_FRACTION, abs=0.05)
    if count:
        assert each[each > 0].float().mean() == pytest.approx(count, rel=0.1)
    else:
        known = torch.isfinite(depth_m).sum(dim=(1, 2, 3))
        fractions = (each / known)[each > 0]
        assert fractions.min() < 0.2
        assert fractions.max() > 0.8


def test_more_than_the_ground_truth_has_is_one_clear_sentence(caplog):
    depths_m = batch(9)[1][:, 0].numpy()
    half = int(np.median(np.isfinite(depths_m).sum(axis=(1, 2)))) // 2
    warn_of_sparse_ground_truth(depths_m, SparseInput(half))
    warn_of_sparse_ground_truth(depths_m, SparseInput(0))
    warn_of_sparse_ground_truth(depths_m, None)
    assert not caplog.text
    warn_of_sparse_ground_truth(depths_m, SparseInput(half + 1))
    assert f"'random:{half + 1}', but half of the frames have" in caplog.text


@pytest.fixture
def completing(small):
    source, network, training = small
    return source, replace(network, sparse_input="lidar", head="laplace"), training


def test_a_method_learns_and_serves_with_sparse_depth(completing, make, tmp_path):
    folder = make(completing, tmp_path / "model", "log_likelihood", epochs=1)
    predictor = Predictor(folder, CPU)
    assert predictor.describe()["sparse_input"] == "lidar"
    frame = next(iter(for_model(completing[0], predictor.sparse_input, HeldOutConfig())))
    assert isinstance(frame, Frame)
    with_depth = predictor.predict(frame.image, 0, sparse_m=frame.sparse_m)
    alone = predictor.predict(frame.image, 0)
    empty = predictor.predict(frame.image, 0, sparse_m=np.full_like(frame.sparse_m, np.nan))
    assert not np.allclose(with_depth.depth_m, alone.depth_m)
    np.testing.assert_array_equal(alone.depth_m, empty.depth_m)
    np.testing.assert_array_equal(alone.sigma_m, empty.sigma_m)


def test_only_held_out_depth_is_scored(completing, make, tmp_path, caplog):
    source = completing[0]
    model = make(completing, tmp_path / "model", "multi_epochs")
    predictor = Predictor(model, CPU)
    split = for_model(source, predictor.sparse_input, HeldOutConfig())
    evaluation = evaluate(predicted(split, predictor), progress=False)
    known = sum(int(np.isfinite(frame.ground_truth_m).sum()) for frame in source)
    scored = evaluation.summary()["pixels"]
    assert 0.4 * known < scored < 0.6 * known
    assert "given" in split.notes[-1]
    cv2.imwrite(str(tmp_path / "photo.png"), source.records[0].image)
    photo = [
        str(tmp_path / "photo.png"),
        "--model",
        str(model),
        "--output",
        str(tmp_path / "maps"),
    ]
    assert main(["predict", *photo]) == 0
    assert "depth is from the image alone" in caplog.text


def test_a_model_of_the_image_alone_refuses_sparse_depth(small, make, tmp_path):
    predictor = Predictor(make(small, tmp_path / "model", "deterministic"), CPU)
    frame = small[0].records[0]
    assert for_model(small[0], predictor.sparse_input, HeldOutConfig()) is small[0]
    with pytest.raises(MessageError, match="model takes the image alone"):
        predictor.predict(frame.image, 0, sparse_m=frame.ground_truth_m)


def test_options_that_contradict_sparse_input_are_one_clear_sentence(completing, tmp_path):
    source, network, training = completing
    frozen = replace(training, freeze_encoder=True)
    with pytest.raises(ConfigError, match=r"first convolution of the sparse depth, .* random"):
        train(source, tmp_path / "model", network, frozen)
    with pytest.raises(ConfigError, match="expected 'lidar', or 'random:N'"):
        train(source, tmp_path / "model", replace(network, sparse_input="sonar"), training)
    teacher = train(source, tmp_path / "teacher", network, training)
    with pytest.raises(ConfigError, match=r"sparse_input is 'random:5', but .* has 'lidar'"):
        train(
            source,
            tmp_path / "model",
            replace(network, sparse_input="random:5"),
            replace(training, distill=str(teacher), method="distilled"),
        )
    assert json.loads((teacher / "model.json").read_text())["network"]["sparse_input"] == "lidar"
