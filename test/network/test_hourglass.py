# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The hourglass gives positive depth at the input's size and learns in all its parts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.decoder import UpProjection, geometric
from uncertainty_depth.network.depth_network import RELATIVE_SCALE
from uncertainty_depth.network.encoder import IMAGENET_MEAN, IMAGENET_STD
from uncertainty_depth.network.hourglass import Hourglass


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
@settings(max_examples=15, deadline=None)
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


def test_variance_of_the_two_likelihoods():
    scale = torch.tensor([[[[0.5, 2.0]]]])
    for head, factor in (("laplace", 2.0), ("gaussian", 1.0)):
        network = make(head=head)
        output = network.to_metres(torch.zeros(1, 2, 1, 2), (1, 2))._replace(scale_m=scale)
        torch.testing.assert_close(network.variance(output), factor * scale**2)
    assert make(head="none").variance(make(head="none")(torch.rand(2, 3, 64, 64))) is None


def test_up_projection_is_unpooling_and_convolving():
    """Laina et al. 2016, fig. 2c: zeros between the pixels, then a 5x5 convolution, per branch."""
    torch.manual_seed(1)
    module = UpProjection(3, 4).eval()
    x = torch.randn(2, 3, 5, 6)
    unpooled = torch.zeros(2, 3, 10, 12)
    unpooled[:, :, ::2, ::2] = x
    kernel = module.unpool.weight.transpose(0, 1).flip(2, 3)
    branch, projection = (
        module.unpool_norm(functional.conv2d(unpooled, kernel, padding=2))
    ).split(4, dim=1)
    convolved = functional.conv2d(functional.relu(branch), module.conv.weight, padding=1)
    expected = functional.relu(module.norm(convolved) + projection)
    torch.testing.assert_close(module(x), expected)


def test_the_image_is_normalised_as_imagenet_was():
    network = make().eval()
    image = torch.rand(1, 3, 64, 64)
    seen = []
    network.encoder.backbone.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0])
    )
    network(image)
    expected = (image.numpy() - np.reshape(IMAGENET_MEAN, (1, 3, 1, 1))) / np.reshape(
        IMAGENET_STD, (1, 3, 1, 1)
    )
    np.testing.assert_allclose(seen[0].numpy(), expected, rtol=1e-5, atol=1e-6)
    assert {"encoder.mean", "encoder.std"} <= network.state_dict().keys()


def test_the_scale_gives_no_gradient_to_the_depth_channel():
    network = make(head="laplace")
    raw = torch.randn(1, 2, 4, 4, requires_grad=True)
    network.to_metres(raw, (4, 4)).scale_m.sum().backward()
    assert raw.grad[:, 0].abs().max() == 0
    assert raw.grad[:, 1].abs().min() > 0


def test_dropout_acts_after_each_of_the_first_three_up_projections():
    network = make(decoder_width=32).eval()
    trunk = network.decoder.trunk(network.encode(torch.rand(1, 3, 64, 96)))
    shapes = []

    def record_shape(x):
        shapes.append(tuple(x.shape[1:]))
        return x

    network.decoder.branches(trunk, [record_shape] * 3)
    assert shapes == [(32, 4, 6), (16, 8, 12), (8, 16, 24)]
    assert [(dropout.p, type(dropout)) for dropout in network.decoder.dropouts] == [
        (0.2, torch.nn.Dropout)
    ] * 3


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
