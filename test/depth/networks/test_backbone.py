# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every encoder family: presets, folders and hub ids; and the hourglass around one."""

import socket

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.networks.backbone import (
    PRESETS,
    backbone_from_mapping,
    backbone_mapping,
    make_backbone,
)
from uncertainty_depth.depth.networks.decoder import geometric
from uncertainty_depth.depth.networks.depth_network import RELATIVE_SCALE
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.networks.resnet import ResNet, ResNetConfig, read_config

SMALL = {
    "resnet": transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 12, 16, 24], depths=[1, 1, 1, 1], layer_type="basic"
    ),
    "convnext": transformers.ConvNextConfig(hidden_sizes=[8, 12, 16, 24], depths=[1, 1, 1, 1]),
    "dinov2": transformers.Dinov2Config(
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        patch_size=14,
        image_size=56,
        reshape_hidden_states=True,
    ),
    "dinov2_of_two_blocks": transformers.Dinov2Config(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, patch_size=14, image_size=56
    ),
    "swin": transformers.SwinConfig(
        embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4
    ),
}


@pytest.fixture(params=SMALL)
def saved(request, tmp_path):
    """A folder with a small backbone's config and weights, and the weights."""
    torch.manual_seed(0)
    backbone = transformers.AutoBackbone.from_config(SMALL[request.param])
    backbone.save_pretrained(tmp_path / "backbone")
    return tmp_path / "backbone", backbone.state_dict()


def test_a_saved_backbone_gives_depth_with_its_own_weights(saved):
    folder, weights = saved
    network = Hourglass(NetworkConfig(backbone=str(folder), decoder_width=16)).eval()
    found = network.encoder.backbone.state_dict()
    assert all(torch.equal(found[name], tensor) for name, tensor in weights.items())
    assert network(torch.rand(1, 3, 70, 90)).depth_m.shape == (1, 1, 70, 90)


def test_a_backbone_is_rebuilt_from_its_mapping_alone(saved):
    backbone = make_backbone(str(saved[0]))
    again = backbone_from_mapping(backbone_mapping(backbone))
    assert {k: v.shape for k, v in again.state_dict().items()} == {
        k: v.shape for k, v in backbone.state_dict().items()
    }
    assert again.channels == backbone.channels
    assert str(saved[0]) not in str(backbone_mapping(backbone))


@pytest.mark.parametrize("name", PRESETS)
def test_presets_need_no_hub(name, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a preset asked the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with torch.device("meta"):
        backbone = make_backbone(name)
    assert len(backbone.channels) == 4


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("resnet18", 11.18),
        ("resnet34", 21.28),
        ("resnet50", 23.51),
        ("resnet101", 42.50),
        ("resnet152", 58.14),
    ],
)
def test_presets_have_the_published_number_of_parameters(name, millions):
    """He et al. 2016, without the classifier: 25,557,032 - 2,049,000 for ResNet-50."""
    with torch.device("meta"):
        count = sum(weights.numel() for weights in make_backbone(name).parameters())
    assert count / 1e6 == pytest.approx(millions, abs=0.01)


def pickled(folder):
    SMALL["resnet"].save_pretrained(folder)
    torch.save({}, folder / "pytorch_model.bin")


def of_text(folder):
    transformers.BertConfig().save_pretrained(folder)


def of_another(folder):
    transformers.AutoBackbone.from_config(SMALL["resnet"]).save_pretrained(folder)
    SMALL["convnext"].save_pretrained(folder)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (pickled, r"holds pickled weights \(pytorch_model.bin\), which are never read"),
        (lambda folder: None, "has no readable config"),
        (of_text, "a 'bert' model cannot be the encoder"),
        (of_another, r"hold \d+ of the \d+ tensors that a convnext encoder needs"),
    ],
)
def test_a_folder_that_holds_no_backbone_is_refused(write, sentence, tmp_path):
    write(tmp_path)
    with pytest.raises(ModelError, match=sentence):
        make_backbone(str(tmp_path))


def test_an_unknown_name_is_refused():
    sentence = r"^no backbone 'resnet19'; expected one of tiny, .* or a hub id like owner/name$"
    with pytest.raises(ModelError, match=sentence):
        make_backbone("resnet19")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"model_type": "no_such_model"},
        {"model_type": "bert"},
        {"model_type": "resnet", "hidden_sizes": "many"},
        {"model_type": "resnet", "hidden_sizes": [8, 8, 8, 10**15]},
        {"model_type": "resnet", "hidden_sizes": [8, 8, 8, 10**30]},
    ],
)
def test_an_invalid_mapping_is_refused(values):
    with pytest.raises(ModelError):
        backbone_from_mapping(values)


CONFIGS = [
    ResNetConfig("basic", (1, 2, 1, 1), (8, 8, 12, 16), embedding_size=8),
    ResNetConfig("bottleneck", (1, 1, 2, 1), (8, 16, 32, 64), embedding_size=8),
    ResNetConfig(
        "bottleneck",
        (1, 1, 1, 1),
        (8, 16, 32, 64),
        embedding_size=8,
        downsample_in_first_stage=True,
        downsample_in_bottleneck=True,
    ),
]


def reference(config):
    values = {**config.to_dict(), "out_features": ["stage1", "stage2", "stage3", "stage4"]}
    return transformers.AutoBackbone.from_config(transformers.AutoConfig.for_model(**values))


@pytest.mark.parametrize("config", CONFIGS)
def test_it_takes_the_weights_of_transformers_and_gives_the_same_maps(config):
    theirs = reference(config)
    ours = ResNet(config)
    ours.load_state_dict(theirs.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.channels == list(theirs.channels)
    pixels = torch.randn(2, 3, 70, 90, generator=torch.Generator().manual_seed(1))
    for is_training in (True, False):
        maps = ours.train(is_training)(pixels).feature_maps
        expected = theirs.train(is_training)(pixels).feature_maps
        pairs = zip(maps, expected, strict=True)
        assert all(torch.equal(ours_map, their_map) for ours_map, their_map in pairs)


@pytest.mark.parametrize(
    "values",
    [
        {"model_type": "convnext"},
        {"hidden_act": "gelu"},
        {"layer_type": "none"},
        {"depths": [1, 1, 1]},
        {"depths": [1, 1, 1, 0]},
        {"hidden_sizes": [8, 8, 8, 8.0]},
        {"embedding_size": True},
        {"downsample_in_bottleneck": 1},
    ],
)
def test_whatever_else_is_left_to_transformers(values):
    assert read_config({**CONFIGS[0].to_dict(), **values}) is None


def make(**options) -> Hourglass:
    torch.manual_seed(0)
    return Hourglass(NetworkConfig(**{"backbone": "tiny", "decoder_width": 16, **options}))


@pytest.mark.parametrize("head", ["none", "laplace", "gaussian"])
def test_depth_is_in_range_and_the_scale_a_fraction_of_it(head):
    network = make(head=head, depth_range=(0.5, 4.0)).eval()
    depth, scale = network(torch.rand(2, 3, 64, 96))
    assert depth.shape == (2, 1, 64, 96)
    assert depth.min() > 0.5
    assert depth.max() < 4.0
    assert (scale is None) == (head == "none")
    if scale is not None:
        assert scale.shape == depth.shape
        assert scale.min() > 0.5 * RELATIVE_SCALE[0]
        assert scale.max() < 4.0 * RELATIVE_SCALE[1]


@given(height=st.integers(32, 150), width=st.integers(32, 150))
@settings(max_examples=15)
def test_maps_have_the_input_s_size_whatever_it_is(height, width):
    depth, _ = make().eval()(torch.rand(1, 3, height, width))
    assert depth.shape == (1, 1, height, width)
    assert torch.isfinite(depth).all()


@given(z=st.floats(-1e4, 1e4), low=st.floats(0.01, 10.0), ratio=st.floats(1.01, 1e4))
def test_geometric_stays_in_its_range_and_is_the_formula(z, low, ratio):
    value = geometric(torch.tensor(z, dtype=torch.float64), low, low * ratio).item()
    assert low * (1 - 1e-9) <= value <= low * ratio * (1 + 1e-9)
    with np.errstate(over="ignore"):
        assert value == pytest.approx(low * ratio ** (1 / (1 + np.exp(-np.float64(z)))), rel=1e-9)


def test_the_scale_gives_no_gradient_to_the_depth_channel():
    network = make(head="laplace")
    raw = torch.randn(1, 2, 4, 4, requires_grad=True)
    network.to_metres(raw, (4, 4)).scale_m.sum().backward()
    assert raw.grad[:, 0].abs().max() == 0
    assert raw.grad[:, 1].abs().min() > 0


def test_a_frozen_encoder_does_not_move_in_training():
    network = make()
    network.freeze_encoder()
    network.train()
    before = {name: tensor.clone() for name, tensor in network.encoder.state_dict().items()}
    image = torch.rand(2, 3, 64, 64)
    optimizer = torch.optim.SGD(
        [weights for weights in network.parameters() if weights.requires_grad], lr=0.1
    )
    network(image).depth_m.sum().backward()
    optimizer.step()
    assert all(
        torch.equal(before[name], tensor) for name, tensor in network.encoder.state_dict().items()
    )
    assert network.decoder.training
    assert not network.encoder.training
    assert all(weights.grad is None for weights in network.encoder.parameters())
    in_training = network.encode(image)
    in_evaluation = network.eval().encode(image)
    assert all(torch.equal(a, b) for a, b in zip(in_training, in_evaluation, strict=True))


@pytest.mark.parametrize(("last_activation", "spreads"), [("relu", False), ("leaky_relu", True)])
def test_units_that_are_all_off_have_variance_and_gradient_except_with_relu(
    last_activation, spreads
):
    decoder = make(last_activation=last_activation, dropout=0.5).decoder
    for norm in (decoder.ups[3].unpool_norm, decoder.ups[3].norm):
        torch.nn.init.constant_(norm.bias, -20.0)
    features = [torch.randn(2, c, 32 // 2**k, 32 // 2**k) for k, c in enumerate([16, 32, 64, 128])]
    one = decoder(features)
    other = decoder(features)
    assert torch.equal(one, other) != spreads
    one.sum().backward()
    assert bool(decoder.ups[3].norm.bias.grad.any()) == spreads
