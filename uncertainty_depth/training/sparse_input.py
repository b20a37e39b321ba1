# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Give the network a part of the known depth, and train it on the rest."""

from __future__ import annotations

import torch
from torch import Tensor

from uncertainty_depth.completion.sparse_input import SparseInput

EMPTY_FRACTION = 0.1
"""Of the frames, without any sparse depth: a robot's LiDAR can fail."""
GIVEN_FRACTIONS = (0.1, 0.9)
"""Range of the fraction of a LiDAR's points that is given, for each frame another."""
VALIDATION_SEED = 0


def with_sparse_input(
    images: Tensor, depth_m: Tensor, sparse_input: SparseInput, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return images with sparse depth as their fourth channel, and the depth not given.

    The depth that is given is no target: the network would learn to repeat it, and a sigma of
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
    known = torch.isfinite(depth_m)
    count = known.sum(dim=(1, 2, 3)).cpu()
    chance = torch.rand(depth_m.shape, generator=generator).to(depth_m.device)
    fraction = torch.empty(len(depth_m)).uniform_(*GIVEN_FRACTIONS, generator=generator)
    if sparse_input.pixels:
        fraction = (sparse_input.pixels / count.clamp_min(1)).clamp_max(0.5)
    is_empty = torch.rand(len(depth_m), generator=generator) < EMPTY_FRACTION
    fraction = torch.where(is_empty, 0.0, fraction).to(depth_m.device)
    given = known & (chance < fraction[:, None, None, None])
    sparse_m = torch.where(given, depth_m, 0.0)
    return torch.cat([images, sparse_m], dim=1), torch.where(given, torch.nan, depth_m)
