# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fine-tuning a head behind a frozen encoder, by every method."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from test.depth.pretrained.conftest import random_model
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.depth.model_folder import folder as model_folder
from uncertainty_depth.depth.networks.hourglass import make_network
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.frames import read_frames
from uncertainty_depth.depth.training.plan import constant_guess
from uncertainty_depth.depth.training.run import train

TRAINED = ("depth_pro", "glpn")
TRAINING = TrainingConfig(
    epochs=2,
    snapshots=2,
    batch_size=3,
    members=2,
    freeze_encoder=True,
    learning_rate=1e-3,
    device="cpu",
)


@pytest.fixture
def options(saved):
    def making(family: str, **values: object) -> NetworkConfig:
        return NetworkConfig(
            **{
                "backbone": str(saved(family)),
                "input_size": (64, 64),
                "depth_range": (1e-3, 20.0),
                "head": "none",
                **values,
            }
        )

    return making


@pytest.mark.parametrize("family", TRAINED)
def test_snapshots_share_one_stored_encoder_that_is_the_models(family, options, source, tmp_path):
    folder = train(source, tmp_path / "model", options(family), TRAINING)
    assert {path.name for path in folder.glob("*.safetensors")} == {
        "encoder.safetensors",
        "epoch_0001.safetensors",
        "epoch_0002.safetensors",
    }
    first, second = (load_file(folder / f"epoch_000{epoch}.safetensors") for epoch in (1, 2))
    assert all(name.startswith("decoder.") for name in first)
    assert any(not torch.equal(first[name], second[name]) for name in first)
    kept = load_file(folder / "encoder.safetensors")
    parts = {"depth_pro": ("depth_pro.", "fov_model."), "glpn": ("glpn.",)}[family]
    original = {
        name if family == "depth_pro" else name.split(".", 1)[1]: value
        for name, value in random_model(family).state_dict().items()
        if name.startswith(parts)
    }
    assert {name for name in kept if "backbone" not in name} == {"encoder.mean", "encoder.std"}
    assert len(kept) == len(original) + 2
    for name, value in original.items():
        assert torch.equal(value, kept[f"encoder.backbone.{name}"])


def test_an_ensemble_is_trained_and_served_at_the_images_size(options, source, tmp_path):
    small = options("depth_anything_metric", input_size=(42, 42))
    training = replace(TRAINING, epochs=1, method="multi_inits")
    predictor = Predictor(
        train(source, tmp_path / "model", small, training),
        PredictorConfig(device="cpu", samples=2),
    )
    found = predictor.predict(source.records[0].image)
    assert found.depth_m.shape == found.sigma_m.shape == (60, 80)
    assert np.isfinite(found.depth_m).all()
    assert (found.sigma_m > 0).any()


@pytest.mark.parametrize(
    "family",
    ["depth_anything_metric", "depth_anything", "depth_pro", "dpt_of_dinov2", "dpt_of_swinv2"],
)
def test_before_training_depth_and_error_are_of_the_size_of_the_frames(family, options, source):
    frames = read_frames(source, (64, 64))
    network = make_network(options(family, head="laplace"))
    images, depth_m = frames.batch(range(8))
    network.start_from_constant(*constant_guess(frames))
    network.train().align(lambda: (images, depth_m))
    assert network.training
    output = network.eval()(images)
    known = torch.isfinite(depth_m)
    assert 0.5 < (output.depth_m[known] / depth_m[known]).median() < 2
    error = (output.depth_m[known] - depth_m[known]).abs().median()
    assert 0.3 < output.scale_m[known].median() / error < 3


def test_on_the_command_line_the_models_own_options_hold_where_none_are_given(saved, tmp_path):
    command = (
        f"train synthetic:worlds=2,frames=2 --output {tmp_path}/model "
        f"--backbone {saved('depth_anything_metric')} "
        "--epochs 1 --learning-rate 0.002 --method mc_dropout --device cpu"
    )
    assert main(command.split()) == 0
    options = model_folder.read_model(tmp_path / "model").training["options"]
    wanted = {
        "freeze_encoder": True,
        "learning_rate": 0.002,
        "input_size": [56, 56],
        "depth_range": [0.001, 20.0],
        "head": "laplace",
    }
    assert {name: options[name] for name in wanted} == wanted
