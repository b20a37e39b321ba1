# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What does a costmap make of depth and sigma: what is cleared, marked, missed?

python -m benchmarks.costmap SOURCE ... [--model indoor] [--every 5]

Each frame has a map of its own, in an emulation of Nav2's voxel layer (`voxel_layer.py`), by its
true pose. A cell is an obstacle if the exact depth marks it.

- *erased*: obstacle cells, marked by the exact depth, that clearing takes away.
- *cleared*: of phantoms, one in each cell that is seen to be free, at the camera's height.
- *behind*: clearing rays that end behind the surface.
- *nearest*: a ray ends at the nearest bound that it passes within `clearing_margin`.
- *missed*: obstacle cells without a mark in them or in a neighbour; *false*: marked cells, seen to
  be free, without an obstacle in them or in a neighbour; *pixels*: that mark.
- *missed, free*: obstacle cells that are missed and end up free; *free*: of the cells that the
  exact depth clears, those that end up free.

Intervals (95 %) are of a bootstrap over worlds, or pieces of a drive.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.moments import PART, STRIDE, Moment, moments, stand_upright
from benchmarks.ray_ends import CLEARED, MARKED, SHIPPED, Ends
from benchmarks.voxel_layer import EDGE, FREE, LETHAL, VOXELS, Layer, VoxelLayer
from experiments.tables import markdown
from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.model_location import NAMES
from uncertainty_depth.depth.predictor import Predictor

THRESHOLDS = (15, 14, 12, 10, 8, 5)
"""Unknown voxels that a free column may have."""
RAYS, FRAMES = 0.01, 0.9
"""Part of a frame's rays that may end behind the surface, in which part of the frames."""
REPLICATES = 1000
Counted = Callable[["Scene"], Floats]


# What a costmap makes of it


class Scene:
    """One frame's obstacles and phantoms."""

    def __init__(self, moment: Moment, layer: Layer) -> None:
        self.moment, self.layer = moment, layer
        self.sensor = moment.pose[:3, 3]
        seen = self.costmap()
        seen.clear(moment.points(moment.truth_m), self.sensor)
        truth = self.costmap()
        truth.mark(moment.points(moment.truth_m, 1), self.sensor)
        self.marked = truth.marked
        self.is_obstacle = truth.cost == LETHAL
        self.is_free = (seen.cost == FREE) & ~self.is_obstacle
        level = int(self.sensor[2] / layer.z_resolution)
        centres = truth.centres()[:, :, level].reshape(-1, 3)
        pixels, index, depth_m = moment.seen(centres)
        before_surface = depth_m < moment.truth_m.ravel()[pixels] - layer.resolution
        is_phantom = np.zeros(len(centres), bool)
        is_phantom[index[before_surface]] = True
        is_phantom &= np.linalg.norm(centres - self.sensor, axis=1) < layer.obstacle_max_range
        self.phantoms = np.zeros_like(self.marked)
        self.phantoms[:, :, level] = is_phantom.reshape(truth.cost.shape) & ~self.is_obstacle

    def costmap(self, **parameters: int) -> VoxelLayer:
        """Return an empty one."""
        return VoxelLayer(replace(self.layer, **parameters), self.sensor)

    def cleared(self, ends: Ends) -> Floats:
        """Return (erased, obstacles, cleared, phantoms, behind, rays)."""
        ends_m = ends(self.moment)
        costmap = self.costmap()
        costmap.clear(self.moment.points(ends_m), self.sensor)
        is_left = (self.marked & ~costmap.seen).any(axis=2)
        truth_m, ends_m = (each[::STRIDE, ::STRIDE] for each in (self.moment.truth_m, ends_m))
        known = np.isfinite(truth_m) & np.isfinite(ends_m)
        return _counts(
            (self.is_obstacle & ~is_left, self.is_obstacle),
            (self.phantoms & costmap.seen, self.phantoms),
            (known & (ends_m > truth_m), known),
        )

    def marks(self, ends: Ends) -> Floats:
        """Return (missed, obstacles, false, marked, pixels that mark, pixels)."""
        costmap = self.costmap()
        ends_m = ends(self.moment)
        costmap.mark(self.moment.points(ends_m), self.sensor)
        marked = costmap.cost == LETHAL
        is_known = self.is_free | self.is_obstacle
        return _counts(
            (self.is_obstacle & ~_grown(marked), self.is_obstacle),
            (marked & self.is_free & ~_grown(self.is_obstacle), marked & is_known),
            (np.isfinite(ends_m), np.isfinite(self.moment.predictions[""].depth_m)),
        )

    def freed(self, ends: Ends, threshold: int) -> Floats:
        """Return (missed and free, obstacles, free, truly free) with an `unknown_threshold`."""
        costmap = self.costmap(unknown_threshold=threshold)
        costmap.clear(self.moment.points(SHIPPED(self.moment)), self.sensor)
        costmap.mark(self.moment.points(ends(self.moment)), self.sensor)
        is_missed = self.is_obstacle & ~_grown(costmap.cost == LETHAL)
        free = costmap.cost == FREE
        return _counts((is_missed & free, self.is_obstacle), (self.is_free & free, self.is_free))


def _counts(*pairs: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> Floats:
    return np.array([cells.sum() for pair in pairs for cells in pair], float)


def _grown(cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return cells and their neighbours."""
    return cv2.dilate(cells.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(bool)


# Tables


def by_frame(found: list[Moment]) -> tuple[float, float]:
    """Return sigmas, and the part of the depth, that frames need in general.

    With them at most `RAYS` of a frame's rays end behind the surface, in `FRAMES` of the frames
    (split conformal: the next larger order statistic).
    """
    needed = []
    for moment in found:
        prediction, truth_m = moment.predictions[""], moment.truth_m
        excess = (prediction.depth_m - truth_m) / prediction.sigma_m, prediction.depth_m / truth_m
        needed.append([np.nanquantile(each[::STRIDE, ::STRIDE], 1 - RAYS) for each in excess])
    rank = int(np.ceil((len(needed) + 1) * FRAMES)) - 1
    number, ratio = np.sort(needed, axis=0)[min(rank, len(needed) - 1)]
    return float(number), float(1 / ratio)


def percentages(counts: list[Floats]) -> list[str]:
    """Return the ratio of each pair of counts over all frames, with its interval."""
    parts = np.array(
        [np.sum(counts[at : at + PART], axis=0) for at in range(0, len(counts), PART)]
    )
    drawn = np.random.default_rng(0).multinomial(
        len(parts), np.full(len(parts), 1 / len(parts)), REPLICATES
    )
    cells = []
    for part, whole in parts.T.reshape(-1, 2, len(parts)):
        low, high = np.quantile(100 * (drawn @ part) / (drawn @ whole), (0.025, 0.975))
        cells.append(f"{100 * part.sum() / whole.sum():.1f} ({low:.1f} to {high:.1f})")
    return cells


def show(names: Sequence[str], scenes: list[Scene], rows: Mapping[str, Counted]) -> None:
    """Print a table of what is counted in each scene, in each row's way."""
    cells = [[name, *percentages(list(map(count, scenes)))] for name, count in rows.items()]
    print(markdown(names, cells))


def main() -> None:
    """Print the tables of all sources together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--model", choices=NAMES, default="indoor")
    parser.add_argument("--every", type=int, default=5, help="score every so many frames")
    arguments = parser.parse_args()
    predictor = Predictor(arguments.model, PredictorConfig(device="cpu"))
    found = [
        one for text in arguments.sources for one in moments(text, arguments.every, predictor)
    ]
    if not arguments.sources[0].startswith("synthetic:"):
        stand_upright(found)
    highest_m = max(moment.pose[2, 3] for moment in found)
    z_resolution = max(0.1, np.ceil(100 * (highest_m + 0.02) / (VOXELS - EDGE)) / 100)
    layer = Layer(z_resolution=z_resolution, max_obstacle_height=VOXELS * z_resolution)
    scenes = [Scene(moment, layer) for moment in found]
    obstacles = sum(scene.is_obstacle.sum() for scene in scenes)
    print(f"{len(found)} frames, camera up to {highest_m:.2f} m, z_resolution {z_resolution:.2f},")
    print(f"{obstacles} cells with an obstacle;")
    print("by frame {:.2f} sigmas, or {:.2f} of the depth\n".format(*by_frame(found)))
    cleared = {name: partial(Scene.cleared, ends=ends) for name, ends in CLEARED.items()}
    show(("a ray ends at", "erased", "cleared", "behind"), scenes, cleared)
    marked = {name: partial(Scene.marks, ends=ends) for name, ends in MARKED.items()}
    show(("marked with", "missed", "false", "pixels"), scenes, marked)
    freed = {
        f"{name}, {threshold}": partial(Scene.freed, ends=MARKED[name], threshold=threshold)
        for name in ("`points`", "`points/confident`")
        for threshold in THRESHOLDS
    }
    show(("marked with, `unknown_threshold`", "missed, free", "free"), scenes, freed)


if __name__ == "__main__":
    main()
