# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""LiDAR on the image: every point at its pixel, in the colour of its depth."""

from __future__ import annotations

import numpy as np
import pytest

from uncertainty_depth.report.frame_plots import BAR_HEIGHT, lidar_overlay


def sparse(shape: tuple[int, int], points: dict[tuple[int, int], float]) -> np.ndarray:
    depth_m = np.full(shape, np.nan, np.float32)
    for pixel, depth in points.items():
        depth_m[pixel] = depth
    return depth_m


def is_colored(pixels: np.ndarray) -> np.ndarray:
    return np.ptp(pixels.astype(int), axis=-1) > 30


def test_every_point_is_coloured_on_a_grey_image():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (375, 1242, 3), dtype=np.uint8)
    pixels = {}
    for row, column in zip(rng.integers(0, 375, 3000), rng.integers(0, 1242, 3000), strict=True):
        pixels[row, column] = rng.uniform(3, 60)
    plot = lidar_overlay(image, sparse((375, 1242), pixels))
    assert plot.shape == (375 + BAR_HEIGHT, 1242, 3)
    assert plot.dtype == np.uint8
    rows, columns = np.transpose(list(pixels))
    assert is_colored(plot[rows, columns]).all()
    assert 0.03 < is_colored(plot[:375]).mean() < 0.08  # discs of 3 pixels, not single pixels


@pytest.mark.parametrize("depth", [np.nan, 0.0, np.inf])
def test_image_without_points_stays_grey(depth):
    plot = lidar_overlay(np.full((24, 32, 3), 99, np.uint8), np.full((24, 32), depth, np.float32))
    assert (plot[:-BAR_HEIGHT] == 99).all()
