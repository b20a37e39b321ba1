# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The two ways that are timed train the same networks; how fast, no test asserts."""

import math

import numpy as np
import pytest
import torch

from uncertainty_depth.bench import training
from uncertainty_depth.bench.stacking import Loop, Stacked
from uncertainty_depth.bench.trainee import Trainee
from uncertainty_depth.bench.training import run, table
from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.hourglass import Hourglass

NETWORK = NetworkConfig(backbone="tiny", decoder_width=16, dropout=0.0, input_size=(32, 32))


pytestmark = pytest.mark.usefixtures("one_thread")


def test_stacked_networks_learn_what_each_learns_by_itself():
    torch.manual_seed(0)
    networks = [Hourglass(NETWORK).train() for _ in range(3)]
    images = torch.rand(3, 2, 3, 32, 32)
    depth_m = 1 + torch.rand(3, 2, 1, 32, 32)
    loop = Loop(networks)
    stacked = Stacked(networks)
    before = loop.step(images, depth_m)
    torch.testing.assert_close(stacked.step(images, depth_m), before)
    after = loop.step(images, depth_m)
    assert (after < 0.98 * before).all()
    torch.testing.assert_close(
        stacked.step(images, depth_m), after, rtol=0.01, atol=0
    )  # Adam divides by gradients that are next to nothing
    assert len(set(after.tolist())) == 3


def test_a_trainee_is_trained():
    trainee = Trainee(NETWORK, 4)
    before = [weights.detach().clone() for weights in trainee.network.parameters()]
    assert math.isfinite(trainee.epoch())
    assert not any(
        torch.equal(*pair) for pair in zip(before, trainee.network.parameters(), strict=True)
    )


def test_rows_hold_the_ratios_of_their_own_times(monkeypatch):
    monkeypatch.setattr(training, "PROCESSES", 1)
    threads = torch.get_num_threads()
    rows = run(1, 4, 2, NETWORK)
    assert torch.get_num_threads() == threads
    assert [row[:2] for row in rows] == [
        ("in sequence, threads: 1", "side by side"),
        ("loop", "stacked"),
    ]
    for row in rows:
        np.testing.assert_allclose(row.ratio, row.second_s.median / row.first_s.median)
        assert f"| {row.ratio} |" in table(rows)
