# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Normalised convolutions: against a loop over pixels, and what confidence promises."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.inference.deployment import prepare
from uncertainty_depth.network.architectures import make_network
from uncertainty_depth.network.normalised_network import (
    Confident,
    NormalisedConv2d,
    NormalisedPyramid,
    beside,
    halved,
)
from uncertainty_depth.uncertainty.mc_dropout import seeded
from uncertainty_depth.uncertainty.noise import IndependentStreams, random_stream

SIZE = (1, 4, 48, 72)


def make(**options):
    torch.manual_seed(0)
    values = {"backbone": "pncnn", "sparse_input": "lidar", "dropout": 0.0, **options}
    return make_network(NetworkConfig(**values)).eval()


@pytest.fixture
def image():
    """An image of which 5 % of the pixels have depth."""
    generator = torch.Generator().manual_seed(1)
    image = torch.rand(SIZE, generator=generator)
    known = torch.rand(SIZE[2:], generator=generator) < 0.05
    image[:, 3] = torch.where(known, 1 + 4 * image[:, 3], 0.0)
    return image


def maps(channels, fraction=0.4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (2, channels, 9, 11)
    confidence = torch.rand(shape, generator=generator)
    confidence *= torch.rand(shape, generator=generator) < fraction
    return Confident(10 * torch.rand(shape, generator=generator), confidence)


def test_a_layer_is_a_mean_weighed_by_confidence():
    """Against a loop over pixels in float64."""
    torch.manual_seed(0)
    layer = NormalisedConv2d(2, 3, 5)
    given = maps(2)
    found = layer(given)
    weight = np.log1p(np.exp(10 * layer.weight.detach().double().numpy())) / 10
    values = np.pad(given.values.double().numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    trust = np.pad(given.confidence.double().numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    for frame, out, row, column in np.ndindex(2, 3, 9, 11):
        window = (frame, slice(None), slice(row, row + 5), slice(column, column + 5))
        mass = (weight[out] * trust[window]).sum()
        total = (weight[out] * trust[window] * values[window]).sum()
        place = (frame, out, row, column)
        assert found.confidence[place].item() == pytest.approx(mass / weight[out].sum(), rel=1e-4)
        assert found.values[place].item() == pytest.approx(total / mass if mass else 0, rel=1e-4)


def test_where_nothing_is_trusted_the_result_is_neither():
    found = NormalisedConv2d(1, 1, 3)(maps(1, fraction=0.0))
    assert not found.values.any()
    assert not found.confidence.any()


def test_the_most_confident_of_each_cell_goes_on():
    given = maps(2)
    found = halved(given)
    for frame, channel, row, column in np.ndindex(2, 2, 4, 5):
        cell = (frame, channel, slice(2 * row, 2 * row + 2), slice(2 * column, 2 * column + 2))
        best = given.confidence[cell].argmax()
        place = (frame, channel, row, column)
        assert found.values[place] == given.values[cell].flatten()[best]
        assert found.confidence[place] == given.confidence[cell].max() / 4


def test_coarse_maps_are_repeated_beside_the_fine_ones():
    given = maps(1)
    joined = beside(given, halved(given))
    nearest = functional.interpolate(halved(given).values, (9, 11), mode="nearest")
    assert torch.equal(joined.values, torch.cat([given.values, nearest], dim=1))


@pytest.mark.parametrize("seed", range(3))
def test_a_constant_stays_what_it_is_and_means_stay_in_range(seed):
    torch.manual_seed(seed)
    pyramid = NormalisedPyramid()
    given = maps(1, fraction=0.05, seed=seed)
    constant = pyramid(Confident(torch.full_like(given.values, 3.7), given.confidence))
    reached = constant.confidence > 0
    assert reached.any()
    torch.testing.assert_close(
        constant.values[reached], torch.full_like(constant.values[reached], 3.7)
    )
    dense = pyramid(given)
    known = given.values[given.confidence > 0]
    assert dense.values[dense.confidence > 0].min() >= known.min() - 1e-4
    assert dense.values[dense.confidence > 0].max() <= known.max() + 1e-4


def test_what_is_not_trusted_has_no_influence():
    given = maps(1, fraction=0.2)
    wrong = torch.where(given.confidence > 0, given.values, 1e6)
    pyramid = NormalisedPyramid()
    for one, other in zip(
        pyramid(given), pyramid(Confident(wrong, given.confidence)), strict=True
    ):
        assert torch.equal(one, other)


def test_the_network_has_the_published_size():
    network = make(head="gaussian")
    weights = sum(parameter.numel() for parameter in network.parameters())
    assert weights == pytest.approx(670_000, rel=0.01)


def test_constant_depth_is_completed_exactly_and_the_image_is_not_looked_at(image):
    network = make()
    image[:, 3] = torch.where(image[:, 3] > 0, 2.5, 0.0)
    output = network(image)
    torch.testing.assert_close(output.depth_m, torch.full_like(output.depth_m, 2.5))
    assert output.scale_m.min() > 0
    dark = image.clone()
    dark[:, :3] = 0
    assert torch.equal(network(dark).depth_m, output.depth_m)


def test_without_depth_it_gives_the_constant_it_was_started_from(image):
    network = make()
    network.start_from_constant(4.0, 0.2)
    depth = network(image[:, :3]).depth_m
    torch.testing.assert_close(depth, torch.full_like(depth, 4.0))
    lone = torch.zeros(SIZE)
    lone[0, 3, 0, 0] = 2.0
    assert torch.equal(network(lone).depth_m, torch.full_like(depth, 2.0))


@pytest.mark.parametrize("head", ["none", "laplace"])
def test_every_weight_of_use_learns(image, head):
    network = make(head=head).train()
    image = torch.cat([image, image * (torch.arange(4) < 3).view(4, 1, 1)])
    output = network(image)
    loss = output.depth_m.sum() + (output.scale_m.sum() if head == "laplace" else 0)
    loss.backward()
    without = [name for name, one in network.named_parameters() if one.grad is None]
    assert not without


def test_each_sample_of_dropout_has_another_depth_and_scale(image):
    network = make(dropout=0.3)
    trunk = network.trunk(image)
    dropouts = [seeded(layer) for layer in network.decoder.dropouts]
    streams = IndependentStreams([random_stream(0, 0, sample) for sample in range(3)])
    output = network.branches(trunk, dropouts, streams, image.shape[-2:])
    assert output.depth_m.shape == (3, 1, 48, 72)
    assert output.depth_m.std(dim=0).max() > 0
    assert output.scale_m.std(dim=0).max() > 0


def test_folded_for_inference_it_gives_the_same(image):
    network = make()
    for norm in network.modules():
        if isinstance(norm, torch.nn.BatchNorm2d):
            norm.running_mean.uniform_(-0.5, 0.5)
            norm.running_var.uniform_(0.5, 2)
    before = network(image)
    after = prepare(network, torch.device("cpu"), "fp32")(image)
    assert not any(isinstance(part, torch.nn.BatchNorm2d) for part in network.modules())
    torch.testing.assert_close(after.depth_m, before.depth_m, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(after.scale_m, before.scale_m, rtol=1e-4, atol=1e-4)


def test_options_that_contradict_it_are_one_clear_sentence():
    with pytest.raises(ConfigError, match=r"looks at no image, but sparse_input is empty"):
        make(sparse_input="")
    with pytest.raises(ConfigError, match="has no encoder; expected 'decoder'"):
        make(dropout_places="encoder_and_decoder")
