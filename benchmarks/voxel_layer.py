# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""An emulation of the voxel layer of Nav2's costmap (nav2_costmap_2d 1.3.13): marks and clears.

It follows `VoxelLayer::updateBounds`, `VoxelLayer::raytraceFreespace` and `VoxelGrid` cell by
cell, all rays at once, with `track_unknown_space: true`. A window that rolls, the footprint and
what waits in a buffer are not emulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats

FREE, LETHAL, UNKNOWN = 0, 254, 255
"""Costs of a cell."""
VOXELS = 16
"""Voxels in a column: the bits of Nav2's grid."""
EDGE = 0.5
"""Part of the last voxel that no ray enters: `getSizeInMetersX`, Y and Z."""
CELLS_KEPT = 2
"""Cells at each ray's end that are not cleared."""


@dataclass(frozen=True)
class Layer:
    """Parameters of the layer, with the names and defaults of Nav2's.

    Attributes:
        size: cells along x and y.
        resolution, z_resolution: of a voxel, metres.
        unknown_threshold: voxels of a free column that may be unknown.
        mark_threshold: marked voxels of a column that do not yet make its cell an obstacle.
        min_obstacle_height, max_obstacle_height: of points that mark, metres.
        obstacle_min_range, obstacle_max_range: of points that mark, metres from the sensor.
        raytrace_max_range: up to which a ray clears, metres.
    """

    size: int = 120
    resolution: float = 0.1
    z_resolution: float = 0.1
    unknown_threshold: int = 15
    mark_threshold: int = 0
    min_obstacle_height: float = 0.1
    max_obstacle_height: float = 1.6
    obstacle_min_range: float = 0.2
    obstacle_max_range: float = 5.0
    raytrace_max_range: float = 6.0

    @property
    def voxel(self) -> Floats:
        """Return the size of a voxel, (3,) metres."""
        return np.array([self.resolution, self.resolution, self.z_resolution])


class VoxelLayer:
    """A costmap around one place.

    Attributes:
        cost: (size, size) uint8, `FREE`, `LETHAL` or `UNKNOWN`.
        marked: (size, size, VOXELS), voxels with an obstacle.
        seen: (size, size, VOXELS), voxels that were marked or cleared.
    """

    def __init__(self, layer: Layer, middle: Floats) -> None:
        """Start with nothing known.

        Args:
            layer: the parameters.
            middle: x and y of the map's middle, metres.
        """
        self.layer = layer
        corner = np.floor(middle[:2] / layer.resolution) - layer.size // 2
        self.origin = np.array([*(corner * layer.resolution), 0.0])
        self.cost = np.full((layer.size, layer.size), UNKNOWN, np.uint8)
        self.marked = np.zeros((layer.size, layer.size, VOXELS), bool)
        self.seen = np.zeros_like(self.marked)

    def centres(self) -> Floats:
        """Return the middle of each voxel, (size, size, VOXELS, 3) metres."""
        cells = np.moveaxis(np.indices(self.marked.shape), 0, -1)
        centres: Floats = self.origin + (cells + 0.5) * self.layer.voxel
        return centres

    def mark(self, points: Floats, sensor: Floats) -> None:
        """Mark points, (N, 3) metres, that a sensor at (3,) sees."""
        layer = self.layer
        distance = np.linalg.norm(points - sensor, axis=1)
        used = (distance >= layer.obstacle_min_range) & (distance < layer.obstacle_max_range)
        used &= points[:, 2] >= layer.min_obstacle_height
        used &= points[:, 2] <= layer.max_obstacle_height
        cells, inside = self._cells(points[used])
        x, y, z = np.floor(cells[inside]).astype(np.intp).T
        self.marked[x, y, z] = True
        self.seen[x, y, z] = True
        self.cost[x, y] = np.where(self._is_marked(x, y), LETHAL, self.cost[x, y])

    def clear(self, points: Floats, sensor: Floats) -> None:
        """Clear the rays from a sensor at (3,) to points, (N, 3) metres."""
        start, inside = self._cells(sensor[None])
        if not inside[0]:  # "Sensor origin is out of map bounds"
            return
        ends, inside = self._cells(self._ends(points, sensor))
        voxels = self._traced(start[0], ends[inside])
        self.marked.flat[voxels] = False
        self.seen.flat[voxels] = True
        x, y = np.unravel_index(np.unique(voxels // VOXELS), self.cost.shape)
        unknown = (~self.seen[x, y]).sum(axis=1)
        cost = np.where(unknown <= self.layer.unknown_threshold, FREE, UNKNOWN)
        self.cost[x, y] = np.where(self._is_marked(x, y), self.cost[x, y], cost)

    def _is_marked(self, x: NDArray[np.intp], y: NDArray[np.intp]) -> NDArray[np.bool_]:
        return self.marked[x, y].sum(axis=1) > self.layer.mark_threshold

    def _cells(self, points: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return points in voxels from the origin, and which of them lie in the grid."""
        cells = (points - self.origin) / self.layer.voxel
        return cells, ((cells >= 0) & (cells < self.marked.shape)).all(axis=1)

    def _ends(self, points: Floats, sensor: Floats) -> Floats:
        """Return where rays end: some cells before their points, and at the edges of the map."""
        ray = points - sensor
        distance = np.linalg.norm(ray, axis=1)[:, None]
        kept_m = CELLS_KEPT * self.layer.resolution
        ray = ray * np.clip((distance - kept_m) / np.maximum(distance, 1e-9), 0.0, 1.0)
        low = self.origin
        high = low + (np.array(self.marked.shape) - EDGE) * self.layer.voxel
        reached = sensor + ray
        with np.errstate(divide="ignore", invalid="ignore"):
            to_high = np.where(reached > high, (high - [0, 0, 0.01] - sensor) / ray, 1.0)
            to_low = np.where(reached < low, (low - sensor) / ray, 1.0)
        to_high[:, 2] = np.maximum(to_high[:, 2], 0.0)
        part = np.minimum(to_high, to_low).min(axis=1)
        is_outside = ((reached > high) | (reached < low)).any(axis=1)
        part -= 1e-5 * np.sign(part) * is_outside
        ends: Floats = sensor + ray * part[:, None]
        return ends

    def _traced(self, start: Floats, ends: Floats) -> NDArray[np.intp]:
        """Return the voxels of all rays, flat indices, by Bresenham's lines of `VoxelGrid`."""
        length = np.linalg.norm(ends - start, axis=1)
        max_length = np.ceil(self.layer.raytrace_max_range / self.layer.resolution)
        scale = np.minimum(1.0, max_length / np.maximum(length, 1e-9))
        first = start.astype(np.intp)
        step = ends.astype(np.intp) - first
        size = np.abs(step)
        longest = size.max(axis=1)
        number = (scale * longest).astype(np.intp) + 1
        ray = np.repeat(np.arange(len(ends)), number)
        at = np.arange(len(ray)) - np.repeat(np.cumsum(number) - number, number)
        dominant = np.argmax(size, axis=1)
        voxels = np.zeros_like(ray)
        for axis, stride in enumerate((self.cost.shape[1] * VOXELS, VOXELS, 1)):
            # The error starts at half of the longest step, and 0 on the dominant axis.
            error = np.where(dominant == axis, 0, longest // 2)
            moved = (error[ray] + at * size[ray, axis]) // np.maximum(longest, 1)[ray]
            voxels += stride * (first[axis] + np.sign(step[:, axis])[ray] * moved)
        return voxels
