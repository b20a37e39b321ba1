# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sparse depth as a network takes it, and made dense by the means of a pyramid."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from uncertainty_depth.network.encoder import resize_maps


def sparse_channel(image: Tensor) -> Tensor:
    """Return the fourth channel of (B, 3 or 4, h, w), metres; 0 where there is none."""
    return functional.pad(image, (0, 0, 0, 0, 0, 4 - image.shape[1]))[:, 3:]


def log_position(depth_m: Tensor, low: float, high: float) -> Tensor:
    """Return the position of metres in the logarithm of the range, in [0, 1]; 0 for unknown."""
    is_known = depth_m > 0
    metres = torch.where(is_known, depth_m, low).clamp(low, high)
    return torch.log(metres / low) / math.log(high / low) * is_known


def fill(sparse_m: Tensor) -> Tensor:
    """Return dense depth: known pixels as they are, others from the finest scale that knows any.

    Each level of the pyramid halves the size and averages what is known ("pull"); from the
    coarsest down, what a level does not know is interpolated from the next coarser one ("push",
    Gortler et al. 1996, "The lumigraph").

    Args:
        sparse_m: (B, 1, h, w) metres, 0 where unknown.

    Returns:
        (B, 1, h, w) metres; 0 everywhere in an image of which nothing is known.
    """
    valid = (sparse_m > 0).to(sparse_m.dtype)
    levels = [(sparse_m, valid)]
    while max(levels[-1][0].shape[-2:]) > 1:
        levels.append(_halved(*levels[-1]))
    dense, _ = levels.pop()
    for values, weight in reversed(levels):
        dense = torch.where(weight > 0, values, resize_maps(dense, values.shape[-2:]))
    return dense


def _halved(values: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean of the known values of each 2x2 cell, 0 for none, and where there are any.

    Cells at an odd edge reach over it, where nothing is known.
    """
    products = torch.cat([values * valid, valid], dim=1)
    height, width = values.shape[-2:]
    even = functional.pad(products, (0, width % 2, 0, height % 2))  # OpenVINO crashes on ceil_mode
    sums = functional.avg_pool2d(even, 2)
    total, weight = sums.split(1, dim=1)
    mean = torch.where(weight > 0, total / weight.clamp_min(1e-6), 0.0)
    return mean, (weight > 0).to(values.dtype)
