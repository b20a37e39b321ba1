# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from experiments.nyu_methods import QUICK, open_splits, train_models

TINY = replace(
    QUICK,
    network=replace(QUICK.network, input_size=(32, 32)),
    training=replace(QUICK.training, batch_size=4, validation_fraction=0.4),
    backbones=("tiny",),
    train_frames=10,
    test_frames=3,
    rounds=2,
)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """The same bits in each run: sums of several threads round as they come."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def refuse_again(monkeypatch):
    """Let a second run fail where it calls one of these functions, and draw no figure."""

    def refuse(*places):
        monkeypatch.setattr("experiments.figures.save", lambda *_: None)
        for module, name in places:
            monkeypatch.setattr(module, name, lambda *_, name=name: pytest.fail(f"{name} again"))

    return refuse


@pytest.fixture(scope="session")
def nyu_like(tmp_path_factory):
    """Write a folder like NYU Depth v2: 12 training and 4 test images, 80x60, of walls.

    The depth of a wall is given by its brightness.
    """
    folder = tmp_path_factory.mktemp("data") / "nyuv2"
    folder.mkdir()
    for part in ("rgb", "depth"):
        (folder / part).mkdir()
    for index in range(16):
        rng = np.random.default_rng(index)
        depth = rng.uniform(1, 4) + np.linspace(0, rng.uniform(0.5, 3), 80)[None].repeat(
            60, axis=0
        )
        image = np.clip(255 * depth / 8 + rng.normal(0, 3, (60, 80)), 0, 255).astype(np.uint8)
        cv2.imwrite(str(folder / "rgb" / f"{index:04d}.jpg"), image[..., None].repeat(3, axis=-1))
        cv2.imwrite(str(folder / "depth" / f"{index:04d}.png"), (1000 * depth).astype(np.uint16))
    (folder / "train.txt").write_text("".join(f"{index:04d}\n" for index in range(12)))
    (folder / "test.txt").write_text("".join(f"{index:04d}\n" for index in range(12, 16)))
    return folder


@pytest.fixture(scope="session")
def tiny_settings():
    """The NYU experiment in miniature."""
    return TINY


@pytest.fixture(scope="session")
def nyu_models(nyu_like, tmp_path_factory):
    """Models of that experiment: snapshots without a head and with one, and a learned error."""
    folder = tmp_path_factory.mktemp("nyu_models")
    variants = ("multi_epochs", "multi_epochs_laplace", "learned_error")
    train_models(
        folder / "models",
        open_splits(nyu_like, TINY.train_frames).train,
        [(variant, 0) for variant in variants],
        TINY,
    )
    return folder
