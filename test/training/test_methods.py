# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every method trained in miniature, and what must be true of it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from uncertainty_depth.config import TRAINED_METHODS, PredictorConfig
from uncertainty_depth.errors import ModelError
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.model_folder import folder as model_folder
from uncertainty_depth.training.plan import ENSEMBLES

IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("method", TRAINED_METHODS)
def test_what_a_method_trained_is_served_by_it(method: str, small, make, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", method)
    predictor = Predictor(folder, PredictorConfig(device="cpu"))
    assert predictor.method == predictor.describe()["method"] == method
    found = predictor.predict(IMAGE)
    assert found.depth_m.shape == found.sigma_m.shape == IMAGE.shape[:2]
    assert np.isfinite(found.depth_m).all()
    assert (found.sigma_m > 0).all() == (method != "deterministic")
    assert json.loads((folder / "model.json").read_text())["training"]["finished"]
    assert not list(folder.glob("checkpoint*"))


@pytest.mark.parametrize("method", ENSEMBLES)
def test_members_differ(method: str, small, make, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", method)
    names = model_folder.read(folder).members
    assert len(names) == (2 if method == "multi_networks" else 3)
    for one, other in itertools.combinations(names, 2):
        weights = [
            load_file(folder / f"{name}.safetensors")["decoder.final.weight"]
            for name in (one, other)
        ]
        assert not torch.equal(*weights)
    described = model_folder.read(folder).training["members"]
    assert sorted(described) == sorted(names)
    assert len({member["seed"] for member in described.values()}) == len(names)
    assert {f"curves_{name}.csv" for name in names} <= set(content(folder))


def test_members_of_different_encoders_live_in_one_folder(small, make, tmp_path: Path) -> None:
    model = model_folder.read(make(small, tmp_path / "model", "multi_networks"))
    sizes = {
        name: sum(weights.numel() for weights in model.load(name).encoder.parameters())
        for name in model.members
    }
    assert sizes["member_01"] < sizes["member_02"]
    assert set(model.architectures) == {"member_02"}
    assert model.architectures["member_02"].network.backbone == "resnet10"


def test_an_ensemble_may_share_a_frozen_encoder(small, make, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", "multi_inits", freeze_encoder=True)
    one, *others = model_folder.read(folder).load_all(model_folder.read(folder).members)
    assert all(other.encoder is one.encoder for other in others)
    assert all(name.startswith("decoder.") for name in load_file(folder / "member_02.safetensors"))


def test_an_encoder_that_is_missing_is_found_before_the_first_member_is_trained(
    small, make, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="no backbone 'resnet19'"):
        make(small, tmp_path / "model", "multi_networks", backbones=("tiny", "resnet19"))
    assert small[0].reads == 0
    assert not (tmp_path / "model").exists()
