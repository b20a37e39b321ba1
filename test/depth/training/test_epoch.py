# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import pytest
import torch
from tqdm import tqdm

from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.training.frames import TrainingFrames, read_frames
from uncertainty_depth.depth.training.objective import Objective, train_epoch, validate
from uncertainty_depth.metrics.depth import depth_errors


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
