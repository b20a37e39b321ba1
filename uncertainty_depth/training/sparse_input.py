# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Split known depth into sparse input of the network and targets of its loss."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.completion.sparse_input import SparseInput
from uncertainty_depth.network.encoder import upload

logger = logging.getLogger(__name__)

EMPTY_FRACTION = 0.1
"""Of the frames, without any sparse depth: a robot's LiDAR can fail."""
INPUT_FRACTIONS = (0.1, 0.9)
"""Range of the fraction of a LiDAR's points that is given, for each frame another."""
MAX_FRACTION = 0.5
"""Of the known pixels that random:N gives: the loss needs the others."""
VALIDATION_SEED = 0


def with_sparse_input(
    images: Tensor, depth_m: Tensor, sparse_input: SparseInput, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return images with sparse depth as fourth channel, and the depth that is not input.

    The input depth is not a target: the network would learn to repeat it, and a sigma of
    nothing, while it is asked for what lies between.

    Args:
        images: (B, 3, h, w) float32 RGB in [0, 1].
        depth_m: (B, 1, h, w) metres, NaN where unknown.
        sparse_input: what is given: of random:N about N pixels, and no more than half of those
            known; of a LiDAR a random fraction. Of one frame in ten nothing.
        generator: source of all randomness, on the CPU.

    Returns:
        (B, 4, h, w), 0 where no depth is given, and (B, 1, h, w), NaN where it is.
    """
    valid = torch.isfinite(depth_m)
    device = depth_m.device
    chance = upload(torch.rand(depth_m.shape, generator=generator), device)
    fraction = torch.empty(len(depth_m)).uniform_(*INPUT_FRACTIONS, generator=generator)
    fraction = upload(fraction, device)
    if sparse_input.pixels:
        count = valid.sum(dim=(1, 2, 3))
        fraction = (sparse_input.pixels / count.clamp_min(1)).clamp_max(MAX_FRACTION)
    is_empty = upload(torch.rand(len(depth_m), generator=generator) < EMPTY_FRACTION, device)
    fraction = torch.where(is_empty, 0.0, fraction)
    input_mask = valid & (chance < fraction[:, None, None, None])
    sparse_m = torch.where(input_mask, depth_m, 0.0)
    return torch.cat([images, sparse_m], dim=1), torch.where(input_mask, torch.nan, depth_m)


def warn_of_sparse_ground_truth(
    depths_m: Sequence[NDArray[np.floating]], sparse_input: SparseInput | None
) -> None:
    """Log a warning where random:N asks for more known pixels than most frames have to spare.

    Args:
        depths_m: of each frame at the network's size, (h, w) metres, NaN where unknown.
        sparse_input: of the network.
    """
    if sparse_input is None or not sparse_input.pixels:
        return
    median_pixels = float(np.median([np.isfinite(depth).sum() for depth in depths_m]))
    if sparse_input.pixels > MAX_FRACTION * median_pixels:
        logger.warning(
            "sparse_input is 'random:%d', but half of the frames have %d pixels of known depth or "
            "fewer at the network's size, of which %d are given: the loss needs the others; "
            "expected fewer, or denser ground truth",
            sparse_input.pixels,
            median_pixels,
            MAX_FRACTION * median_pixels,
        )
