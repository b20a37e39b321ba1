# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The legend shows the colors of the color images."""

from __future__ import annotations

import numpy as np

from uncertainty_depth.report.images import (
    BAR,
    DEPTH_COLORS,
    MARGIN,
    MISSING_RGB,
    ROW,
    SIGMA_COLORS,
    WIDTH,
    color_scales,
    colorize,
)


def test_the_bars_have_the_colors_of_the_images():
    image = color_scales(8.0, 2.0)
    middle = WIDTH // 2
    for row, maximum, colors in ((0, 8.0, DEPTH_COLORS), (1, 2.0, SIGMA_COLORS)):
        ends = np.array([[0.0, maximum]], np.float32)
        bar = image[row * ROW + BAR + BAR // 2]
        expected = colorize(ends, maximum, colors)[0]
        np.testing.assert_array_equal(bar[[MARGIN, WIDTH - MARGIN - 1]], expected)
        half = colorize(np.array([[maximum / 2]], np.float32), maximum, colors)[0, 0]
        assert np.abs(bar[middle].astype(int) - half).max() <= 3
    np.testing.assert_array_equal(image[-1, 0], MISSING_RGB)


def test_different_ranges_have_different_tick_labels():
    assert (color_scales(8.0, 2.0) != color_scales(9.0, 2.0)).any()
