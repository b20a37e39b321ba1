# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
from dataclasses import replace

import pytest
import torch

from experiments import methods
from uncertainty_depth.config import NetworkConfig, PredictorConfig, SourceConfig, TrainingConfig
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.training.plan import make_plan, settle
from uncertainty_depth.training.run import train

NETWORK = NetworkConfig(
    backbone="tiny", decoder_width=16, head="none", input_size=(32, 32), depth_range=(0.5, 10.0)
)
TRAINING = TrainingConfig(epochs=1, batch_size=3, device="cpu", validation_fraction=0.25)


@pytest.fixture(scope="module")
def rooms():
    options = "worlds=1,frames=6,width=64,height=48,dense=true"
    return open_source(f"synthetic:{options}", SourceConfig())


@pytest.mark.parametrize("loss", ["", "nll", "berhu"])
def test_a_student_has_a_head_and_its_teacher_none(loss):
    network, training = settle(
        replace(NETWORK, head="gaussian"), TrainingConfig(method="self_teaching", loss=loss)
    )
    teacher, student = make_plan(network, training)
    assert (teacher.network.head, student.network.head) == ("none", "gaussian")
    assert teacher.objective.loss.__name__ == (loss if loss == "berhu" else "log_l1")
    assert student.objective.loss.__name__ == "gaussian_nll"


def test_a_student_learns_its_teacher_s_depth_everywhere(rooms, tmp_path):
    training = replace(TRAINING, method="self_teaching")
    folder = train(rooms, tmp_path / "model", NETWORK, training)
    model = read(folder)
    assert model.members == ("teacher", "student")
    teach = methods.depth_of("teacher", folder, torch.device("cpu"))
    images = torch.rand(2, 3, 32, 32)
    depth_m = torch.full((2, 1, 32, 32), torch.nan)
    with torch.no_grad():
        assert torch.equal(teach(images, depth_m), model.load("teacher")(images).depth_m)
    assert not teach(images, depth_m).requires_grad
    assert Predictor(folder, PredictorConfig(device="cpu")).describe()["head"] == "laplace"
