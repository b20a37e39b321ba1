# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments import methods
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.plan import make_plan, settle
from uncertainty_depth.depth.training.run import train
from uncertainty_depth.stream.opening import open_source

NETWORK = NetworkConfig(
    backbone="tiny", decoder_width=16, head="none", input_size=(32, 32), depth_range=(0.5, 10.0)
)
TRAINING = TrainingConfig(epochs=1, batch_size=3, device="cpu", validation_fraction=0.25)


@pytest.fixture(scope="module")
def rooms():
    options = "worlds=1,frames=6,width=64,height=48,dense=true"
    return open_source(f"synthetic:{options}", SourceConfig())


def test_a_student_has_a_head_and_its_teacher_none():
    network, training = settle(
        replace(NETWORK, head="gaussian"), TrainingConfig(method="self_teaching")
    )
    teacher, student = make_plan(network, training)
    assert (teacher.network.head, student.network.head) == ("none", "gaussian")
    assert teacher.objective.loss.__name__ == "log_l1"
    assert student.objective.loss.__name__ == "gaussian_nll"


def test_a_student_learns_its_teacher_s_depth_everywhere(rooms, tmp_path):
    training = replace(TRAINING, method="self_teaching")
    folder = train(rooms, tmp_path / "model", NETWORK, training)
    model = read_model(folder)
    assert model.members == ("teacher", "student")
    teach = methods.depth_of("teacher", folder, torch.device("cpu"))
    images = torch.rand(2, 3, 32, 32)
    depth_m = torch.full((2, 1, 32, 32), torch.nan)
    with torch.no_grad():
        assert torch.equal(teach(images, depth_m), model.load("teacher")(images).depth_m)
    assert not teach(images, depth_m).requires_grad
    assert Predictor(folder, PredictorConfig(device="cpu")).describe()["head"] == "laplace"


def test_a_second_network_learns_the_first_one_s_error_and_leaves_it_as_it_is(rooms, tmp_path):
    training = replace(TRAINING, method="learned_error")
    folder = train(rooms, tmp_path / "model", replace(NETWORK, head="laplace"), training)
    model = read_model(folder)
    usual = replace(TRAINING, method="deterministic")
    alone = train(rooms, tmp_path / "alone", replace(NETWORK, head="laplace"), usual)
    depth = (folder / "depth.safetensors").read_bytes()
    assert depth == (alone / "best.safetensors").read_bytes()
    assert model.members == ("error", "depth")
    assert model.architectures["error"].network.depth_range == (1e-3, 9.5)
    image = next(iter(rooms)).image[:32, :32]
    found = Predictor(folder, PredictorConfig(device="cpu")).predict(image)
    pixels = torch.from_numpy(image).permute(2, 0, 1)[None] / 255
    with torch.no_grad():
        depth_m, error_m = (
            model.load(name)(pixels).depth_m[0, 0].numpy() for name in ("depth", "error")
        )
    np.testing.assert_allclose(found.depth_m, depth_m, rtol=1e-4)
    np.testing.assert_allclose(found.sigma_m, error_m, rtol=1e-4)


def test_members_of_multi_networks_have_the_encoders_named(rooms, tmp_path):
    network = replace(NETWORK, backbone="tiny,tiny18")
    training = replace(TRAINING, method="multi_networks")
    folder = train(rooms, tmp_path / "model", network, training)
    model = read_model(folder)
    found = {name: model.build(name).config.backbone for name in model.members}
    assert found == {"member_01": "tiny", "member_02": "tiny18"}
    assert train(rooms, folder, network, training, resume=True) == folder
    assert Predictor(folder, PredictorConfig(device="cpu")).passes == 2
    with pytest.raises(ConfigError, match="have different encoders and cannot share one"):
        make_plan(network, replace(training, freeze_encoder=True))
