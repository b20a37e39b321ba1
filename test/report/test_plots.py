# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plots name their variant, axes and units."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.report.examples import Example
from uncertainty_depth.report.frame_plots import BAR_HEIGHT, frame_plot, lidar_overlay, number_axis
from uncertainty_depth.report.images import thicken
from uncertainty_depth.report.plots import LOG_STEPS, figures, sparsification_figure


@pytest.fixture
def curves(evaluate_moments):
    return evaluate_moments(frames=8).metrics.curves()


def test_every_axis_is_labelled_and_every_title_names_its_source(curves):
    named = figures(curves)
    assert sorted(named) == [
        "by_distance",
        "reliability",
        "sparsification_a1",
        "sparsification_abs_rel",
        "sparsification_rmse",
    ]
    for name, figure in named.items():
        titles = " ".join([figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)])
        assert {"r": "Gustafsson", "s": "Poggi", "b": "By distance"}[name[0]] in titles
        assert all(axes.get_ylabel() for axes in figure.axes)
        assert figure.axes[-1].get_xlabel()


def test_the_sparsification_figure_holds_the_curves_it_was_given(curves):
    figure = sparsification_figure(curves, "rmse")
    lines = {line.get_label().split(",")[0]: line for line in figure.axes[0].get_lines()}
    assert set(lines) == {
        "predicted sigma",
        "sigma proportional to depth",
        "oracle (true error)",
        "random removal",
    }
    assert list(lines["predicted sigma"].get_ydata()) == list(
        curves["sparsification"]["rmse"]["predicted"]
    )
    assert "rmse of the remaining pixels (m)" in figure.axes[0].get_ylabel()


@pytest.mark.parametrize("limits", [(0.6, 12.0), (0.05, 80.0), (0.8, 1.3), (2.0, 3.6)])
def test_a_logarithmic_axis_is_numbered_with_the_numbers_where_they_stand(limits):
    axes = Figure().subplots()
    axes.set(xscale="log", xlim=limits)
    number_axis(axes.xaxis, LOG_STEPS)
    axes.figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert [float(label) for label in labels] == pytest.approx(axes.get_xticks())


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
