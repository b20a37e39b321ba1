# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A network that predicts how depth differs from what is interpolated between known pixels."""

import pytest
import torch

from uncertainty_depth.config import NetworkConfig, PredictorConfig
from uncertainty_depth.engines.graphs import trace
from uncertainty_depth.familiarity import pooled
from uncertainty_depth.model_folder import writing
from uncertainty_depth.model_folder.folder import read as read_model
from uncertainty_depth.network.architectures import make_network
from uncertainty_depth.network.decoder import geometric
from uncertainty_depth.network.sparse import fill, raw_start
from uncertainty_depth.uncertainty.mc_dropout import McDropout, seeded

RANGE = (0.5, 20.0)
SIZE = (64, 64)


@pytest.fixture
def network():
    torch.manual_seed(0)
    config = NetworkConfig(
        backbone="tiny",
        decoder_width=16,
        input_size=SIZE,
        depth_range=RANGE,
        sparse_input="lidar",
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
