# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Maps as images: known pixels keep their value, and the size of a plot is bounded."""

import numpy as np
import pytest

from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.report.examples import Example
from uncertainty_depth.report.frame_plots import frame_plot
from uncertainty_depth.report.images import thicken

MAX_PIXELS = 4e6


def test_sparse_points_keep_their_value_and_the_nearest_fills_neighbours():
    sparse = np.full((9, 9), np.nan, np.float32)
    sparse[4, 3] = 5
    sparse[4, 5] = 2
    shown = thicken(sparse)
    assert (shown[4, 3], shown[4, 5], shown[4, 4]) == (5, 2, 2)
    assert np.isfinite(shown).sum() == 5 * 3


@pytest.mark.parametrize(("has_size", "panels"), [(True, 6), (False, 5)])
def test_an_uncertainty_without_a_unit_is_not_shown_in_metres(has_size, panels):
    depth = np.full((6, 8), 2, np.float32)
    figure = frame_plot(Example("a", None, depth, DepthPrediction(depth, depth), {}), has_size)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == panels
    assert any("sigma" in title for title in titles) == has_size
    assert ("uncertainty, no unit" in titles) != has_size


@pytest.mark.parametrize("shape", [(2000, 1), (1, 2000), (1, 1), (5000, 2)])
def test_size_of_a_frame_plot_is_bounded(shape):
    depth = np.full(shape, 2, np.float32)
    example = Example("a", None, depth, DepthPrediction(depth, depth), {})
    figure = frame_plot(example)
    width, height = figure.get_size_inches() * 80
    assert width * height < MAX_PIXELS
