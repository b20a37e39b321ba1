# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The hourglass gives positive depth at the input's size and learns in all its parts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.networks.decoder import geometric
from uncertainty_depth.depth.networks.depth_network import RELATIVE_SCALE
from uncertainty_depth.depth.networks.hourglass import Hourglass


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
