# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks that start from the depth interpolated between known pixels."""

import numpy as np
import pytest
import torch

from experiments.sparse_networks import (
    EMPTY_FRACTION,
    SparsePredictor,
    fill,
    given_pixels,
    raw_start,
    with_random,
)
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.records import Skipped
from uncertainty_depth.depth.networks.decoder import geometric
from uncertainty_depth.depth.networks.hourglass import make_network
from uncertainty_depth.depth.training.run import train
from uncertainty_depth.stream.opening import open_source

RANGE = (0.5, 20.0)
SIZE = (64, 96)
PIXELS = 20
CONFIG = NetworkConfig(
    backbone=given_pixels("tiny", PIXELS),
    decoder_width=16,
    depth_range=RANGE,
    input_size=(48, 32),
)


@pytest.fixture
def network():
    return make_network(CONFIG).eval()


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


@pytest.mark.parametrize("size", [(16, 16), (13, 21), (1, 7)])
def test_known_depth_stays_and_the_rest_lies_in_its_range(size):
    generator = torch.Generator().manual_seed(0)
    depth = 1 + 4 * torch.rand(2, 1, *size, generator=generator)
    given = torch.where(torch.rand(depth.shape, generator=generator) < 0.3, depth, 0.0)
    given[:, :, 0, 0] = 2.0
    dense = fill(given)
    known = given > 0
    assert torch.equal(dense[known], given[known])
    for one, image in zip(dense, given, strict=True):
        assert one.min() >= image[image > 0].min() - 1e-5
        assert one.max() <= image.max() + 1e-5


def test_an_empty_image_stays_empty():
    assert not fill(torch.zeros(1, 1, 11, 9)).any()


def test_what_is_given_is_no_target_and_one_frame_in_ten_gets_nothing(network):
    generator = torch.Generator().manual_seed(0)
    depth_m = 1 + torch.rand(400, 1, 16, 20, generator=generator)
    depth_m[torch.rand(depth_m.shape, generator=generator) < 0.3] = torch.nan
    images = torch.rand(400, 3, 16, 20, generator=generator)
    batch, targets = network.training_input(images, depth_m, generator)
    given = batch[:, 3:] > 0
    assert torch.equal(batch[:, :3], images)
    assert torch.equal(batch[:, 3:][given], depth_m[given])
    assert torch.isnan(targets[given]).all()
    assert torch.equal(torch.isfinite(targets) | given, torch.isfinite(depth_m))
    each = given.sum(dim=(1, 2, 3))
    assert (each == 0).float().mean() == pytest.approx(EMPTY_FRACTION, abs=0.05)
    assert each[each > 0].float().mean() == pytest.approx(PIXELS, rel=0.1)


def test_a_trained_network_is_served_with_the_known_depth_and_scored_on_the_rest(
    nyu_like, tmp_path
):
    source = open_source(f"nyu:{nyu_like}:test", SourceConfig())
    training = TrainingConfig(method="mc_dropout", epochs=1, batch_size=3)
    model = train(source, tmp_path / "model", CONFIG, training)
    predictor = SparsePredictor(model, PredictorConfig(samples=1, device="cpu"))
    truth_m = next(iter(source)).ground_truth_m
    frame = next(iter(with_random(source, 100)))
    known = np.isfinite(frame.sparse_m)
    assert known.sum() == 100
    np.testing.assert_array_equal(np.isfinite(frame.ground_truth_m), np.isfinite(truth_m) & ~known)
    with_depth = predictor.predict_frame(frame)
    alone = predictor.predict(frame.image)
    empty = predictor.predict(frame.image, sparse_m=np.full_like(frame.sparse_m, np.nan))
    assert not np.allclose(with_depth.depth_m, alone.depth_m)
    np.testing.assert_array_equal(alone.depth_m, empty.depth_m)
    np.testing.assert_array_equal(alone.sigma_m, empty.sigma_m)


def test_a_frame_without_a_rest_is_skipped(nyu_like):
    for record in with_random(open_source(f"nyu:{nyu_like}:test", SourceConfig()), 60 * 80):
        assert isinstance(record, Skipped)
        assert record.reason == "no_depth_held_out"
