# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plots name their variant, axes and units."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from test.report.conftest import evaluation_of
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.report.frame_plots import BAR_HEIGHT, frame_plot, lidar_overlay, number_axis
from uncertainty_depth.report.images import (
    DEPTH_COLORS,
    MISSING_RGB,
    SIGMA_COLORS,
    colorize,
    encoded,
    thicken,
)
from uncertainty_depth.report.plots import (
    LOG_STEPS,
    distance_figure,
    reliability_figure,
    removal_curves,
    sparsification_figure,
)


@pytest.fixture
def sums():
    return evaluation_of(frames=8).metrics.total()


def test_the_figures_show_the_curves_of_the_frames(sums):
    named = [
        distance_figure(sums, "laplace", SigmaKind.METRES),
        reliability_figure(sums, "laplace"),
        sparsification_figure(sums, "rmse"),
    ]
    assert all(axes.get_ylabel() for figure in named for axes in figure.axes)
    drawn = named[-1].axes[0].get_lines()
    lines = {line.get_label().split(",")[0]: list(line.get_ydata()) for line in drawn}
    assert lines["predicted sigma"] == list(removal_curves(sums, "rmse")["predicted"])
    assert len(lines) == 4, "sigma, its baseline, the oracle, and random removal"


@pytest.mark.parametrize("limits", [(0.6, 12.0), (0.05, 80.0), (0.8, 1.3), (2.0, 3.6)])
def test_a_logarithmic_axis_is_numbered_with_the_numbers_where_they_stand(limits):
    axes = Figure().subplots()
    axes.set(xscale="log", xlim=limits)
    number_axis(axes.xaxis, LOG_STEPS)
    axes.figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert [float(label) for label in labels] == pytest.approx(axes.get_xticks())


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
    figure = frame_plot(
        Frame(0, "a", ground_truth_m=depth, prediction=DepthPrediction(depth, depth)), has_size
    )
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == panels
    assert any("sigma" in title for title in titles) == has_size
    assert ("uncertainty, no unit" in titles) != has_size


@pytest.mark.parametrize("shape", [(2000, 1), (1, 2000), (1, 1), (5000, 2)])
def test_size_of_a_frame_plot_is_bounded(shape):
    depth = np.full(shape, 2, np.float32)
    figure = frame_plot(
        Frame(0, "a", ground_truth_m=depth, prediction=DepthPrediction(depth, depth))
    )
    width, height = figure.get_size_inches() * 80
    assert width * height < 4e6


def is_colored(pixels: np.ndarray) -> np.ndarray:
    return np.ptp(pixels.astype(int), axis=-1) > 30


def test_every_point_is_coloured_on_a_grey_image():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (375, 1242, 3), dtype=np.uint8)
    rows, columns = rng.integers(0, 375, 3000), rng.integers(0, 1242, 3000)
    depth_m = np.full((375, 1242), np.nan, np.float32)
    depth_m[rows, columns] = rng.uniform(3, 60, 3000)
    plot = lidar_overlay(image, depth_m)
    assert plot.shape == (375 + BAR_HEIGHT, 1242, 3)
    assert plot.dtype == np.uint8
    assert is_colored(plot[rows, columns]).all()
    assert 0.03 < is_colored(plot[:375]).mean() < 0.08  # discs of 3 pixels, not single pixels


@pytest.mark.parametrize("depth", [np.nan, 0.0, np.inf])
def test_image_without_points_stays_grey(depth):
    plot = lidar_overlay(np.full((24, 32, 3), 99, np.uint8), np.full((24, 32), depth, np.float32))
    assert (plot[:-BAR_HEIGHT] == 99).all()


@pytest.mark.parametrize("name", ["$a$", r"\$a$ $\frac$", "_a", "a\nb", "\udcff", "a" * 3000])
def test_a_frame_may_have_any_name(name):
    maps = np.full((6, 8), 3, np.float32)
    figure = frame_plot(
        Frame(0, name, ground_truth_m=maps, prediction=DepthPrediction(maps, maps / 15))
    )
    assert encoded(figure, 50).startswith(b"\x89PNG")


def test_a_name_is_no_formula():
    """It is as wide as the same characters are apart."""
    widths = {}
    for name in ("$x_1$", "$", "x_1", "$$"):
        figure = Figure()
        text = figure.text(0, 0, name)
        encoded(figure, 100)
        widths[name] = text.get_window_extent().width
    assert widths["$x_1$"] == pytest.approx(widths["$$"] + widths["x_1"], abs=3)
    assert widths["$$"] > 1.5 * widths["$"]


def lightness(rgb):
    """CIE 1976 L* of (..., 3) uint8 sRGB."""
    value = np.asarray(rgb) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    return np.where(luminance > 0.008856, 116 * np.cbrt(luminance) - 16, 903.3 * luminance)


@pytest.mark.parametrize("colors", [DEPTH_COLORS, SIGMA_COLORS])
def test_a_palette_changes_its_lightness_evenly_and_shows_no_value_by_a_colour_of_its_own(colors):
    """Equal steps look equally large; a rainbow's lightness rises and falls."""
    shown = colorize(np.linspace(0, 1, 256)[None], 1.0, colors)[0]
    steps = np.diff(lightness(shown[::16]))
    assert (steps > 0).all() or (steps < 0).all()
    assert np.abs(steps).max() < 3 * np.abs(steps).min()
    unknown = colorize(np.array([[np.nan]]), 1.0, colors)[0, 0]
    assert tuple(unknown) == MISSING_RGB
    assert np.abs(shown - unknown.astype(float)).max(axis=1).min() > 30


def test_every_figure_draws_depth_in_one_palette_and_sigma_in_one():
    maps = np.linspace(1, 4, 64, dtype=np.float32).reshape(8, 8)
    frame = Frame(0, "1", ground_truth_m=maps, prediction=DepthPrediction(maps, maps / 10))
    drawn = [axes.get_images() for axes in frame_plot(frame).axes]
    palettes = [images[0].get_cmap().name for images in drawn if images]
    assert palettes[:4] == [DEPTH_COLORS, DEPTH_COLORS, SIGMA_COLORS, SIGMA_COLORS]
