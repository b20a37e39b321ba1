# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from uncertainty_depth.depth.training import objective

ALL = objective.LOSSES


def maps(seed: int, known_share: float = 0.5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    depth, scale, truth = rng.uniform(0.3, 10, (3, 2, 1, 5, 7))
    truth[rng.random(truth.shape) >= known_share] = np.nan
    return (
        torch.tensor(depth, dtype=torch.float32),
        torch.tensor(scale, dtype=torch.float32),
        torch.tensor(truth, dtype=torch.float32),
    )


def naive(name: str, depth: torch.Tensor, scale: torch.Tensor, truth: torch.Tensor) -> float:
    """One pixel after the other, densities by scipy."""
    pixels = [
        (d, s, g)
        for d, s, g in zip(
            *(values.flatten().tolist() for values in (depth, scale, truth)), strict=True
        )
        if not math.isnan(g)
    ]

    def one(d: float, s: float, g: float) -> float:
        if name in ("laplace", "gaussian"):
            return float(-(stats.laplace if name == "laplace" else stats.norm).logpdf(g, d, s))
        return abs(math.log(d / g))

    return sum(one(*pixel) for pixel in pixels) / len(pixels) if pixels else 0.0


@pytest.mark.parametrize("name", ALL)
@settings(deadline=None)
@given(seed=st.integers(0, 10**6), known_share=st.sampled_from([0.0, 0.05, 0.5, 1.0]))
def test_equals_a_naive_loop(name, seed, known_share):
    depth, scale, truth = maps(seed, known_share)
    assert ALL[name](depth, scale, truth).item() == pytest.approx(
        naive(name, depth, scale, truth), rel=1e-4, abs=1e-6
    )


@pytest.mark.parametrize("name", ALL)
def test_a_pixel_without_ground_truth_gets_no_gradient(name):
    depth, scale, truth = (values.requires_grad_() for values in maps(0))
    ALL[name](depth, scale, truth.detach()).backward()
    unknown = truth.isnan()
    for values in (depth, scale) if name != "none" else (depth,):
        assert (values.grad[unknown] == 0).all()
        assert (values.grad[~unknown] != 0).all()


def test_distillation_weighs_relative_errors_of_mean_and_sigma():
    targets = torch.tensor([2.0, 0.5]).view(1, 2, 1, 1).expand(3, 2, 4, 4)
    depth = targets[:, :1] * 1.1
    scale = targets[:, 1:] / 1.3
    assert objective.distillation(*targets.split(1, dim=1), targets).item() == 0.0
    assert objective.distillation(depth, scale, targets).item() == pytest.approx(
        math.log(1.1) + math.log(1.3), rel=1e-5
    )
    certain = torch.tensor([2.0, 0.0]).view(1, 2, 1, 1)
    assert objective.distillation(
        certain[:, :1], torch.full((1, 1, 1, 1), 2e-3), certain
    ).item() == pytest.approx(0.0, abs=1e-6)
