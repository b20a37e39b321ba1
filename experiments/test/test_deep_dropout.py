# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Dropout in encoder and decoder: the same network without it, and where it acts with it."""

import numpy as np
import pytest
import torch

from experiments import deep_dropout, methods  # noqa: F401  adds the network
from experiments.sparse_networks import given_pixels
from uncertainty_depth.contrib.engines.graphs import trace
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.estimators.mc_dropout import McDropout, seeded
from uncertainty_depth.depth.model_folder import writing
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.hourglass import make_network
from uncertainty_depth.depth.training.objective import gaussian_nll

STAGES = ((32, 8, 8), (64, 4, 4), (128, 2, 2))
UP_PROJECTIONS = ((16, 4, 4), (8, 8, 8), (4, 16, 16), (2, 32, 32))


def network(backbone=deep_dropout.NAME, **options):
    torch.manual_seed(0)
    config = NetworkConfig(
        backbone=backbone,
        decoder_width=16,
        input_size=(64, 64),
        head="gaussian",
        dropout=0.5,
        **options,
    )
    return make_network(config).eval()


def image():
    return torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("is_sparse", [False, True])
def test_without_dropout_it_is_the_usual_network(is_sparse):
    names = ["tiny", deep_dropout.NAME]
    usual, deep = (network(given_pixels(name, 60) if is_sparse else name) for name in names)
    for expected, actual in zip(usual(image()), deep(image()), strict=True):
        assert torch.equal(expected, actual)


def test_dropout_acts_after_three_stages_and_four_up_projections():
    deep = network()
    shapes = []

    def keep(maps, noise):
        shapes.append(tuple(maps.shape[1:]))
        return maps.expand(2, -1, -1, -1)

    output = deep.branches(deep.trunk(image())[1], [keep] * 7, [None] * 7, (64, 64))
    assert tuple(shapes) == STAGES + UP_PROJECTIONS
    assert torch.equal(output.depth_m[0], output.depth_m[1])
    torch.testing.assert_close(output.depth_m[:1], deep(image()).depth_m)


def test_every_part_of_it_learns():
    deep = network().train()
    output = deep(image())
    gaussian_nll(output.depth_m, output.scale_m, torch.ones(1, 1, 64, 64)).backward()
    assert all(weights.grad is not None for weights in deep.parameters())


def test_samples_are_the_same_after_writing_reading_and_in_a_graph(tmp_path):
    deep = network()
    writing.create(tmp_path, deep, {})
    writing.write_member(tmp_path, "best", deep)
    writing.set_members(tmp_path, ["best"], "mc_dropout")
    read = read_model(tmp_path).load("best")
    config = PredictorConfig(samples=4)
    estimates = [McDropout(one).estimate(image(), 7, config) for one in (deep, read)]
    assert estimates[0].epistemic.min() > 0
    np.testing.assert_array_equal(estimates[0].stacked(), estimates[1].stacked())
    pair = trace(deep, [seeded(layer) for layer in deep.decoder.dropouts])
    assert pair.noise_shapes == STAGES + UP_PROJECTIONS
