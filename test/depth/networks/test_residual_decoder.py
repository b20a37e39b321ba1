# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A network that predicts how depth differs from what is interpolated between known pixels."""

import pytest
import torch
from torch import nn

from uncertainty_depth.contrib.engines.graphs import trace
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.estimators.mc_dropout import McDropout, seeded
from uncertainty_depth.depth.familiarity import pooled
from uncertainty_depth.depth.model_folder import writing
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.backbone import backbone_from_mapping, make_backbone
from uncertainty_depth.depth.networks.decoder import geometric
from uncertainty_depth.depth.networks.deployment import prepare
from uncertainty_depth.depth.networks.hourglass import make_network
from uncertainty_depth.depth.networks.sparse import SparseEncoder, fill, raw_start

RANGE = (0.5, 20.0)
SIZE = (64, 96)


@pytest.fixture
def network():
    torch.manual_seed(0)
    config = NetworkConfig(
        backbone="tiny", decoder_width=16, depth_range=RANGE, sparse_input="lidar"
    )
    return make_network(config).eval()


def inputs(fraction=0.05):
    generator = torch.Generator().manual_seed(1)
    image = torch.rand(1, 3, *SIZE, generator=generator)
    depth_m = 1 + 9 * torch.rand(1, 1, *SIZE, generator=generator)
    chosen = torch.rand(depth_m.shape, generator=generator) < fraction
    return torch.cat([image, torch.where(chosen, depth_m, 0.0)], dim=1)


def test_the_raw_start_gives_its_depth_back_and_0_for_unknown():
    depth_m = torch.tensor([0.0, 0.1, 0.6, 3.0, 19.0, 99.0]).view(1, 1, 1, 6)
    raw = raw_start(depth_m, *RANGE)
    assert raw[..., 0] == 0
    back = geometric(raw[..., 1:], *RANGE).flatten()
    torch.testing.assert_close(back, torch.tensor([0.5, 0.6, 3, 19, 20]), rtol=5e-3, atol=0)


def test_before_training_it_gives_the_interpolated_depth(network):
    network.start_from_constant(3.0, 0.1)
    with torch.no_grad():
        network.decoder.final.weight.zero_()
    output = network(inputs())
    torch.testing.assert_close(output.depth_m, fill(inputs()[:, 3:]), rtol=1e-3, atol=0)
    torch.testing.assert_close(output.scale_m, 0.1 * output.depth_m, rtol=1e-3, atol=0)


def test_without_any_known_depth_it_sees_the_image_alone(network):
    alone = network(inputs()[:, :3]).depth_m
    empty = network(inputs(0.0)).depth_m
    assert torch.equal(alone, empty)
    assert alone.std() > 0
    assert not torch.equal(alone, network(inputs()).depth_m)


def test_samples_are_the_same_after_writing_and_reading(network, tmp_path):
    writing.create(tmp_path, network, {})
    writing.write_member(tmp_path, "best", network)
    writing.set_members(tmp_path, ["best"], "mc_dropout")
    read = read_model(tmp_path).load("best")
    estimates = [
        McDropout(one).estimate(inputs(), 7, PredictorConfig(samples=3)) for one in (network, read)
    ]
    assert torch.equal(estimates[0].stacked(), estimates[1].stacked())
    assert estimates[0].epistemic.max() > 0
    assert pooled(network.encode(inputs())).shape[0] == 1
    assert trace(network, [seeded(layer) for layer in network.decoder.dropouts]).noise_shapes


def test_pixels_without_depth_have_no_gradient(network):
    """An adversarial step along its sign must not make up depth where there is none."""
    image = inputs().requires_grad_(True)
    network(image).depth_m.sum().backward()
    known = image[:, 3] > 0
    assert (image.grad[:, 3][~known] == 0).all()
    assert (image.grad[:, 3][known] != 0).any()


def test_a_pretrained_first_convolution_keeps_its_weights():
    backbone = make_backbone("tiny")
    first = backbone.embedder.embedder.convolution.weight.clone()
    encoder = SparseEncoder(backbone, (0.3, 12.0))
    assert torch.equal(encoder.backbone.embedder.embedder.image.convolution.weight, first)


def test_folded_for_inference_it_gives_the_same(network):
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.uniform_(-0.5, 0.5)
            norm.running_var.uniform_(0.5, 2)
    before = network(inputs()).depth_m
    folded = prepare(network, torch.device("cpu"), "fp32")
    assert not any(isinstance(part, nn.BatchNorm2d) for part in folded.encoder.modules())
    torch.testing.assert_close(folded(inputs()).depth_m, before, rtol=1e-4, atol=1e-4)


def test_an_encoder_that_is_no_resnet_is_one_clear_sentence():
    backbone = backbone_from_mapping({"model_type": "convnext", "hidden_sizes": [8, 8, 8, 8]})
    with pytest.raises(ConfigError, match=r"needs a ResNet as its encoder, .* a 'convnext' model"):
        SparseEncoder(backbone, (0.3, 12.0))


def sparse(height, width, fraction, seed=0):
    generator = torch.Generator().manual_seed(seed)
    depth = 1 + 4 * torch.rand(2, 1, height, width, generator=generator)
    return torch.where(torch.rand(depth.shape, generator=generator) < fraction, depth, 0.0)


@pytest.mark.parametrize("size", [(16, 16), (13, 21), (1, 7)])
def test_known_depth_stays_and_the_rest_lies_in_its_range(size):
    given = sparse(*size, 0.3)
    given[:, :, 0, 0] = 2.0
    dense = fill(given)
    known = given > 0
    assert torch.equal(dense[known], given[known])
    for one, image in zip(dense, given, strict=True):
        assert one.min() >= image[image > 0].min() - 1e-5
        assert one.max() <= image.max() + 1e-5


def test_one_known_pixel_fills_the_image_and_an_empty_image_stays_empty():
    given = torch.zeros(2, 1, 11, 9)
    given[0, 0, 3, 4] = 5.0
    dense = fill(given)
    torch.testing.assert_close(dense[0], torch.full((1, 11, 9), 5.0))
    assert not dense[1].any()


def test_what_is_filled_in_follows_the_nearest_known_depth():
    given = torch.zeros(1, 1, 32, 32)
    given[0, 0, 4:28:4, 4] = 2.0
    given[0, 0, 4:28:4, 28] = 8.0
    dense = fill(given)[0, 0]
    assert dense[5:27, 3:8].max() < 3
    assert dense[5:27, 25:30].min() > 7
