# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Image and sparse depth have first convolutions of their own, and both decide the depth."""

import pytest
import torch
from torch import nn

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.architectures import make_network
from uncertainty_depth.network.backbone import backbone_from_mapping, make_backbone
from uncertainty_depth.network.deployment import prepare
from uncertainty_depth.network.sparse import SparseEncoder


def make(**options):
    torch.manual_seed(0)
    values = {"backbone": "tiny", "decoder_width": 16, "sparse_input": "lidar", **options}
    return make_network(NetworkConfig(**values)).eval()


@pytest.fixture
def image():
    torch.manual_seed(1)
    image = torch.rand(1, 4, 64, 96)
    image[:, 3] = torch.where(image[:, 3] < 0.05, 3.0, 0.0)
    return image


def test_without_the_fourth_channel_it_is_as_with_an_empty_one(image):
    network = make()
    empty = image.clone()
    empty[:, 3] = 0
    torch.testing.assert_close(network(image[:, :3]).depth_m, network(empty).depth_m)


def test_pixels_without_depth_have_no_gradient(image):
    """An adversarial step along its sign must not make up depth where there is none."""
    image.requires_grad_(True)
    make()(image).depth_m.sum().backward()
    known = image[:, 3] > 0
    assert (image.grad[:, 3][~known] == 0).all()
    assert (image.grad[:, 3][known] != 0).any()


def test_a_pretrained_first_convolution_keeps_its_weights():
    backbone = make_backbone("tiny")
    first = backbone.embedder.embedder.convolution.weight.clone()
    encoder = SparseEncoder(backbone, (0.3, 12.0))
    assert torch.equal(encoder.backbone.embedder.embedder.image.convolution.weight, first)


def test_folded_for_inference_it_gives_the_same(image):
    network = make()
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.uniform_(-0.5, 0.5)
            norm.running_var.uniform_(0.5, 2)
    before = network(image).depth_m
    folded = prepare(network, torch.device("cpu"), "fp32")
    assert not any(isinstance(part, nn.BatchNorm2d) for part in folded.encoder.modules())
    torch.testing.assert_close(folded(image).depth_m, before, rtol=1e-4, atol=1e-4)


def test_an_encoder_that_is_no_resnet_is_one_clear_sentence():
    backbone = backbone_from_mapping({"model_type": "convnext", "hidden_sizes": [8, 8, 8, 8]})
    with pytest.raises(ConfigError, match=r"needs a ResNet as its encoder, .* a 'convnext' model"):
        SparseEncoder(backbone, (0.3, 12.0))
