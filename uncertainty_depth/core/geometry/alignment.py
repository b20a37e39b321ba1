# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How well the edges of a depth image lie on the camera image's edges.

A correctly registered LiDAR sees its depth jump where the camera sees an outline. Levinson and
Thrun (Automatic Online Calibration of Cameras and Lasers, RSS 2013) sum the image's edge strength
over the points at depth edges, and compare that sum with the sums at poses around the given one:
only the right pose is a sharp maximum. This module does the same, with three changes. The image's
edges are divided by their local mean, so that a rich texture gives no advantage. Depth edges are
found in the depth image's inverse depth, in which a slanted plane has no edges. The poses are
shifts and rotations in the image plane, all shifts at once by a correlation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

WORKING_WIDTH = 480  # pixels; larger images are reduced to it
MAX_SHIFT = 32  # pixels of the reduced image
ROTATIONS = (0.0, -2.0, -1.0, 1.0, 2.0)  # degrees; the first is the pose as given
MIN_EDGE_POINTS = 30
NEIGHBOURS = 6  # depths in the window round a point
DENSITY_WINDOW = 31  # pixels
RING_GAP = 9  # pixels between the points of a ring that are taken as connected
MIN_EDGE = 0.05  # of the depth: smaller jumps are noise
MAX_EDGE = 0.3  # larger jumps say no more
BLUR = 1.5  # standard deviation in pixels: how far an edge may be off
LOCALITY = 30.0  # standard deviation in pixels of the local mean of edge strength


class Edges(NamedTuple):
    """Foreground points at depth edges, (N,): pixels, and relative jumps of inverse depth."""

    columns: NDArray[np.intp]
    rows: NDArray[np.intp]
    strengths: NDArray[np.float32]


def alignment(
    edge_strength: NDArray[np.float32], edges: Edges, rotations: tuple[float, ...]
) -> NDArray[np.float32] | None:
    """Return the image's edge strength at the depth edges, by the depth's rotation and shift.

    Returns:
        (rotations, 2 MAX_SHIFT + 1, 2 MAX_SHIFT + 1): the image's weighted mean edge strength, by
        row and column shift in pixels of the reduced image; [:, MAX_SHIFT, MAX_SHIFT] is without
        shift. None if fewer than `MIN_EDGE_POINTS` points are at a depth edge.
    """
    if len(edges.strengths) < MIN_EDGE_POINTS:
        return None
    from scipy import fft  # loads slowly

    padded = np.pad(edge_strength, MAX_SHIFT)
    size = [fft.next_fast_len(length, real=True) for length in padded.shape]
    spectrum = fft.rfft2(padded, size)
    surfaces = []
    for rotation in rotations:
        points = _rotated(edges, rotation, edge_strength.shape)
        correlation = fft.irfft2(spectrum * np.conj(fft.rfft2(points, size)), size)
        surfaces.append(correlation[: 2 * MAX_SHIFT + 1, : 2 * MAX_SHIFT + 1])
    return np.stack(surfaces) / edges.strengths.sum()


def reduction(width: int) -> float:
    """Return the factor by which an image of this width is reduced."""
    return max(1.0, width / WORKING_WIDTH)


def reduced_depth(depth_m: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the nearest depth in each pixel of the reduced image, (h, w) float32, or NaN."""
    height, width = _reduced_size(depth_m.shape)
    rows, columns = np.nonzero(np.isfinite(depth_m) & (depth_m > 0))
    nearest = np.full((height, width), np.inf, np.float32)
    pixels = (rows * height // depth_m.shape[0], columns * width // depth_m.shape[1])
    np.minimum.at(nearest, pixels, depth_m[rows, columns].astype(np.float32))
    nearest[np.isinf(nearest)] = np.nan
    return nearest


def image_edges(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return an (H, W, 3) uint8 image's edge strength, reduced: (h, w), mean 0, deviation 1."""
    size = _reduced_size(image.shape[:2])[::-1]
    image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    smooth = _blurred(grey, 1.0)
    across = cv2.Sobel(smooth, cv2.CV_32F, 1, 0)
    down = cv2.Sobel(smooth, cv2.CV_32F, 0, 1)
    gradient = np.hypot(across, down)
    floor = 0.2 * gradient.mean() + 1e-3  # a featureless region has no edges, only noise
    relative = np.minimum(gradient / (_blurred(gradient, LOCALITY) + floor), 3.0)
    edge_strength = _blurred(relative, BLUR) - _blurred(relative, LOCALITY)
    return edge_strength / (edge_strength.std() + 1e-6)


def depth_edges(depth_m: NDArray[np.floating]) -> Edges:
    """Return the foreground points at depth discontinuities, in the reduced depth image.

    Compare a point's inverse depth 1/z with the mean of the largest and smallest in a window that
    holds `NEIGHBOURS` depths on average. Both are equal on a plane; the point's is larger at an
    outline. The depth, (H, W) metres with NaN for unknown, may be sparse.
    """
    depth_m = reduced_depth(depth_m)
    valid = np.isfinite(depth_m)
    if not valid.any():
        rows, columns = np.nonzero(valid)
        return Edges(columns, rows, np.empty(0, np.float32))
    window = int(np.clip(math.sqrt(NEIGHBOURS / _density(valid, valid)), 3, 41)) | 1
    neighbourhood = np.ones((window, window), np.uint8)
    inverse = np.zeros_like(depth_m)
    inverse[valid] = 1 / depth_m[valid]
    max_inverse = cv2.dilate(inverse, neighbourhood)
    min_inverse = cv2.erode(np.where(valid, inverse, np.float32(np.inf)), neighbourhood)
    jump = np.zeros_like(depth_m)
    jump[valid] = 2 - depth_m[valid] * (max_inverse[valid] + min_inverse[valid])
    rows, columns = np.nonzero(jump > MIN_EDGE)
    return Edges(columns, rows, np.minimum(jump[rows, columns], MAX_EDGE))


def row_density(depth_m: NDArray[np.floating]) -> float:
    """Return the fraction of the reduced image's rows with depth that a LiDAR's ring crosses.

    Its inverse is the rings' spacing: widely spaced rings look alike when shifted by it.
    """
    valid = np.isfinite(reduced_depth(depth_m))
    if not valid.any():
        return 0.0
    rings = cv2.dilate(valid.astype(np.uint8), np.ones((1, RING_GAP), np.uint8))
    return _density(rings, valid)


def _density(mask: NDArray[Any], valid: NDArray[np.bool_]) -> float:
    """Return the median over the valid pixels of the fraction of `mask` around them."""
    size = (DENSITY_WINDOW, DENSITY_WINDOW)
    return float(np.median(cv2.boxFilter(mask.astype(np.float32), -1, size)[valid]))


def _rotated(edges: Edges, degrees: float, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the edge strengths at their points after a rotation, (H, W)."""
    height, width = shape
    angle = math.radians(degrees)
    right = edges.columns - (width - 1) / 2
    down = edges.rows - (height - 1) / 2
    columns = np.rint(math.cos(angle) * right - math.sin(angle) * down + (width - 1) / 2)
    rows = np.rint(math.sin(angle) * right + math.cos(angle) * down + (height - 1) / 2)
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    points = np.zeros(shape, np.float32)
    pixels = (rows[inside].astype(np.intp), columns[inside].astype(np.intp))
    np.add.at(points, pixels, edges.strengths[inside])
    return points


def _reduced_size(shape: tuple[int, ...]) -> tuple[int, int]:
    factor = reduction(shape[1])
    return round(shape[0] / factor), round(shape[1] / factor)


def _blurred(values: NDArray[np.float32], deviation: float) -> NDArray[np.float32]:
    return cv2.GaussianBlur(values, (0, 0), deviation)
