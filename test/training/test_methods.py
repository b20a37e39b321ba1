"""Every method trained in miniature, and what must be true of it."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from uncertainty_depth.config import METHODS, PredictorConfig, TrainingConfig
from uncertainty_depth.network import folder as model_folder
from uncertainty_depth.predictor import Predictor
from uncertainty_depth.training import train
from uncertainty_depth.training.member_run import MemberRun
from uncertainty_depth.training.plan import ENSEMBLES

IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small(source, network, training):
    """Few frames, small images, short epochs."""
    source.records = source.records[:8]
    quick = replace(training, epochs=2, snapshots=2, batch_size=3, members=3, backbones=("tiny", "resnet10"))
    return source, replace(network, input_size=(32, 32)), quick


def make(small, folder: Path, method: str, **options) -> Path:
    source, network, training = small
    return train(source, folder, network, replace(training, method=method, **options))


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("method", METHODS)
def test_what_a_method_trained_is_served_by_it(method: str, small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", method)
    predictor = Predictor(folder, PredictorConfig(device="cpu"))
    assert predictor.method == predictor.describe()["method"] == method
    found = predictor.predict(IMAGE)
    assert found.depth_m.shape == found.sigma_m.shape == IMAGE.shape[:2]
    assert np.isfinite(found.depth_m).all()
    assert (found.sigma_m > 0).all() == (method != "deterministic")
    assert json.loads((folder / "model.json").read_text())["training"]["finished"]
    assert not (folder / "checkpoint.safetensors").exists()


@pytest.mark.parametrize("method", ENSEMBLES)
def test_members_differ(method: str, small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", method)
    names = model_folder.read(folder).members
    assert len(names) == (2 if method == "multi_networks" else 3)
    for one, other in itertools.combinations(names, 2):
        weights = [load_file(folder / f"{name}.safetensors")["decoder.final.weight"] for name in (one, other)]
        assert not torch.equal(*weights)
    described = model_folder.read(folder).training["members"]
    assert sorted(described) == sorted(names)
    assert len({member["seed"] for member in described.values()}) == len(names)
    assert {f"curves_{name}.csv" for name in names} <= set(content(folder))


def test_members_of_different_encoders_live_in_one_folder(small, tmp_path: Path) -> None:
    model = model_folder.read(make(small, tmp_path / "model", "multi_networks"))
    sizes = {name: sum(weights.numel() for weights in model.load(name).encoder.parameters()) for name in model.members}
    assert sizes["member_01"] < sizes["member_02"]
    assert set(model.architectures) == {"member_02"}
    assert model.architectures["member_02"].network.backbone == "resnet10"


def test_an_ensemble_may_share_a_frozen_encoder(small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", "multi_inits", freeze_encoder=True)
    one, *others = model_folder.read(folder).load_all(model_folder.read(folder).members)
    assert all(other.encoder is one.encoder for other in others)
    assert all(name.startswith("decoder.") for name in load_file(folder / "member_02.safetensors"))


def test_an_adversarial_ensemble_learns_from_other_images(small, tmp_path: Path) -> None:
    """With a step of 0 it is a deep ensemble; with another it is not, and a frozen encoder is no obstacle."""
    plain = content(make(small, tmp_path / "plain", "multi_inits", members=1))
    still = content(make(small, tmp_path / "still", "adversarial_ensemble", members=1, adversarial_step=0.0))
    assert still["member_01.safetensors"] == plain["member_01.safetensors"]
    moved = content(make(small, tmp_path / "moved", "adversarial_ensemble", members=1, adversarial_step=0.05))
    assert moved["member_01.safetensors"] != plain["member_01.safetensors"]
    frozen = content(make(small, tmp_path / "frozen", "adversarial_ensemble", members=1, freeze_encoder=True, adversarial_step=0.05))
    calm = content(make(small, tmp_path / "calm", "multi_inits", members=1, freeze_encoder=True))
    assert frozen["member_01.safetensors"] != calm["member_01.safetensors"]


class Killed(BaseException):
    pass


def test_killed_in_member_three_of_five_it_goes_on_there(small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, network, training = small
    training = replace(training, method="bagging", members=5, patience=5)
    whole = content(train(source, tmp_path / "whole", network, training))
    one_epoch, trained = MemberRun.one_epoch, []

    def dying(run: MemberRun, bar) -> None:
        if len(trained) == 5:
            raise Killed
        trained.append(run.member.name)
        one_epoch(run, bar)

    with monkeypatch.context() as patch:
        patch.setattr(MemberRun, "one_epoch", dying)
        with pytest.raises(Killed):
            train(source, tmp_path / "killed", network, training)
        assert trained == ["member_01", "member_01", "member_02", "member_02", "member_03"]
        members = set(model_folder.read(tmp_path / "killed").members)
        assert members == {"member_01", "member_02", "member_03"}  # of use already
    trained.clear()
    monkeypatch.setattr(MemberRun, "one_epoch", lambda run, bar: (trained.append(run.member.name), one_epoch(run, bar)))
    assert content(train(source, tmp_path / "killed", network, training, resume=True)) == whole
    assert trained == ["member_03", "member_04", "member_04", "member_05", "member_05"]


def killed_at_write(number: int, patch: pytest.MonkeyPatch) -> None:
    count, fsync = itertools.count(1), os.fsync

    def dying(descriptor: int) -> None:
        if next(count) == number:
            raise Killed
        fsync(descriptor)

    patch.setattr(os, "fsync", dying)


@pytest.mark.parametrize("write", range(1, 16))
def test_dying_while_any_file_of_two_members_is_written_loses_nothing(write: int, small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, network, training = small
    training = TrainingConfig(**{**vars(training), "method": "multi_networks", "backbones": ("tiny", "tiny"), "epochs": 1})
    with monkeypatch.context() as patch:
        killed_at_write(99, patch)
        whole = content(train(source, tmp_path / "whole", network, training))
    with monkeypatch.context() as patch:
        killed_at_write(write, patch)
        if write == 15:  # there are no more: that was every write
            train(source, tmp_path / "killed", network, training)
        else:
            with pytest.raises(Killed):
                train(source, tmp_path / "killed", network, training)
    for left in (tmp_path / "killed").glob(".*"):
        left.unlink()
    assert content(train(source, tmp_path / "killed", network, training, resume=True)) == whole
