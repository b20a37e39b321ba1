"""Maps as pictures: colour scales with a fixed range."""

from __future__ import annotations

import cv2
import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

DEPTH_COLORS = "viridis_r"
SIGMA_COLORS = "magma"
MISSING_RGB = (40, 40, 40)
SPARSE = 0.3
MAX_ASPECT = 2.0
"""Height over width of a panel: a map of one column must not make an image of a million rows."""


def colorize(
    values: NDArray[np.floating], maximum: float, colors: str = DEPTH_COLORS
) -> NDArray[np.uint8]:
    """(H, W) values as (H, W, 3) uint8 RGB on the scale 0 ... `maximum`; NaN is dark grey, +inf the far end."""
    table = (colormaps[colors](np.arange(256))[:, :3] * 255).round().astype(np.uint8)
    known = np.isfinite(values) | np.isposinf(values)
    levels = np.clip(np.where(known, values, 0.0) * (255.0 / maximum), 0.0, 255.0).astype(np.uint8)
    return np.where(known[..., None], table[levels], np.array(MISSING_RGB, np.uint8))


def thicken(values: NDArray[np.floating], size: int = 3) -> NDArray[np.floating]:
    """The map with the known pixels of a sparse one `size` pixels wide, so that LiDAR points can be seen.

    Known pixels keep their own value; where points compete for an unknown one, the smallest wins.
    A map that is known in more than `SPARSE` of its pixels is returned as it is.
    """
    known = np.isfinite(values)
    if known.mean() > SPARSE:
        return values
    grown = cv2.erode(
        np.where(known, values, np.inf).astype(np.float32),
        np.ones((size, size), np.uint8),
        borderType=cv2.BORDER_CONSTANT,
        borderValue=float("inf"),
    )
    return np.where(known, values, np.where(np.isfinite(grown), grown, np.nan))


def panel_aspect(shape: tuple[int, ...]) -> float:
    """Height over width of a panel that shows a map of this shape, (H, W, ...), within limits."""
    return min(max(shape[0] / shape[1], 1 / MAX_ASPECT**2), MAX_ASPECT)
