# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import shutil

import numpy as np
import pytest

from uncertainty_depth.sigma.calibration.sample import Sample


def drawn_sample(true_sigma, frames=20, pixels=1000, seed=0, tail=None, distribution="gaussian"):
    """Frames whose errors have the standard deviation `true_sigma(raw)`.

    With a `tail` they are Student's t, of so many degrees of freedom, scaled by sigma.
    """
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(frames):
        raw = random.lognormal(-2, 0.7, pixels)
        truth = random.uniform(1, 9, pixels)
        if tail is not None:
            noise = random.standard_t(tail, pixels)
        elif distribution == "laplace":
            noise = random.laplace(0, np.sqrt(0.5), pixels)
        else:
            noise = random.normal(size=pixels)
        predicted = truth + true_sigma(raw) * noise
        drawn.append(np.stack((predicted, raw, truth)).astype(np.float32))
    return Sample(f"drawn {seed}", tuple(drawn))


@pytest.fixture(scope="session")
def draw():
    return drawn_sample


@pytest.fixture(scope="session")
def model_template(tmp_path_factory, make_model):
    path = tmp_path_factory.mktemp("calibration") / "model"
    return make_model(path, training={"epochs": 3}, head="none", input_size=(64, 64))


@pytest.fixture
def model(model_template, tmp_path):
    return shutil.copytree(model_template, tmp_path / "model")
