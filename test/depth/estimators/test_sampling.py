# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Related samples: each alone has its law, together they are closer to their mean."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.depth.estimators.mc_dropout import SeededDropout
from uncertainty_depth.depth.estimators.noise import (
    Draw,
    PackedNoise,
    frame_noise,
    keep_table,
    packed_noise,
)

CPU = torch.device("cpu")
SHAPE = (20, 50, 60)
UNITS = 60_000
CONFIG = PredictorConfig(samples=8, seed=1)
RATES = (0.05, 0.2, 0.9)


def masks(rate=0.2, samples=8, stamp=5):
    """(M, units) keep masks of all samples of a frame."""
    config = replace(CONFIG, samples=samples)
    streams = frame_noise(config, stamp, CPU).of(range(samples))
    return SeededDropout(rate).noise(streams, SHAPE).numpy().reshape(samples, -1)


@pytest.mark.parametrize("samples", [1, 2, 7, 64])
@pytest.mark.parametrize("rate", RATES)
def test_each_sample_alone_drops_units_at_the_rate_and_independently(samples, rate):
    kept = masks(rate, samples)
    limit = 5 * np.sqrt(UNITS * rate * (1 - rate))
    assert np.abs((1 - kept).sum(1) - rate * UNITS).max() < limit
    neighbours = np.corrcoef(kept[0, :-1], kept[0, 1:])[0, 1]
    assert abs(neighbours) < 5 / np.sqrt(UNITS)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("samples", [2, 8])
def test_stratified_samples_drop_each_unit_its_expected_number_of_times(rate, samples):
    dropped = (1 - masks(rate, samples).astype(int)).sum(0)
    expected = rate * samples
    assert dropped.min() >= np.floor(expected - 1e-3 * samples)
    assert dropped.max() <= np.ceil(expected + 1e-3 * samples)
    assert dropped.mean() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("rate", RATES)
def test_stratified_samples_are_exchangeable(rate):
    """All pairs have the correlation that follows from the variance of the number of drops."""
    fraction = (rate * 8) % 1
    variance = rate * (1 - rate)
    expected = (fraction * (1 - fraction) - 8 * variance) / (8 * 7 * variance)
    pairs = np.corrcoef(masks(rate))[~np.eye(8, dtype=bool)]
    assert np.abs(pairs - expected).max() < 0.05
    assert pairs.mean() == pytest.approx(expected, abs=0.005)


def test_samples_are_the_same_alone_and_together_and_follow_from_seed_and_stamp():
    together = masks()
    some = frame_noise(CONFIG, 5, CPU).of([7, 0, 3])
    alone = SeededDropout(0.2).noise(some, SHAPE).numpy().reshape(3, -1)
    assert np.array_equal(alone, together[[7, 0, 3]])
    assert not np.array_equal(masks(stamp=6), together)


def test_the_variance_of_a_linear_output_is_off_by_a_known_fraction():
    """E[biased variance] is sigma^2 minus the variance of the mean: 7 / 8 if independent."""
    fraction = 1 - 0.24 / (64 * 0.16)
    weights = np.random.default_rng(0).normal(size=UNITS)
    exact = 0.16 * (weights**2).sum()
    variances = []
    for stamp in range(100):
        outputs = masks(stamp=stamp) @ weights
        variances.append(outputs.var() / exact)
    error = np.std(variances) / np.sqrt(len(variances))
    assert np.mean(variances) == pytest.approx(fraction, abs=4 * error)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("samples", [1, 7, 64])
def test_packed_for_a_gpu_the_noise_drops_the_same_units(samples, rate):
    config = replace(CONFIG, samples=samples)
    numbers = [samples - 1, 0, samples // 2]
    draws = [Draw(SHAPE, rate), Draw((3, 4, 5), 0.3)]
    lengths = [math.prod(draw.shape) for draw in draws]
    packed = packed_noise(config, [4, 5], numbers, draws)
    on_device, *places = packed.split([len(numbers), *lengths, *lengths])
    tables = [keep_table(samples, draw.rate) for draw in draws]
    for stamp, of_frame in ((4, places[:2]), (5, places[2:])):
        streams = PackedNoise(of_frame, tables).of(on_device)
        expected = frame_noise(config, stamp, CPU).of(numbers)
        for draw in draws:
            assert torch.equal(streams.keep_masks(*draw), expected.keep_masks(*draw))
