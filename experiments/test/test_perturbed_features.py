# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""inference_dropout and feature_noise against M whole passes with one feature map changed."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats

from experiments.perturbed_features import (
    DROPOUT_RATE,
    NOISE_RATIO,
    FeatureNoise,
    IndependentFeatureNoise,
    IndependentInferenceDropout,
    IndependentNoise,
    NormalNoise,
    SeededNoise,
    keep_mask,
    normal_noise,
)
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.estimators import McDropout
from uncertainty_depth.depth.estimators.mc_dropout import SeededDropout, random_stream
from uncertainty_depth.depth.networks.hourglass import Hourglass

STAMP = 1_700_000_000_123_456_789
CONFIG = PredictorConfig(samples=5, seed=3)
IMAGE = torch.rand(1, 3, 50, 70, generator=torch.Generator().manual_seed(0))
BOTH = pytest.mark.parametrize("method", [IndependentInferenceDropout, IndependentFeatureNoise])


@pytest.fixture(scope="module")
def network() -> Hourglass:
    """Trained without dropout."""
    torch.manual_seed(0)
    config = NetworkConfig(backbone="tiny", decoder_width=16, head="none", dropout=0.0)
    return Hourglass(config).eval()


def by_hand(method, x, sample):
    """One map changed by NumPy, in channels-last order as the noise is drawn."""
    values = x[0].permute(1, 2, 0).double().numpy()
    bits = random_stream(CONFIG.seed, STAMP, sample)
    if method is IndependentInferenceDropout:
        rate = DROPOUT_RATE
        changed = values * keep_mask(bits, values.shape, rate).numpy() / (1 - rate)
    else:
        noise = normal_noise(bits, values.shape).numpy()
        changed = values + NOISE_RATIO * values.std((0, 1)) * noise
    return torch.from_numpy(changed).float().permute(2, 0, 1)[None]


@BOTH
def test_it_is_m_whole_passes_with_the_first_map_changed(method, network):
    depths = []
    for sample in range(CONFIG.samples):
        hook = network.decoder.ups[0].register_forward_hook(
            lambda _, inputs, x, sample=sample: by_hand(method, x, sample)
        )
        with torch.no_grad():
            depths.append(network(IMAGE).depth_m[0, 0].double().numpy())
        hook.remove()
    estimate = method(network).estimate(IMAGE, STAMP, CONFIG)
    np.testing.assert_allclose(estimate.depth_m, np.mean(depths, 0), rtol=1e-5)
    np.testing.assert_allclose(estimate.epistemic, np.var(depths, 0), rtol=1e-3, atol=1e-9)
    assert not estimate.aleatoric.any()


@BOTH
def test_the_noise_follows_from_seed_and_stamp(method, network):
    estimator = method(network)
    reference = estimator.estimate(IMAGE, STAMP, CONFIG)
    torch.manual_seed(99)
    again = estimator.estimate(IMAGE, STAMP, CONFIG)
    assert all(map(torch.equal, again[:3], reference[:3]))
    for stamp, seed in ((STAMP + 1, CONFIG.seed), (STAMP, CONFIG.seed + 1)):
        other = estimator.estimate(IMAGE, stamp, replace(CONFIG, seed=seed))
        assert not torch.equal(other.epistemic, reference.epistemic)


def test_the_networks_own_dropouts_are_off(monkeypatch):
    monkeypatch.setattr(FeatureNoise, "perturbation", SeededNoise(0.0))
    torch.manual_seed(0)
    made = Hourglass(NetworkConfig(backbone="tiny", decoder_width=16, dropout=0.4)).eval()
    torch.testing.assert_close(
        FeatureNoise(made).estimate(IMAGE, STAMP, CONFIG).depth_m,
        made(IMAGE).depth_m[0, 0].detach(),
    )
    assert McDropout(made).estimate(IMAGE, STAMP, CONFIG).epistemic.max() > 1e-6


def naive(x: np.ndarray, rate: float, bits: np.random.Philox) -> np.ndarray:
    """Element by element, channels fastest: 16 bits of each word, lowest first."""
    channels, height, width = x.shape
    words = [int(word) for word in np.atleast_1d(bits.random_raw(-(-x.size // 4)))]
    result = np.zeros_like(x)
    for index, (row, column, channel) in enumerate(
        itertools.product(range(height), range(width), range(channels))
    ):
        part = (words[index // 4] >> (16 * (index % 4))) & 0xFFFF
        result[channel, row, column] = (
            x[channel, row, column] / (1 - rate) if part >= round(rate * 65536) else 0.0
        )
    return result


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_independent_dropout_is_the_naive_loop_in_any_memory_layout(layout):
    x = torch.rand(1, 3, 4, 5)
    noise = IndependentNoise([partial(keep_mask, shape=(4, 5, 3), rate=0.2)] * 2)
    masks = noise.of((1, 2), (0, 1))
    references = [random_stream(1, 2, sample) for sample in (0, 1)]
    first = SeededDropout(0.2)(x.contiguous(memory_format=layout), masks[0])
    expected = np.stack([naive(x[0].numpy(), 0.2, bits) for bits in references])
    np.testing.assert_allclose(first.numpy(), expected, rtol=1e-6)
    second = SeededDropout(0.2)(first, masks[1])  # the next dropout draws on
    expected = np.stack(
        [naive(sample, 0.2, bits) for sample, bits in zip(expected, references, strict=True)]
    )
    np.testing.assert_allclose(second.numpy(), expected, rtol=1e-6)


def test_samples_frames_and_seeds_are_uncorrelated():
    masks = [
        keep_mask(random_stream(*key), [100_000], 0.2).numpy()
        for key in itertools.product((0, 1), (7, 8), (0, 1))
    ]
    correlations = np.corrcoef(np.array(masks, float))[~np.eye(8, dtype=bool)]
    assert np.abs(correlations).max() < 5 / np.sqrt(100_000)


def test_gaussian_noise_keeps_its_law_and_its_mean_varies_less():
    assert stats.kstest(normal_noise(random_stream(3, 4, 5), [20_000]), "norm").pvalue > 0.01
    shape = (20, 50, 60)
    normal = NormalNoise(shape, 8)
    noise = normal.of(normal.draw(1, 5), range(8))[0].numpy().reshape(8, -1)
    for sample in noise:
        assert stats.kstest(sample[:20_000], "norm").pvalue > 1e-3
    assert noise.mean(0).std() < 0.6 / np.sqrt(8)
