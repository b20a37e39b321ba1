# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model folder gives back what was written, and says in one sentence what is wrong with it.

Its files of tensors are compared with the format's own library, both ways.
"""

import json
import math
import os
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from transformers import AutoBackbone, ResNetConfig

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.model_folder.files import DTYPES, TensorFile, TensorFileError, packed
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.model_folder.writing import (
    create,
    export_half,
    set_members,
    write_member,
)
from uncertainty_depth.depth.networks.hourglass import Hourglass

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


@pytest.mark.parametrize("frozen", [False, True])
def test_what_is_read_predicts_what_was_written(tmp_path, frozen):
    written = snapshots(frozen)
    found = read_model(write(tmp_path / "model", written))
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
    full, lossy = (read_model(p).load("b") for p in (path, half))
    assert all(weights.dtype == torch.float32 for weights in lossy.parameters())
    torch.testing.assert_close(lossy(image).depth_m, full(image).depth_m, rtol=5e-3, atol=0.0)
    assert read_model(half).training == read_model(path).training


def test_a_backbone_from_a_folder_is_not_needed_to_read(tmp_path):
    resnet = ResNetConfig(hidden_sizes=[8, 8, 8, 8], depths=[1] * 4, layer_type="basic")
    AutoBackbone.from_config(resnet).save_pretrained(tmp_path / "backbone")
    made = Hourglass(NetworkConfig(backbone=str(tmp_path / "backbone"), decoder_width=16)).eval()
    path = write(tmp_path / "model", [made])
    for file in (tmp_path / "backbone").iterdir():
        file.unlink()
    (tmp_path / "backbone").rmdir()
    image = torch.rand(1, 3, 48, 64)
    assert torch.equal(read_model(path).load("a")(image).depth_m, made(image).depth_m)


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


def test_a_model_is_not_overwritten(model, tmp_path):
    with pytest.raises(ModelError, match="already holds a model"):
        create(model, network(), {})
    with pytest.raises(ModelError, match="already holds a model"):
        export_half(model, model)


@pytest.mark.parametrize("name", ["encoder", "../a", "", "a/b", ".hidden"])
def test_names_that_are_no_file_names_are_refused(model, name):
    with pytest.raises(ModelError, match="member name"):
        write_member(model, name, network())


def json_with(part="", without="", **changes):
    """Damage: other values in model.json or a part of it, or one value less."""

    def damage(content):
        description = json.loads(content)
        values = description[part] if part else description
        values.update(changes)
        values.pop(without, None)
        return json.dumps(description).encode()

    return damage


network_with = partial(json_with, "network")
backbone_with = partial(json_with, "backbone")


def other_backbone(**config):
    """Damage: another backbone."""
    return json_with(backbone=config)


def tensors_with(**changes):
    """Damage: other tensors in a member; None removes one."""
    changes = {name.replace("__", "."): value for name, value in changes.items()}

    def damage(content):
        tensors = {**load(content), **changes}
        return save({name: value for name, value in tensors.items() if value is not None})

    return damage


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was read",))


DINO = {"model_type": "dinov2", "hidden_size": 3, "num_attention_heads": 1}
LOST = "a.safetensors is truncated or damaged"
OTHER = "is of another architecture than model.json: "
MODEL = "model.json"
MEMBER = "a.safetensors"
FAULTS = [
    # file, damage, part of the sentence
    *((MODEL, text, "cannot be read") for text in (b"", b"{", b"\x00\xff", b'{"format": 1')),
    *((MODEL, text, "has format") for text in (b"[]", b"{}", b'"m"', b'{"format": true}')),
    (MODEL, json_with(format=2), "has format 2, newer than 1, the newest this version"),
    (MODEL, json_with(format=10**300), "newer than 1"),
    (MODEL, b"[" * 100_000, "is JSON of more than 32 levels"),
    (MODEL, b" " * 2**22 + b"{}", "expected at most 4194304"),
    (MODEL, json_with(training={"x": "9" * 2**22}), "expected at most 4194304"),
    (MODEL, lambda content: content.replace(b"7", b"7" * 401), "fits a float"),
    (MODEL, json_with(architecture="x" * 9999), "expected 'hourglass'"),
    (MODEL, json_with(method="crystal_ball"), "has method 'crystal_ball'; expected one of"),
    (MODEL, json_with(method=["mc_dropout"]), "has method = ['mc_dropout']; expected a str"),
    (MODEL, json_with(training=None), "has training = None; expected a dict"),
    (MODEL, json_with(shared_encoder=True), "encoder.safetensors is missing; model.json"),
    (MODEL, json_with(members=[]), "no trained member yet; expected at least one"),
    (MODEL, json_with(members="a"), "has members = 'a'; expected a list"),
    (MODEL, json_with(members=["a", "z"]), "z.safetensors is missing; model.json names it"),
    (MODEL, json_with(members=["../model/a"]), "names member '../model/a'; expected a file"),
    (MODEL, json_with(members=["/etc/a"]), "names member '/etc/a'; expected a file name"),
    (MODEL, json_with(members=["a", "b", "a"]), "names member 'a' twice"),
    (MODEL, json_with(members=["a"] * 100_000), "names 100000 members; expected at most"),
    (MODEL, network_with(colour="red"), "no network: unknown option 'colour'"),
    (MODEL, network_with(without="last_activation"), "no network: it has no last_activation"),
    (MODEL, json_with(network=[]), "has network = []; expected a dict"),
    (MODEL, network_with(dropout="much"), "dropout is 'much'; expected float"),
    (MODEL, network_with(decoder_width=10**9), "decoder_width is 1000000000; expected at"),
    (MODEL, network_with(depth_range=[5.0, 1.0]), "depth_range is (5.0, 1.0)"),
    *(
        (MODEL, network_with(input_size=value), "expected 2 values")
        for value in ([], [64], [64, 48, 3], 64)
    ),
    (MODEL, network_with(depth_range=[]), "depth_range is (); expected 2 values"),
    (MODEL, network_with(decoder_width=32), OTHER),
    *(
        (MODEL, json_with(architectures=value), "has architectures that cannot be used")
        for value in (
            [],
            {"a": {}},
            {"a": {"network": {}, "backbone": 1}},
            {"a": 1},
            {"a": {"network": 1, "backbone": {}}},
        )
    ),
    (MODEL, json_with(backbone={}), "transformers cannot use the backbone config"),
    (MODEL, other_backbone(model_type="none"), "transformers cannot use the backbone"),
    (MODEL, backbone_with(hidden_sizes="many"), "transformers cannot use the backbone"),
    (MODEL, backbone_with(depths=[10**5] * 4), "depths = 100000; expected at most 1024"),
    (MODEL, backbone_with(depths=[1000] * 4), "expected about the"),
    (MODEL, backbone_with(depths=[1] * 10**5), "100000 values of depths; expected at most"),
    (MODEL, backbone_with(hidden_sizes=[20_000] * 4), "network of more than"),
    (MODEL, other_backbone(**DINO, num_hidden_layers=10**6), "num_hidden_layers = 1000000"),
    (MODEL, other_backbone(**DINO, image_size=30_000, patch_size=1), "network of more than"),
    (MODEL, other_backbone(**DINO, _attn_implementation="a/b"), "complete without a hub"),
    (
        MODEL,
        other_backbone(model_type="depth_anything", backbone="a/b"),
        "backbone has backbone = 'a/b'; expected a config that is complete without a hub",
    ),
    *(
        (MEMBER, lambda content, keep=keep: content[:keep], LOST)
        for keep in (0, 4, 100, -1, -1000)
    ),
    (MEMBER, bytes(range(256)) * 16, LOST),
    (MEMBER, pickle.dumps(Bomb()), LOST),
    (MEMBER, None, "a.safetensors is missing; model.json names it"),
    (MEMBER, tensors_with(decoder__final__weight=None), OTHER + "it lacks tensor decoder"),
    (MEMBER, tensors_with(attention=torch.zeros(1)), "an unknown tensor attention"),
    (
        MEMBER,
        tensors_with(decoder__final__bias=torch.zeros(3)),
        "tensor decoder.final.bias has shape (3,), expected (2,)",
    ),
    *(
        (
            MEMBER,
            tensors_with(decoder__final__bias=torch.tensor([0.0, value])),
            "has NaN or infinity in tensor decoder.final.bias: the file is damaged",
        )
        for value in (math.nan, math.inf)
    ),
]


@pytest.mark.parametrize(("file", "damage", "sentence"), FAULTS)
def test_a_damaged_folder_is_refused_in_one_sentence(model, file, damage, sentence):
    path = model / file
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage if isinstance(damage, bytes) else damage(path.read_bytes()))
    with pytest.raises(ModelError) as caught:
        read_model(model).load("a")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none", "model folder {} does not exist"),
        ("", "{} is not a model folder: it has no model"),
    ],
)
def test_a_folder_that_is_no_model(tmp_path, name, sentence):
    with pytest.raises(ModelError, match=sentence.format(tmp_path / name)):
        read_model(tmp_path / name)


def test_members_of_other_architectures_keep_theirs(tmp_path):
    networks = [
        network(),
        Hourglass(
            NetworkConfig(backbone="resnet10", decoder_width=32, input_size=(64, 48))
        ).eval(),
    ]
    path = write(tmp_path / "model", networks)
    found = read_model(path)
    image = torch.rand(1, 3, 48, 64)
    assert set(found.architectures) == {"b"}
    for expected, loaded in zip(networks, found.load_all(found.members), strict=True):
        assert loaded.config == expected.config
        assert torch.equal(loaded(image).depth_m, expected(image).depth_m)
    half = read_model(export_half(path, tmp_path / "half"))
    torch.testing.assert_close(
        half.load("b")(image).depth_m, networks[1](image).depth_m, rtol=5e-3, atol=0.0
    )


SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
KINDS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(
        lambda name: name != "__metadata__"
    ),
    st.tuples(st.sampled_from(sorted(DTYPES)), SHAPES),
    max_size=6,
)


def made(kinds):
    rng = np.random.default_rng(0)
    return {
        name: torch.from_numpy(np.array(rng.integers(0, 2, shape))).to(DTYPES[dtype])
        for name, (dtype, shape) in kinds.items()
    }


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


@given(kinds=KINDS)
def test_the_library_reads_what_is_written_and_the_other_way(kinds, tmp_path_factory):
    tensors = made(kinds)
    assert_equal(load(packed(tensors)), tensors)
    path = tmp_path_factory.mktemp("file") / "it.safetensors"
    path.write_bytes(save(tensors, {"words": "of its own"}))
    file = TensorFile.open(path)
    assert_equal(file.tensors(), tensors)
    assert file.metadata == {"words": "of its own"}


def test_metadata_are_the_librarys_too(tmp_path):
    path = tmp_path / "it.safetensors"
    path.write_bytes(packed({"a": torch.ones(2).t()}, {"history": "[]"}))
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"history": "[]"}


GOOD = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


@pytest.mark.parametrize(
    ("header", "content", "told"),
    [
        (GOOD, 7, "it has 7 bytes of tensors; its header says 8"),
        (GOOD, 9, "it has 9 bytes of tensors; its header says 8"),
        ({"a": {**GOOD["a"], "shape": [3]}}, 8, "has 8 bytes for shape"),
        ({"a": {**GOOD["a"], "data_offsets": [1, 9]}}, 9, "starts at 1, not at 0"),
        ({**GOOD, "b": GOOD["a"]}, 8, "starts at 0, not at 8"),
        ({"a": {**GOOD["a"], "shape": [-2]}}, 8, "its header says of a"),
        ({"a": {**GOOD["a"], "shape": [2.0]}}, 8, "its header says of a"),
        ({"a": {**GOOD["a"], "dtype": "F4"}}, 8, "its header says of a"),
        ({"a": 5}, 8, "its header says of a"),
        ([], 8, "no JSON object"),
    ],
)
def test_what_is_not_of_the_format_is_refused_as_the_library_does(tmp_path, header, content, told):
    text = json.dumps(header).encode()
    path = tmp_path / "it.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(content))
    with pytest.raises(SafetensorError):
        load(path.read_bytes())
    with pytest.raises(TensorFileError, match=told):
        TensorFile.open(path)


@pytest.mark.parametrize("content", [b"", b"\x01", b"\xff" * 9, b"\x05" + bytes(7) + b"{nope"])
def test_what_has_no_header_is_refused(tmp_path, content):
    path = tmp_path / "it.safetensors"
    path.write_bytes(content)
    with pytest.raises(TensorFileError, match="its header"):
        TensorFile.open(path)
