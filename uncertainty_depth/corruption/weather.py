# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Corruptions of the air: fog by depth, and rain.

Images are (H, W, 3) float32 RGB in [0, 1]; severities 0 to 4 as an index.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
FOG = np.array([0.78, 0.79, 0.8], np.float32)


def fog(image: Floats, index: int, depth_m: NDArray[np.floating] | None) -> Floats:
    """Return the image in fog that leaves 78 to 14 % of the light from the median depth.

    Koschmieder's law: light falls off exponentially with the distance, and the air's own takes its
    place. The fog's density follows the frame's median depth, so that a severity means the same
    in a room and in a street.

    Args:
        image: without fog.
        index: of the severity.
        depth_m: (H, W), metres, NaN where unknown; pixels without depth take the nearest known
            one. None, or nothing known: a gradient, near below and far above.
    """
    optical_depth = (0.25, 0.5, 0.9, 1.4, 2.0)[index]
    relative = _relative_depth(image.shape[:2], depth_m)
    transmission = np.exp(np.float32(-optical_depth) * relative)[..., None]
    return image * transmission + FOG * (1 - transmission)


def _relative_depth(shape: tuple[int, ...], depth_m: NDArray[np.floating] | None) -> Floats:
    """Return depth over its median, (H, W)."""
    if depth_m is None or not np.isfinite(depth_m).any():
        rows = np.linspace(1.7, 0.3, shape[0], dtype=np.float32)
        return np.repeat(rows[:, None], shape[1], axis=1)
    dense = _dense(depth_m)
    return dense / np.median(dense)


def _dense(depth_m: NDArray[np.floating]) -> Floats:
    """Return the depth map with the nearest known value where none is known."""
    valid = np.isfinite(depth_m)
    depth = np.where(valid, depth_m, 0).astype(np.float32)
    if valid.all():
        return depth
    _, labels = cv2.distanceTransformWithLabels(
        (~valid).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    values = np.zeros(labels.max() + 1, np.float32)
    values[labels[valid]] = depth[valid]
    filled: Floats = values[labels]
    return cv2.GaussianBlur(filled, (0, 0), 0.01 * depth.shape[1]).astype(np.float32)


def rain(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image behind bright, slanted streaks and the haze of the drops too far to see."""
    drops = (120, 250, 450, 750, 1200)[index]
    haze = np.float32((0.08, 0.14, 0.2, 0.28, 0.36)[index])
    height, width = image.shape[:2]
    slant = rng.uniform(-0.3, 0.3)
    streaks = np.zeros((height, width), np.float32)
    for _ in range(drops):
        near = rng.uniform(0.3, 1.0)
        x = rng.uniform(0, width)
        y = rng.uniform(-0.1, 1.0) * height
        length = 0.12 * near * height
        end = (round(x + slant * length), round(y + length))
        thickness = max(1, round(0.004 * near * width))
        cv2.line(streaks, (round(x), round(y)), end, 0.6 * near, thickness, cv2.LINE_AA)
    streaks = cv2.GaussianBlur(streaks, (0, 0), max(0.0012 * width, 0.3))[..., None]
    air = np.float32(0.55)
    dim = image * (1 - haze) + air * haze
    return dim * (1 - streaks) + np.float32(0.9) * streaks
