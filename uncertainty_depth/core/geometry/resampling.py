# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Resample depth maps to another size without blending depths.

A mean across an edge is a surface that does not exist.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def resample_depth(depth_m: NDArray[np.floating], width: int, height: int) -> NDArray[np.float32]:
    """Return (height, width) float32 metres: for each cell the known value nearest to its centre.

    Candidates are the pixel that holds the cell's centre and the pixels centred in the cell. For a
    dense map this is nearest-neighbour sampling; for sparse LiDAR, no cell that holds a point
    stays empty. When enlarging, several cells take the same pixel. What is not positive and finite
    is unknown; NaN if no candidate is known.
    """
    depths_m = np.where(np.isfinite(depth_m) & (depth_m > 0), depth_m, np.nan)
    result = depths_m[
        np.ix_(
            pixel_at_centre(height, depths_m.shape[0]), pixel_at_centre(width, depths_m.shape[1])
        )
    ].astype(np.float32)
    empty = np.isnan(result)
    if empty.any():
        result[empty] = _nearest_in_cell(depths_m, width, height)[empty]
    return result


def pixel_at_centre(cells: int, pixels: int) -> NDArray[np.intp]:
    """Return the index of the pixel that contains each cell's centre."""
    return ((2 * np.arange(cells) + 1) * pixels) // (2 * cells)


def _nearest_in_cell(
    depths_m: NDArray[np.floating], width: int, height: int
) -> NDArray[np.float32]:
    """Return each cell's known pixel nearest to its centre, the upper left of equally near."""
    rows, columns = np.nonzero(~np.isnan(depths_m))
    cell_row, row_offset = _cell_of(rows, depths_m.shape[0], height)
    cell_column, column_offset = _cell_of(columns, depths_m.shape[1], width)
    farthest_first = np.argsort(row_offset**2 + column_offset**2, kind="stable")[::-1]
    result = np.full((height, width), np.nan, np.float32)
    result[cell_row[farthest_first], cell_column[farthest_first]] = depths_m[
        rows[farthest_first], columns[farthest_first]
    ]  # the last one stays
    return result


def _cell_of(
    index: NDArray[np.intp], pixels: int, cells: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return each pixel's cell, and its distance from the cell's centre in pixels."""
    cell = ((2 * index + 1) * cells) // (2 * pixels)
    return cell, (index + 0.5) - (cell + 0.5) * pixels / cells
