# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A 2.5-D height map and a truncated signed distance grid, fused with a weight per pixel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.robot_worlds import View

Floats = NDArray[np.float64]
ERROR_FLOOR_M = 0.02
"""Added to the true error that the oracle weighs by: no pixel decides a cell alone."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """Depth of one frame, and the weight of each pixel in one way to fuse.

    Attributes:
        view: the frame, for its rays and pose.
        depth_m: (P,) metres along the optical axis.
        weight: (P,) not negative; a pixel of weight 0 is not used.
    """

    view: View
    depth_m: Floats
    weight: Floats


def weights(view: View, fraction: float, rng: np.random.Generator) -> Mapping[str, Floats]:
    """Return the weight of each pixel, (P,), of each way to fuse."""
    shuffled_m = rng.permutation(view.sigma_m)
    error_m = np.abs(view.depth_m - view.truth_m)
    return {
        "unweighted": np.ones_like(view.depth_m),
        "1 / z^2": view.depth_m**-2,
        "1 / sigma^2": view.sigma_m**-2,
        "1 / sigma^2, sigma shuffled": shuffled_m**-2,
        "gated by sigma": _keep_smallest(view.sigma_m, fraction),
        "gated by range": _keep_smallest(view.depth_m, fraction),
        "oracle: 1 / error^2": (error_m + ERROR_FLOOR_M) ** -2,
    }


def _keep_smallest(values: Floats, fraction: float) -> Floats:
    """Return 1 for this fraction of the smallest known values, 0 for the others."""
    return (values <= np.nanquantile(values, fraction)).astype(np.float64)


@dataclass(frozen=True)
class Area:
    """The part of the world that is mapped.

    Attributes:
        low: (x, y) of the corner, metres.
        shape: cells along x and y.
        cell_m: size of a cell.
        height_m: points higher than this are not mapped.
        floor_m: height of the lowest voxels.
    """

    low: tuple[float, float]
    shape: tuple[int, int]
    cell_m: float
    height_m: float
    floor_m: float = 0.0

    @classmethod
    def of(
        cls, extent: NDArray[np.floating], cell_m: float, height_m: float | None = None
    ) -> Area:
        """Return the area of a scene's extent, (2, 3) min and max corner, metres.

        Without `height_m` the extent's own heights are mapped, from its lowest one on.
        """
        size = (extent[1, :2] - extent[0, :2]) / cell_m
        shape = (int(np.ceil(size[0])), int(np.ceil(size[1])))
        low = (float(extent[0, 0]), float(extent[0, 1]))
        if height_m is None:
            return cls(low, shape, cell_m, float(extent[1, 2]), float(extent[0, 2]))
        return cls(low, shape, cell_m, height_m)


class HeightMap:
    """The height of what stands in each cell: the weighted mean of one height per frame.

    A frame's height of a cell is the `QUANTILE` of its points' heights, and its weight their mean
    weight: a scale error is common to all pixels of a frame, so a cell is weighed once per frame.
    With `per_pixel` it is weighed once per pixel instead.
    """

    QUANTILE = 0.9
    FLOOR_M = -0.5  # what is lower is a gross error

    def __init__(self, area: Area, per_pixel: bool = False) -> None:
        self._area = area
        self._per_pixel = per_pixel
        self._sum = np.zeros(area.shape[0] * area.shape[1])
        self._weight = np.zeros_like(self._sum)

    def add(self, measurement: Measurement) -> None:
        """Fuse a frame."""
        area = self._area
        is_weighted = measurement.weight > 0
        points = measurement.view.world_points(measurement.depth_m)[is_weighted]
        weights = measurement.weight[is_weighted]
        columns = np.floor((points[:, :2] - area.low) / area.cell_m).astype(np.intp)
        inside = ((columns >= 0) & (columns < area.shape)).all(axis=1)
        inside &= (points[:, 2] < area.height_m) & (points[:, 2] > self.FLOOR_M)
        if not inside.any():
            return
        cells = columns[inside, 0] * area.shape[1] + columns[inside, 1]
        heights = points[inside, 2]
        order = np.lexsort((heights, cells))
        number = np.bincount(cells, minlength=self._sum.size)
        occupied = np.flatnonzero(number)
        first = np.cumsum(number[occupied]) - number[occupied]
        upper = first + np.floor(self.QUANTILE * (number[occupied] - 1)).astype(np.intp)
        total = np.bincount(cells, weights[inside], minlength=self._sum.size)[occupied].astype(
            float
        )
        weight = total if self._per_pixel else total / number[occupied]
        self._sum[occupied] += weight * heights[order][upper]
        self._weight[occupied] += weight

    def values(self) -> Floats:
        """Return the height of each cell, metres, NaN where nothing was seen, (cells,)."""
        return _ratio(self._sum, self._weight)


class DistanceGrid:
    """Truncated signed distance along the optical axis in each voxel (Curless and Levoy 1996).

    A voxel takes one pixel of each frame, so it is weighed once per frame by construction.
    """

    TRUNCATION_M = 0.3

    def __init__(self, area: Area) -> None:
        layers = int(np.ceil((area.height_m - area.floor_m) / area.cell_m))
        grid = np.indices((*area.shape, layers)).reshape(3, -1).T
        corner = np.array([*area.low, area.floor_m])
        self._centres = (grid + 0.5) * area.cell_m + corner
        self._sum = np.zeros(len(self._centres))
        self._weight = np.zeros(len(self._centres))

    def add(self, measurement: Measurement) -> None:
        """Fuse a frame."""
        pose = measurement.view.camera_to_world
        points = (self._centres - pose[:3, 3]) @ pose[:3, :3]
        in_front = np.flatnonzero(points[:, 2] > 0.1)
        pixels, in_image = measurement.view.pixels(points[in_front])
        voxels = in_front[in_image]
        distance = measurement.depth_m[pixels] - points[voxels, 2]
        valid = (distance > -self.TRUNCATION_M) & np.isfinite(distance)
        voxels = voxels[valid]
        weight = measurement.weight[pixels][valid]
        self._sum[voxels] += weight * np.minimum(distance[valid], self.TRUNCATION_M)
        self._weight[voxels] += weight

    def values(self) -> Floats:
        """Return the signed distance of each voxel, metres, > 0 in the free, NaN if unseen."""
        return _ratio(self._sum, self._weight)


def _ratio(total: Floats, weight: Floats) -> Floats:
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)
