# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth maps by sigma: where depth is trusted, and between which bounds the true depth lies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.gating.config import GatingConfig


def confident_pixels(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], config: GatingConfig
) -> NDArray[np.bool_]:
    """Return where sigma is finite and within both limits, (H, W).

    Args:
        depth_m: (H, W) metres, NaN where unknown.
        sigma_m: (H, W) metres, NaN where unknown.
        config: the limits.
    """
    limit = np.float32(config.max_sigma or np.inf)
    if config.max_relative_sigma:
        limits = np.minimum(depth_m * np.float32(config.max_relative_sigma), limit)
    else:
        limits = np.where(np.isnan(depth_m), np.float32(np.nan), limit)
    return sigma_m <= limits  # false where either is NaN


def lower_bound(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], sigmas: float
) -> NDArray[np.float32]:
    """Return `depth - sigmas sigma`, at least 0, (H, W) metres: the camera sees nothing behind it.

    Args:
        depth_m: (H, W) metres, NaN where unknown.
        sigma_m: (H, W) metres.
        sigmas: how many.
    """
    return np.maximum(depth_m - np.float32(sigmas) * sigma_m, np.float32(0))  # NaN stays


def upper_bound(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], sigmas: float
) -> NDArray[np.float32]:
    """Return `depth + sigmas sigma`, (H, W) metres; arguments as for `lower_bound`."""
    return depth_m + np.float32(sigmas) * sigma_m
