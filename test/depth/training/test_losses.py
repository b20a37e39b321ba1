# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tqdm import tqdm

from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.training import objective
from uncertainty_depth.depth.training.frames import TrainingFrames, read_frames
from uncertainty_depth.depth.training.objective import Objective, train_epoch, validate
from uncertainty_depth.metrics.depth import depth_errors

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


def l1(depth_m, scale_m, truth_m):
    return (depth_m - truth_m)[torch.isfinite(truth_m)].abs().mean()


@pytest.fixture
def frames(source):
    return read_frames(source, (64, 64))


def test_validation_errors_are_those_of_all_known_pixels_together(frames, network):
    hourglass = Hourglass(network)
    indices = [1, 4, 5, 6, 9]
    figures = validate(hourglass, Objective(l1), frames, indices, batch_size=2)
    with torch.no_grad():
        images, truth = frames.batch(indices)
        depth = hourglass.eval()(images).depth_m
    known = ~truth.isnan()
    expected = depth_errors(*(values[known].double().numpy() for values in (depth, truth)))
    names = ("abs_rel", "rmse", "rmse_log")
    assert figures == pytest.approx(
        {"validation_loss": expected["mae"], **{name: expected[name] for name in names}}, rel=1e-5
    )


def test_every_frame_is_shown_once_in_another_order_each_epoch(frames, network, monkeypatch):
    shown: list[list[int]] = []
    batch = TrainingFrames.batch

    def noting(self: TrainingFrames, indices, device):
        shown.append(list(indices))
        return batch(self, indices, device)

    monkeypatch.setattr(TrainingFrames, "batch", noting)
    hourglass = Hourglass(network)
    optimizer = torch.optim.AdamW(hourglass.parameters())
    indices = [0, 2, 3, 5, 8, 9, 11]
    orders = []
    for epoch in range(2):
        shown.clear()
        given = (Objective(l1), frames, indices, TrainingConfig(batch_size=3), epoch)
        train_epoch(hourglass, optimizer, *given, tqdm(disable=True))
        assert [len(part) for part in shown] == [3, 2, 2]  # no lone frame at the end
        orders.append([index for part in shown for index in part])
        assert sorted(orders[-1]) == indices
    assert orders[0] != orders[1]
