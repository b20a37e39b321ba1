# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Related samples: each alone has its distribution, together they are closer to their mean."""

import numpy as np
import pytest
import torch

from uncertainty_depth.depth.estimators.mc_dropout import Draw, StratifiedNoise

SHAPE = (20, 50, 60)
UNITS = 60_000
SEED = 1
RATES = (0.05, 0.2, 0.9)


def masks(rate=0.2, samples=8, stamp=5, seed=SEED):
    """(M, units) keep masks of all samples of a frame."""
    noise = StratifiedNoise([Draw(SHAPE, rate)], samples)
    (masks,) = noise.of(noise.draw(seed, stamp), range(samples))
    return masks.numpy().reshape(samples, -1)


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
    noise = StratifiedNoise([Draw(SHAPE, 0.2)], 8)
    (some,) = noise.of(noise.draw(SEED, 5), [7, 0, 3])
    assert np.array_equal(some.numpy().reshape(3, -1), together[[7, 0, 3]])
    assert not np.array_equal(masks(stamp=6), together)
    assert not np.array_equal(masks(seed=2), together)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("samples", [1, 7, 64])
def test_looked_up_together_as_on_a_gpu_the_masks_are_the_same(samples, rate):
    numbers = [samples - 1, 0, samples // 2]
    noise = StratifiedNoise([Draw(SHAPE, rate), Draw((3, 4, 5), 0.3)], samples)
    for stamp in (4, 5):
        drawn = noise.draw(SEED, stamp)
        together = noise.of(drawn, torch.tensor(numbers, dtype=torch.int32))
        assert all(map(torch.equal, together, noise.of(drawn, numbers)))
