# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Pixels made by the tests, as NumPy arrays and as torch tensors."""

import numpy as np
import pytest
import torch

from uncertainty_depth.metrics.online import OnlineMetrics


def drawn(
    number: int, seed: int = 0, dtype: str = "float64"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return depth, sigma and ground truth like those of a decent network.

    Log-normal sigma, errors that follow it, a few outliers.
    """
    rng = np.random.default_rng(seed)
    ground_truth = rng.uniform(0.5, 60, number)
    true_sigma = 0.07 * ground_truth * np.exp(0.5 * rng.normal(size=number))
    depth = np.maximum(ground_truth + true_sigma * rng.standard_t(5, number), 0.05)
    sigma = 0.8 * true_sigma * np.exp(0.3 * rng.normal(size=number))
    return tuple(values.astype(dtype) for values in (depth, sigma, ground_truth))


def metrics_of(frames):
    metrics = OnlineMetrics()
    for frame in frames:
        metrics.update(*frame)
    return metrics


@pytest.fixture
def pixels():
    """3,000 pixels: depth, sigma, ground truth."""
    return drawn(3000)


@pytest.fixture(params=["numpy", "torch"])
def convert(request):
    """Turns NumPy arrays into one kind of array."""
    if request.param == "numpy":
        return np.asarray
    return lambda values: torch.as_tensor(np.asarray(values))
