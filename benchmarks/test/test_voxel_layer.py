# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The emulation of Nav2's voxel layer against the steps of its C++ code, one ray at a time."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks.voxel_layer import FREE, LETHAL, UNKNOWN, VOXELS, Layer, VoxelLayer

VOXEL_LAYER = Path(__file__).parents[2] / "config" / "consumers" / "nav2_voxel_layer.yaml"

AHEAD = np.array([[2.05, 0.05, 0.85]])
SENSOR = np.array([0.05, 0.05, 0.85])


def traced(start, end, max_length):
    """Voxels of `VoxelGrid::raytraceLine` and `bresenham3D`, with their running errors."""
    at = [int(value) for value in start]
    step = [int(last) - first for last, first in zip(end, at, strict=True)]
    size = [abs(value) for value in step]
    dominant = 0 if size[0] >= max(size[1:]) else 1 if size[1] >= size[2] else 2
    others = [axis for axis in range(3) if axis != dominant]
    errors = dict.fromkeys(others, size[dominant] // 2)
    length = math.dist(start, end)
    scale = min(1.0, max_length / length) if length else 1.0
    visited = [tuple(at)]
    for _ in range(int(scale * size[dominant])):
        at[dominant] += 1 if step[dominant] > 0 else -1
        for axis in others:
            errors[axis] += size[axis]
            if errors[axis] >= size[dominant]:
                at[axis] += 1 if step[axis] > 0 else -1
                errors[axis] -= size[dominant]
        visited.append(tuple(at))
    return visited


@pytest.mark.parametrize("seed", range(20))
def test_rays_visit_the_voxels_of_nav2s_loop(seed):
    """In a map around them, so that no ray is cut at its edges."""
    random = np.random.default_rng(seed)
    layer = Layer(size=100, raytrace_max_range=3.0)
    sensor = np.array([*random.uniform(-0.5, 0.5, 2), random.uniform(0.2, 1.4)])
    points = sensor + random.uniform(-1, 1, (20, 3)) * [4.0, 4.0, 0.14]
    costmap = VoxelLayer(layer, np.zeros(3))
    costmap.clear(points, sensor)
    expected = set()
    for point in points:
        distance = math.dist(point, sensor)
        kept = max((distance - 2 * layer.resolution) / distance, 0.0)
        end = sensor + kept * (point - sensor)
        cells = [(place - costmap.origin) / layer.voxel for place in (sensor, end)]
        expected.update(traced(*cells, max_length=30))
    assert set(map(tuple, np.argwhere(costmap.seen))) == expected


def test_a_marked_cell_is_an_obstacle_until_a_ray_passes_through_its_voxel():
    costmap = VoxelLayer(Layer(), np.zeros(3))
    costmap.mark(AHEAD, SENSOR)
    cell = tuple(np.argwhere(costmap.cost == LETHAL)[0])
    costmap.clear(AHEAD + np.array([0.1, 0, 0]), SENSOR)
    assert costmap.cost[cell] == LETHAL, "the last two cells of a ray are kept"
    costmap.clear(AHEAD + np.array([0.4, 0, 0.4]), SENSOR)
    assert costmap.cost[cell] == LETHAL, "the ray passes above"
    costmap.clear(AHEAD + np.array([0.4, 0, 0]), SENSOR)
    assert costmap.cost[cell] == FREE


@pytest.mark.parametrize(("unknown_threshold", "expected"), [(15, FREE), (14, UNKNOWN)])
def test_a_column_is_free_if_few_enough_of_its_voxels_are_unknown(unknown_threshold, expected):
    costmap = VoxelLayer(Layer(unknown_threshold=unknown_threshold), np.zeros(3))
    costmap.clear(AHEAD, SENSOR)
    assert set(costmap.cost[costmap.seen.any(axis=2)]) == {expected}


@pytest.mark.parametrize(("height", "clears"), [(1.5, True), (1.61, False)])
def test_a_sensor_above_the_grid_clears_nothing(height, clears):
    costmap = VoxelLayer(Layer(), np.zeros(3))
    costmap.clear(np.array([[3.0, 0.0, 0.5]]), np.array([0.0, 0.0, height]))
    assert costmap.seen.any() == clears


def test_the_shipped_file_clears_from_the_height_that_it_names_and_no_higher():
    text = VOXEL_LAYER.read_text()
    costmap = yaml.safe_load(text)["local_costmap"]["local_costmap"]["ros__parameters"]
    shipped = costmap["voxel_layer"]
    assert shipped["z_voxels"] == VOXELS
    assert shipped["max_obstacle_height"] == pytest.approx(VOXELS * shipped["z_resolution"])
    layer = Layer(resolution=costmap["resolution"], z_resolution=shipped["z_resolution"])
    highest_m = float(re.search(r"one up to ([\d.]+) m", text)[1])
    for height_m, clears in ((highest_m, True), (highest_m + 0.03, False)):
        costmap = VoxelLayer(layer, np.zeros(3))
        costmap.clear(np.array([[3.0, 0, height_m]]), np.array([0, 0, height_m]))
        assert (costmap.seen.sum() > 20) == clears, height_m
