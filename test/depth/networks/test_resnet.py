# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The ResNet against that of transformers."""

import pytest
import torch
import transformers

from uncertainty_depth.depth.networks.resnet import ResNet, ResNetConfig, read_config

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
