# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Maps as colour images, on scales with a fixed range."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

DEPTH_COLORS = "viridis_r"
SIGMA_COLORS = "magma"
MISSING_RGB = (40, 40, 40)
MISSING_COLOR = "#282828"
"""The same for matplotlib."""
SPARSE = 0.3
MAX_ASPECT = 2.0
"""Max height over width of a panel: bounds the size of a plot of a map with few columns."""


def colorize(
    values: NDArray[np.floating], maximum: float, colors: str = DEPTH_COLORS
) -> NDArray[np.uint8]:
    """Return (H, W) values as (H, W, 3) uint8 RGB on the scale 0 ... `maximum`.

    NaN is dark grey, +inf has the color of `maximum`.
    """
    valid = np.isfinite(values) | np.isposinf(values)
    scaled = np.where(valid, values, 0.0) * (255.0 / maximum)
    levels = np.clip(scaled, 0.0, 255.0).astype(np.uint8)
    image: NDArray[np.uint8] = _table(colors).take(levels, axis=0)
    image[~valid] = MISSING_RGB
    return image


@cache
def _table(colors: str) -> NDArray[np.uint8]:
    """Return the RGB of 256 levels, (256, 3)."""
    rgb = colormaps[colors](np.arange(256))[:, :3]
    return (rgb * 255).round().astype(np.uint8)


def thicken(values: NDArray[np.floating], size: int = 3) -> NDArray[np.floating]:
    """Return a sparse map with each valid pixel enlarged to `size` x `size` pixels.

    Known pixels keep their value; an unknown one takes the smallest value around it. A map with
    more than the fraction `SPARSE` of its pixels known is returned unchanged.
    """
    valid = np.isfinite(values)
    if valid.mean() > SPARSE:
        return values
    square = np.ones((size, size), bool)
    return np.where(valid, values, stamped(values, square).astype(values.dtype))


def stamped(sparse: NDArray[np.floating], footprint: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return (H, W) float32 with a footprint around each known value, the smallest on top.

    Args:
        sparse: (H, W), NaN for unknown.
        footprint: (h, w) with odd sides, True for the pixels that take the value at its centre.
    """
    height, width = sparse.shape
    rows, columns = np.nonzero(np.isfinite(sparse))
    values = sparse[rows, columns].astype(np.float32)
    grown = np.full(sparse.shape, np.inf, np.float32)
    for down, right in np.argwhere(footprint) - np.array(footprint.shape) // 2:
        row, column = rows + down, columns + right
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        np.minimum.at(grown, (row[inside], column[inside]), values[inside])
    grown[np.isinf(grown)] = np.nan
    return grown


def panel_aspect(shape: tuple[int, ...]) -> float:
    """Return height over width of a panel for a map of this shape, (H, W, ...), clipped."""
    return min(max(shape[0] / shape[1], 1 / MAX_ASPECT**2), MAX_ASPECT)
