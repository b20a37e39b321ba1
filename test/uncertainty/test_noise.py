# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Masks follow from (seed, stamp, sample) alone, at the given rate, and are independent."""

import itertools

import numpy as np
import pytest
import torch
from scipy import stats

from uncertainty_depth.uncertainty.mc_dropout import (
    SeededDropout,
)
from uncertainty_depth.uncertainty.noise import (
    IndependentStreams,
    keep_mask,
    normal_noise,
    random_stream,
)


def test_streams_of_samples_do_not_overlap():
    words = [random_stream(0, 0, sample).random_raw(4096) for sample in range(8)]
    assert len(np.unique(np.concatenate(words))) == 8 * 4096


def test_samples_frames_and_seeds_are_uncorrelated():
    masks = [
        keep_mask(random_stream(*key), [100_000], 0.2).numpy()
        for key in itertools.product((0, 1), (7, 8), (0, 1))
    ]
    correlations = np.corrcoef(np.array(masks, float))[~np.eye(8, dtype=bool)]
    assert np.abs(correlations).max() < 5 / np.sqrt(100_000)


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
def test_dropout_is_the_naive_loop_in_any_memory_layout(layout):
    x = torch.rand(1, 3, 4, 5)
    streams = IndependentStreams([random_stream(1, 2, sample) for sample in (0, 1)])
    references = [random_stream(1, 2, sample) for sample in (0, 1)]
    first = SeededDropout(0.2)(x.contiguous(memory_format=layout), streams)
    expected = np.stack([naive(x[0].numpy(), 0.2, bits) for bits in references])
    np.testing.assert_allclose(first.numpy(), expected, rtol=1e-6)
    second = SeededDropout(0.2)(first, streams)  # the next dropout draws on
    expected = np.stack(
        [naive(sample, 0.2, bits) for sample, bits in zip(expected, references, strict=True)]
    )
    np.testing.assert_allclose(second.numpy(), expected, rtol=1e-6)


def test_normal_noise_is_normal():
    assert stats.kstest(normal_noise(random_stream(3, 4, 5), [20_000]), "norm").pvalue > 0.01
