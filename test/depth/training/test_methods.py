# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every method trained in miniature, also from another model folder's members."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.predictor import TRAINED_METHODS, PredictorConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.depth.model_folder import folder as model_folder
from uncertainty_depth.depth.model_folder.folder import ModelFolder, read_model
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.objective import prediction_of
from uncertainty_depth.depth.training.plan import ENSEMBLES, defaults_of
from uncertainty_depth.depth.training.run import train
from uncertainty_depth.stream.opening import trained_on

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


WORLD = "synthetic:worlds=1,frames=4,width=64,height=48,dense=true"
QUICK = ["--epochs", "1", "--device", "cpu"]


def fine_tune(small, folder: Path, output: Path, **options) -> Path:
    """Fine-tune the model folder as the command does, with its own options where none is given."""
    source, _, training = small
    model = read_model(folder)
    defaults = defaults_of(model, options)
    named = {name: defaults[name] for name in ("method", "members") if name in defaults}
    changed = replace(training, **{**named, "from_model": str(folder), "epochs": 1, **options})
    return train(source, output, model.network, changed)


def parameters(model: ModelFolder, member: str) -> torch.Tensor:
    return torch.cat([value.flatten() for value in model.load(member).parameters()])


@pytest.mark.parametrize(
    "method",
    ["multi_epochs", "multi_inits"],
)
def test_each_member_starts_from_the_member_of_the_folder(method, small, make, tmp_path):
    """With learning rate 0 the parameters are those that the training started from."""
    start = read_model(make(small, tmp_path / "start", method))
    result = read_model(
        fine_tune(small, start.path, tmp_path / "result", learning_rate=0.0, snapshots=1)
    )
    assert result.method == method
    assert result.network == start.network
    starts = result.training["started_from"]["members"]
    assert len(starts) == (1 if method == "multi_epochs" else len(start.members))
    for member in result.members:
        origin = starts["best"] if method == "multi_epochs" else starts[member]
        assert torch.equal(parameters(result, member), parameters(start, origin)), member
    if method == "multi_epochs":
        assert starts == {"best": start.members[-1]}


def test_the_record_says_what_the_training_started_from(small, make, tmp_path):
    start = make(small, tmp_path / "start", "mc_dropout")
    small[0].name = "another"
    result = read_model(fine_tune(small, start, tmp_path / "result"))
    assert result.training["started_from"] == {
        "model": str(start),
        "sources": ["list"],
        "members": {"best": "best"},
    }
    again = read_model(fine_tune(small, result.path, tmp_path / "again"))
    assert again.training["started_from"]["sources"] == ["another", "list"]
    overlaps = trained_on("again", again.training, ["list"])
    assert overlaps, "frames that an earlier training has seen are no new frames"


def test_a_frozen_encoder_stays_shared_and_can_be_freed(small, make, tmp_path):
    start = read_model(make(small, tmp_path / "start", "multi_epochs", freeze_encoder=True))
    kept = read_model(fine_tune(small, start.path, tmp_path / "kept", freeze_encoder=True))
    assert kept.shared_encoder
    freed = read_model(fine_tune(small, start.path, tmp_path / "freed", freeze_encoder=False))
    assert not freed.shared_encoder
    before = start.load(start.members[-1]).encoder.state_dict()
    encoder = kept.load(kept.members[-1]).encoder.state_dict()
    assert all(torch.equal(encoder[name], value) for name, value in before.items())
    moved = freed.load(freed.members[-1]).encoder.state_dict()
    assert any(not torch.equal(moved[name], value) for name, value in before.items())


@pytest.mark.parametrize(
    ("network_options", "options", "words"),
    [
        ({"backbone": "resnet10"}, {}, "backbone is 'resnet10', but the model in .* has 'tiny'"),
        ({"depth_range": (1.0, 5.0)}, {}, "depth_range is .* but the model in .* has"),
        ({}, {"method": "log_likelihood"}, "head is 'laplace', but the model in .* has 'none'"),
        (
            {},
            {"method": "bagging", "members": 3},
            "bagging trains 3 networks, but .* holds 1 member",
        ),
    ],
)
def test_options_that_contradict_the_folder_are_refused(
    network_options, options, words, small, make, tmp_path
):
    source, network, training = small
    start = make(small, tmp_path / "start", "mc_dropout")
    source.reads = 0
    changed = replace(training, **{"method": "mc_dropout", "from_model": str(start), **options})
    with pytest.raises(ConfigError, match=words):
        train(source, tmp_path / "result", replace(network, **network_options), changed)
    assert source.reads == 0
    assert not (tmp_path / "result").exists()


def test_members_with_their_own_encoders_cannot_share_one(small, make, tmp_path):
    start = make(small, tmp_path / "start", "multi_inits")
    with pytest.raises(ConfigError, match=r"freeze_encoder is True, but .* an encoder of its own"):
        fine_tune(small, start, tmp_path / "result", freeze_encoder=True)


def test_the_command_takes_network_and_method_from_the_folder(small, make, tmp_path, capsys):
    start = make(small, tmp_path / "start", "mc_dropout")
    command = ["train", WORLD, "--from", str(start), "--output", str(tmp_path / "result"), *QUICK]
    assert main(command) == 0
    result = read_model(tmp_path / "result")
    assert result.network == read_model(start).network
    assert result.method == "mc_dropout"
    assert result.training["options"]["from_model"] == str(start)
    assert main([*command, "--resume"]) == 0, "complete"
    assert main(["train", "--output", str(tmp_path / "result"), "--resume"]) == 0, "all recorded"
    capsys.readouterr()
    other = ["--output", str(tmp_path / "other"), "--input-size", "64", "64"]
    assert main([*command[:4], *other]) == 1
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert "input_size is (64, 64), but the model in" in message
    assert main(["train", WORLD, "--from", "no_model", "--output", str(tmp_path / "other")]) == 1
    assert "model folder no_model does not exist" in capsys.readouterr().err


def test_a_network_of_hugging_face_is_fine_tuned_as_a_backbone(tmp_path, capsys):
    (tmp_path / "config.json").write_text("{}")
    command = ["train", WORLD, "--from", str(tmp_path), "--output", str(tmp_path / "result")]
    assert main(command) == 1
    assert "which --backbone takes" in capsys.readouterr().err
