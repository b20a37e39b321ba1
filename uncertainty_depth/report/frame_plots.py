# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plot of a frame: its image, depth, sigma and error, with colour scales in metres."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter
from numpy.typing import NDArray

from uncertainty_depth.report.examples import Example
from uncertainty_depth.report.images import (
    MISSING_COLOR,
    SIGMA_COLORS,
    panel_aspect,
    thicken,
)

WIDE = 2.0  # aspect above which there are two columns of panels instead of three
FIGURE_WIDTH = 10.0  # inches; small, so that titles can be read where it is reduced
FRAME_DEPTH_COLORS = "turbo_r"
"""Near is red, far is blue, as of LiDAR drawn on the image."""
MAX_DEPTH_RATIO = 100.0
"""Of the farthest to the nearest depth of a scale."""
RATIO_COLORS = "RdBu_r"
MAX_RATIO = 4.0


def frame_plot(example: Example) -> Figure:
    """Return six panels; sigma and error share one scale, depth and ground truth another."""
    truth = example.ground_truth_m
    depth = example.prediction.depth_m
    sigma = example.prediction.sigma_m
    error = np.abs(depth - truth)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = error / sigma
    max_error = max(_percentile(error, 95), _percentile(sigma, 95), 1e-3)
    height, width = depth.shape
    columns = 2 if width / height > WIDE else 3
    rows = 6 // columns
    panel_height = FIGURE_WIDTH / columns * panel_aspect(depth.shape)
    figure = Figure(figsize=(FIGURE_WIDTH, rows * (panel_height + 0.4)), layout="compressed")
    axes = figure.subplots(rows, columns).reshape(-1)
    _draw_image(axes[0], example)
    known = truth if (truth > 0).any() else depth
    near, far = _percentile(known, 2), _percentile(known, 98)
    near = max(near, far / MAX_DEPTH_RATIO)
    depths = LogNorm(near, max(far, 1.1 * near), clip=True)  # or streets would be of one color
    errors, ratios = Normalize(0, max_error), Normalize(0, MAX_RATIO)
    _draw(axes[1], thicken(truth), "ground truth (m)", FRAME_DEPTH_COLORS, depths)
    _draw(axes[2], depth, "predicted depth (m)", FRAME_DEPTH_COLORS, depths)
    _draw(axes[3], sigma, "sigma (m), scale of the error", SIGMA_COLORS, errors)
    _draw(axes[4], thicken(error), "error (m), scale of sigma", SIGMA_COLORS, errors)
    _draw(axes[5], thicken(ratio), "error / sigma, white at 2", RATIO_COLORS, ratios)
    for axis in axes:
        axis.set_xticks([])
        axis.set_yticks([])
    return figure


def _draw(
    axis: Axes, values: NDArray[np.floating], title: str, colors: str, scale: Normalize
) -> None:
    image = axis.imshow(values, cmap=colors, norm=scale, interpolation="nearest")
    axis.set_facecolor(MISSING_COLOR)
    axis.set_title(title)
    bar = axis.figure.colorbar(image, ax=axis, fraction=0.05, pad=0.02, extend="max")
    if isinstance(scale, LogNorm):
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
        bar.ax.yaxis.set_major_formatter(ScalarFormatter())  # 2, not 2 x 10^0
        bar.ax.yaxis.set_minor_formatter(NullFormatter())


def _draw_image(axis: Axes, example: Example) -> None:
    axis.set_title(f"frame {example.name}")
    if example.image is not None:
        axis.imshow(example.image)
        return
    axis.set_facecolor("#eeeeee")
    sentence = "no camera image:\nthese predictions\ncame as maps only"
    axis.text(0.5, 0.5, sentence, ha="center", va="center", transform=axis.transAxes)


def _percentile(values: NDArray[np.floating], percent: float) -> float:
    finite = values[np.isfinite(values)]
    return float(np.percentile(finite, percent)) if finite.size else 1.0
