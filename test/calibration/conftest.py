from __future__ import annotations

import numpy as np
import pytest
import torch

from uncertainty_depth.calibration.sample import Sample
from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.model_folder.folder import create, set_members, write_member
from uncertainty_depth.network.hourglass import Hourglass


def drawn_sample(true_sigma, frames=20, pixels=1000, seed=0, tail=None):
    """Frames whose errors have the standard deviation `true_sigma(raw)`; Student's t with `tail` degrees of freedom instead of a Gaussian."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(frames):
        raw, truth = random.lognormal(-2, 0.7, pixels), random.uniform(1, 9, pixels)
        noise = random.normal(size=pixels) if tail is None else random.standard_t(tail, pixels)
        made.append(np.stack((truth + true_sigma(raw) * noise, raw, truth)).astype(np.float32))
    return Sample(f"drawn {seed}", tuple(made))


@pytest.fixture(scope="session")
def draw():
    return drawn_sample


@pytest.fixture(scope="session")
def model_template(tmp_path_factory):
    path = tmp_path_factory.mktemp("calibration") / "model"
    for index in range(2):
        torch.manual_seed(index)
        made = Hourglass(
            NetworkConfig(backbone="tiny", decoder_width=16, head="none", input_size=(64, 64))
        )
        if index == 0:
            create(path, made, {"epochs": 3})
        write_member(path, f"m{index}", made)
    set_members(path, ["m0", "m1"], "mc_dropout")
    return path
