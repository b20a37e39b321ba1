# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every method trained in miniature, and what must be true of it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from uncertainty_depth.core.config.predictor import TRAINED_METHODS, PredictorConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.depth.model_folder import folder as model_folder
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.objective import prediction_of
from uncertainty_depth.depth.training.plan import ENSEMBLES
from uncertainty_depth.depth.training.run import train

IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


OF_EXPERIMENTS = {"self_teaching", "multi_networks", "learned_error"}
"""They join the list if another test has imported them."""


@pytest.mark.parametrize(
    "method", [name for name in TRAINED_METHODS if name not in OF_EXPERIMENTS]
)
def test_what_a_method_trained_is_served_by_it(method, small, make, tmp_path):
    folder = make(small, tmp_path / "model", method)
    predictor = Predictor(folder, PredictorConfig(device="cpu"))
    assert predictor.method == predictor.describe()["method"] == method
    found = predictor.predict(IMAGE)
    assert found.depth_m.shape == found.sigma_m.shape == IMAGE.shape[:2]
    assert np.isfinite(found.depth_m).all()
    assert (found.sigma_m > 0).all() == (method != "deterministic")
    assert json.loads((folder / "model.json").read_text())["training"]["finished"]
    assert not list(folder.glob("checkpoint*"))
    if method in ENSEMBLES:
        check_members(folder, 3)


def check_members(folder: Path, number: int) -> None:
    """The members of an ensemble differ in seed and weights, and each has its curves."""
    model = model_folder.read_model(folder)
    finals = [
        load_file(folder / f"{name}.safetensors")["decoder.final.weight"].numpy().tobytes()
        for name in model.members
    ]
    described = model.training["members"]
    assert sorted(described) == sorted(model.members)
    assert len({member["seed"] for member in described.values()}) == number
    assert len(set(finals)) == number
    assert all((folder / f"curves_{name}.csv").exists() for name in model.members)


def test_an_ensemble_may_share_a_frozen_encoder(small, make, tmp_path):
    folder = make(small, tmp_path / "model", "multi_inits", freeze_encoder=True)
    one, *others = model_folder.read_model(folder).load_all(
        model_folder.read_model(folder).members
    )
    assert all(other.encoder is one.encoder for other in others)
    assert all(name.startswith("decoder.") for name in load_file(folder / "member_02.safetensors"))


def test_an_encoder_that_is_missing_is_found_before_the_first_member_is_trained(small, tmp_path):
    source, network, training = small
    network = replace(network, backbone="resnet19")
    with pytest.raises(ModelError, match="no backbone 'resnet19'"):
        train(source, tmp_path / "model", network, training)
    assert source.reads == 0
    assert not (tmp_path / "model").exists()


def test_a_network_is_taught_an_ensemble_s_mean_and_total_sigma(small, make, tmp_path):
    source, network, training = small
    with_head = (source, replace(network, head="laplace"), training)
    teacher = make(with_head, tmp_path / "teacher", "multi_inits")
    folder = train(source, tmp_path / "model", network, replace(training, distill=str(teacher)))
    assert model_folder.read_model(folder).method == "distilled"
    image = torch.rand(1, 3, 32, 32)
    taught = prediction_of(teacher, folder, torch.device("cpu"))
    targets = taught(image.repeat(2, 1, 1, 1), torch.zeros(2, 1, 32, 32))
    ensemble = model_folder.read_model(teacher)
    with torch.no_grad():
        outputs = [ensemble.load(member)(image) for member in ensemble.members]
    depths = torch.cat([output.depth_m for output in outputs])
    aleatoric = torch.cat([2 * output.scale_m.square() for output in outputs]).mean(0)
    variance = depths.var(0, correction=0) + aleatoric
    torch.testing.assert_close(targets[1, 0], depths.mean(0)[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(targets[1, 1], variance.sqrt()[0], rtol=1e-3, atol=1e-5)


def test_what_cannot_be_distilled_is_refused(small, make, tmp_path):
    teacher = str(make(small, tmp_path / "teacher", "deterministic"))
    network = replace(small[1], input_size=(64, 32))
    with pytest.raises(ConfigError, match="input_size is"):
        train(small[0], tmp_path / "model", network, replace(small[2], distill=teacher))
