# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
from __future__ import annotations

import dataclasses

import pytest

from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.training import objective
from uncertainty_depth.training.frames import read_frames
from uncertainty_depth.training.plan import constant_guess


@pytest.mark.parametrize("head", ["laplace", "gaussian"])
def test_a_likelihood_starts_where_it_can_be_trained(head: str, source, network) -> None:
    """Far from the thousands it costs to start with a scale that is far too small."""
    frames = read_frames(source, (64, 64))
    hourglass = Hourglass(dataclasses.replace(network, head=head))
    hourglass.start_from_constant(*constant_guess(frames))
    images, truth = frames.batch(range(8))
    output = hourglass.train()(images)
    depth_m, _ = constant_guess(frames)
    assert output.depth_m.median().item() == pytest.approx(depth_m, rel=0.2)
    assert objective.LOSSES[head](*output, truth).item() < 4
