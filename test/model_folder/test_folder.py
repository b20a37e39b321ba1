# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model folder gives back what was written, and says in one sentence what is wrong with it."""

import json
import os
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoBackbone, ResNetConfig

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.errors import ModelError
from uncertainty_depth.model_folder import folder as module
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.model_folder.writing import create, export_half, set_members, write_member
from uncertainty_depth.network.hourglass import Hourglass

CONFIG = NetworkConfig(backbone="tiny", decoder_width=16, head="laplace", input_size=(64, 48))


def network(seed: int = 0, frozen: bool = False) -> Hourglass:
    torch.manual_seed(seed)
    made = Hourglass(CONFIG)
    with torch.no_grad():
        for norm in (m for m in made.modules() if isinstance(m, torch.nn.BatchNorm2d)):
            norm.running_mean.uniform_(-0.1, 0.1)
            norm.running_var.uniform_(0.5, 2.0)
    if frozen:
        made.freeze_encoder()
    return made.eval()


def snapshots(frozen: bool) -> list[Hourglass]:
    """Two networks; with a frozen encoder they differ in the decoder alone."""
    first = network(0, frozen)
    second = network(1, frozen)
    if frozen:
        second.encoder.load_state_dict(first.encoder.state_dict())
    return [first, second]


def write(path, networks):
    create(path, networks[0], {"epochs": 7, "source": "synthetic:"})
    for name, member in zip("ab", networks, strict=False):
        write_member(path, name, member)
    set_members(path, ["a", "b"][: len(networks)], "multi_epochs")
    return path


@pytest.fixture
def model(tmp_path):
    return write(tmp_path / "model", snapshots(False))


def edit(path, **changes):
    content = json.loads((path / "model.json").read_text())
    (path / "model.json").write_text(json.dumps({**content, **changes}))


@pytest.mark.parametrize("frozen", [False, True])
def test_what_is_read_predicts_what_was_written(tmp_path, frozen):
    written = snapshots(frozen)
    found = read(write(tmp_path / "model", written))
    assert (found.network, found.method, found.members) == (CONFIG, "multi_epochs", ("a", "b"))
    assert found.training == {"epochs": 7, "source": "synthetic:"}
    assert found.shared_encoder == frozen
    image = torch.rand(1, 3, 48, 64)
    for expected, one, alone in zip(
        written, found.load_all(found.members), map(found.load, found.members), strict=True
    ):
        for loaded in (one, alone):
            assert not loaded.training
            assert torch.equal(loaded(image).depth_m, expected(image).depth_m)
            assert torch.equal(loaded(image).scale_m, expected(image).scale_m)


def test_a_shared_encoder_is_stored_once_and_loaded_once(tmp_path):
    path = write(tmp_path / "model", snapshots(True))
    assert sorted(p.name for p in path.iterdir()) == [
        "a.safetensors",
        "b.safetensors",
        "encoder.safetensors",
        "model.json",
    ]
    assert all(name.startswith("decoder.") for name in load_file(path / "a.safetensors"))
    one, other = read(path).load_all(["a", "b"])
    assert one.encoder is other.encoder
    assert one.decoder is not other.decoder


def test_members_of_whole_networks_share_nothing(model):
    one, other = read(model).load_all(["a", "b"])
    assert one.encoder is not other.encoder
    shared = {w.data_ptr() for w in one.parameters()} & {w.data_ptr() for w in other.parameters()}
    assert not shared


def test_another_encoder_beside_the_shared_one_is_refused(tmp_path):
    path = write(tmp_path / "model", snapshots(True))
    with pytest.raises(ModelError, match="holds another encoder than the network's"):
        write_member(path, "c", network(5, frozen=True))


def test_half_storage_is_half_the_size_and_comes_back_as_float32(tmp_path):
    path = write(tmp_path / "model", snapshots(True))
    half = export_half(path, tmp_path / "half")
    size = {p: sum(file.stat().st_size for file in p.glob("*.safetensors")) for p in (path, half)}
    assert size[half] < 0.6 * size[path]
    image = torch.rand(1, 3, 48, 64)
    full, lossy = (read(p).load("b") for p in (path, half))
    assert all(weights.dtype == torch.float32 for weights in lossy.parameters())
    torch.testing.assert_close(lossy(image).depth_m, full(image).depth_m, rtol=5e-3, atol=0.0)
    assert read(half).training == read(path).training


def test_the_training_record_can_be_brought_up_to_date(model):
    set_members(model, ["b"], "mc_dropout", {"epochs": 9})
    assert (read(model).members, read(model).method, read(model).training) == (
        ("b",),
        "mc_dropout",
        {"epochs": 9},
    )


def test_a_backbone_from_a_folder_is_not_needed_to_read(tmp_path):
    resnet = ResNetConfig(hidden_sizes=[8, 8, 8, 8], depths=[1] * 4, layer_type="basic")
    AutoBackbone.from_config(resnet).save_pretrained(tmp_path / "backbone")
    made = Hourglass(NetworkConfig(backbone=str(tmp_path / "backbone"), decoder_width=16)).eval()
    path = write(tmp_path / "model", [made])
    for file in (tmp_path / "backbone").iterdir():
        file.unlink()
    (tmp_path / "backbone").rmdir()
    image = torch.rand(1, 3, 48, 64)
    assert torch.equal(read(path).load("a")(image).depth_m, made(image).depth_m)


def test_an_interrupted_write_leaves_the_old_member_and_nothing_else(model, monkeypatch):
    before = (model / "a.safetensors").read_bytes()

    def killed(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        write_member(model, "a", network(3))
    assert (model / "a.safetensors").read_bytes() == before
    assert sorted(p.name for p in model.iterdir()) == [
        "a.safetensors",
        "b.safetensors",
        "model.json",
    ]


def test_a_reader_in_the_middle_of_the_old_member_is_not_disturbed(model):
    before = (model / "a.safetensors").read_bytes()
    with (model / "a.safetensors").open("rb") as reader:
        beginning = reader.read(100)
        write_member(model, "a", network(3))
        assert beginning + reader.read() == before
    assert (model / "a.safetensors").read_bytes() != before


def test_a_model_is_not_overwritten(model, tmp_path):
    with pytest.raises(ModelError, match="already holds a model"):
        create(model, network(), {})
    with pytest.raises(ModelError, match="already holds a model"):
        export_half(model, model)


@pytest.mark.parametrize("name", ["encoder", "../a", "", "a/b", ".hidden"])
def test_names_that_are_no_file_names_are_refused(model, name):
    with pytest.raises(ModelError, match="member name"):
        write_member(model, name, network())


def refused(path, load: str | None = None) -> str:
    """The one sentence a bad folder gets."""
    with pytest.raises(ModelError) as caught:
        read(path) if load is None else read(path).load(load)
    assert str(caught.value).count("\n") == 0
    return str(caught.value)


def test_a_folder_that_is_missing(tmp_path):
    assert f"model folder {tmp_path / 'none'} does not exist" in refused(tmp_path / "none")


def test_a_folder_without_model_json(tmp_path):
    assert f"{tmp_path} is not a model folder: it has no model.json" in refused(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "\x00\xff", '{"format": 1'])
def test_json_that_is_broken(model, text):
    (model / "model.json").write_text(text, encoding="latin-1")
    assert "is not valid JSON" in refused(model)


@pytest.mark.parametrize("text", ["[]", "{}", '"model"', '{"format": "1"}', '{"format": true}'])
def test_json_without_a_format(model, text):
    (model / "model.json").write_text(text)
    assert "expected 1" in refused(model)


def test_a_newer_format(model):
    edit(model, format=2)
    assert refused(model).endswith(
        "has format 2, newer than 1, the newest this version reads; update uncertainty_depth"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"architecture": "transformer"}, "has architecture 'transformer'; expected 'hourglass'"),
        (
            {"method": "crystal_ball"},
            "has method 'crystal_ball'; expected one of deterministic, mc_dropout, multi_epochs",
        ),
        (
            {"members": []},
            "holds no trained member yet; expected at least one: train --resume continues",
        ),
        ({"members": ["a", "z"]}, "z.safetensors is missing; model.json names it"),
        ({"members": ["../model/a"]}, "names member '../model/a'; expected a file name"),
        ({"members": ["/etc/a"]}, "names member '/etc/a'; expected a file name"),
        ({"members": "a"}, "has members = 'a'; expected a list"),
        ({"network": {"colour": "red"}}, "describes no network: unknown option 'colour'"),
        (
            {"network": {"dropout": "much"}},
            "describes no network: dropout is 'much'; expected float",
        ),
        ({"shared_encoder": True}, "encoder.safetensors is missing; model.json names it"),
        ({"training": None}, "has training = None; expected a dict"),
    ],
)
def test_json_that_does_not_fit(model, changes, sentence):
    edit(model, **changes)
    assert sentence in refused(model)


@pytest.mark.parametrize(
    "values", [{}, {"model_type": "none"}, {"model_type": "resnet", "hidden_sizes": "many"}]
)
def test_an_invalid_backbone_config_is_refused(model, values):
    edit(model, backbone=values)
    assert "transformers cannot use the backbone config" in refused(model, "a")


def test_a_network_config_that_only_the_network_refuses(model):
    edit(model, network={"depth_range": [5.0, 1.0]})
    assert "describes no network: depth_range is (5.0, 1.0)" in refused(model, "a")


@pytest.mark.parametrize("keep", [0, 4, 100, -1, -1000])
def test_a_truncated_member(model, keep):
    content = (model / "a.safetensors").read_bytes()
    (model / "a.safetensors").write_bytes(content[:keep])
    assert "a.safetensors is truncated or damaged" in refused(model, "a")


def test_a_member_that_is_garbage(model):
    (model / "a.safetensors").write_bytes(os.urandom(4096))
    assert "a.safetensors is truncated or damaged" in refused(model, "a")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was read",))


def test_a_pickle_is_never_read(model):
    (model / "a.safetensors").write_bytes(pickle.dumps(Bomb()))
    assert "a.safetensors is truncated or damaged" in refused(model, "a")


def change_tensors(model, change):
    tensors = load_file(model / "a.safetensors")
    change(tensors)
    save_file(tensors, model / "a.safetensors")


def test_a_member_that_lacks_a_tensor(model):
    change_tensors(model, lambda tensors: tensors.pop("decoder.final.weight"))
    assert refused(model, "a").endswith(
        "is of another architecture than model.json: it lacks tensor decoder.final.weight"
    )


def test_a_member_with_a_tensor_too_many(model):
    change_tensors(model, lambda tensors: tensors.update(attention=torch.zeros(1)))
    assert refused(model, "a").endswith(
        "is of another architecture than model.json: it has an unknown tensor attention"
    )


def test_a_member_with_a_tensor_of_another_shape(model):
    change_tensors(model, lambda tensors: tensors.update({"decoder.final.bias": torch.zeros(3)}))
    assert refused(model, "a").endswith("tensor decoder.final.bias has shape (3,), expected (2,)")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_member_whose_training_diverged(model, value):
    bias = torch.tensor([0.0, value])
    change_tensors(model, lambda tensors: tensors.update({"decoder.final.bias": bias}))
    assert "has NaN or infinity in tensor decoder.final.bias" in refused(model, "a")


def test_a_member_of_a_wider_network(model):
    edit(
        model,
        network={**json.loads((model / "model.json").read_text())["network"], "decoder_width": 32},
    )
    assert "is of another architecture than model.json" in refused(model, "b")


def test_a_shared_encoder_that_is_damaged(tmp_path):
    path = write(tmp_path / "model", snapshots(True))
    (path / "encoder.safetensors").write_bytes(b"\x00" * 100)
    assert "encoder.safetensors is truncated or damaged" in refused(path, "a")


def test_a_member_that_vanishes_after_reading(model):
    found = module.read(model)
    (model / "a.safetensors").unlink()
    with pytest.raises(ModelError, match=r"a\.safetensors is missing"):
        found.load("a")


def test_members_of_other_architectures_keep_theirs(tmp_path):
    networks = [
        network(),
        Hourglass(
            NetworkConfig(backbone="resnet10", decoder_width=32, input_size=(64, 48))
        ).eval(),
    ]
    path = write(tmp_path / "model", networks)
    found = read(path)
    image = torch.rand(1, 3, 48, 64)
    assert set(found.architectures) == {"b"}
    for expected, loaded in zip(networks, found.load_all(found.members), strict=True):
        assert loaded.config == expected.config
        assert torch.equal(loaded(image).depth_m, expected(image).depth_m)
    half = read(export_half(path, tmp_path / "half"))
    torch.testing.assert_close(
        half.load("b")(image).depth_m, networks[1](image).depth_m, rtol=5e-3, atol=0.0
    )


def test_a_folder_of_one_architecture_is_written_as_before(model):
    content = json.loads((model / "model.json").read_text())
    assert set(content) == {
        "format",
        "architecture",
        "network",
        "backbone",
        "method",
        "members",
        "shared_encoder",
        "training",
    }
    assert content["format"] == 1


def test_decoders_of_two_architectures_may_share_one_encoder(tmp_path):
    first = network(frozen=True)
    torch.manual_seed(5)
    second = Hourglass(
        NetworkConfig(backbone="tiny", decoder_width=32, input_size=(64, 48)),
        first.encoder.backbone,
    )
    second.freeze_encoder()
    path = write(tmp_path / "model", [first, second.eval()])
    one, other = read(path).load_all(["a", "b"])
    assert one.encoder is other.encoder
    assert other.config.decoder_width == 32


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"a": {}},
        {"a": {"network": {}, "backbone": 1}},
        {"a": 1},
        {"a": {"network": 1, "backbone": {}}},
    ],
)
def test_architectures_that_make_no_sense(model, value):
    edit(model, architectures=value)
    assert "has architectures that cannot be used" in refused(model)


def test_a_folder_written_before_members_could_differ_is_read(model):
    content = json.loads((model / "model.json").read_text())
    del content["network"]["dropout_type"]
    (model / "model.json").write_text(json.dumps(content))
    image = torch.rand(1, 3, 48, 64)
    assert read(model).network == CONFIG
    assert torch.equal(read(model).load("a")(image).depth_m, network(0)(image).depth_m)


def test_a_folder_written_before_the_last_activation_could_be_chosen_has_relu(model):
    assert read(model).network.last_activation == NetworkConfig().last_activation == "leaky_relu"
    content = json.loads((model / "model.json").read_text())
    del content["network"]["last_activation"]
    (model / "model.json").write_text(json.dumps(content))
    assert read(model).network.last_activation == "relu"
