# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""LiDAR on the image: every point at its pixel, in the colour of its depth."""

from __future__ import annotations

import numpy as np
import pytest

from uncertainty_depth.report.frame_plots import BAR_HEIGHT, MIN_WIDTH, lidar_overlay


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


def test_small_image_and_its_points_are_enlarged():
    image = np.full((24, 32, 3), 128, np.uint8)
    plot = lidar_overlay(image, sparse((24, 32), {(6, 8): 2.0, (20, 30): 8.0}))
    factor = plot.shape[1] // 32
    assert plot.shape[1] >= MIN_WIDTH
    near = plot[6 * factor + factor // 2, 8 * factor + factor // 2].astype(int)
    far = plot[20 * factor + factor // 2, 30 * factor + factor // 2].astype(int)
    assert near[0] > 2 * near[2]  # red
    assert far[2] > far[0]  # blue
    drawn = is_colored(plot[: 24 * factor]).sum()
    assert drawn == pytest.approx(2 * np.pi / 4 * (factor + 2) ** 2, rel=0.05)


def test_nearer_point_lies_on_top():
    image = np.zeros((4, MIN_WIDTH, 3), np.uint8)
    alone = lidar_overlay(image, sparse((4, MIN_WIDTH), {(1, 300): 2.0, (1, 900): 9.0}))
    both = lidar_overlay(
        image, sparse((4, MIN_WIDTH), {(1, 300): 2.0, (1, 301): 9.0, (1, 900): 9.0})
    )
    assert (both[:4, :301] == alone[:4, :301]).all()
    assert both[1, 302].tolist() == alone[1, 900].tolist()


def test_image_edges_show_through_dense_depth():
    image = np.zeros((240, 320, 3), np.uint8)
    image[:, 160:] = 255
    plot = lidar_overlay(image, np.full((240, 320), 3.0, np.float32))
    middle = plot.shape[1] // 2
    assert (plot[400, middle + 8].astype(int) - plot[400, middle - 8] > 80).all()


@pytest.mark.parametrize("depth", [np.nan, 0.0, np.inf])
def test_image_without_points_stays_grey(depth):
    plot = lidar_overlay(np.full((24, 32, 3), 99, np.uint8), np.full((24, 32), depth, np.float32))
    assert (plot[:-BAR_HEIGHT] == 99).all()
