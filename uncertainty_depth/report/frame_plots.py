# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Images for a frame: depth, sigma and error with scales in metres, and LiDAR on the image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray
from PIL import Image

from uncertainty_depth.core.records import Frame, sigma_of
from uncertainty_depth.report.images import (
    DEPTH_COLORS,
    MISSING_COLOR,
    SIGMA_COLORS,
    stamped,
    thicken,
)
from uncertainty_depth.report.scores import frame_name

WIDE = 2.0  # aspect above which there are two columns of panels instead of three
MAX_ASPECT = 2.0  # height over width of a panel at most: a map may have few columns
FIGURE_WIDTH = 10.0  # inches; small, so that titles stay readable at a reduced size
PANEL_SHARE = 0.84  # of a column's width; its colour bar has the rest
MAX_DEPTH_RATIO = 100.0
"""Largest ratio between farthest and nearest depth on a scale."""
RATIO_COLORS = "RdBu_r"
MAX_RATIO = 4.0
MIN_WIDTH = 1200  # pixels of the plot: smaller images are enlarged by an integer factor
BAR_HEIGHT = 84  # pixels
DPI = 100
DENSE = 0.3  # fraction of pixels with depth above which discs would hide the image
DENSE_OPACITY = 0.55
LEFT_OUT_HATCH = "////"
LEFT_OUT_COLOR = "#e377c2"  # seen on the darkest sigma and on the brightest depth
LEFT_OUT_BRIGHTNESS = 0.4


def frame_plot(frame: Frame, has_size: bool = True) -> Figure:
    """Return six panels, four without sigma.

    Sigma and error share a scale, unless without size.
    """
    truth = frame.need_ground_truth()
    prediction = frame.need_depth()
    depth = prediction.depth_m
    sigma = sigma_of(prediction)
    error = np.abs(depth - truth)
    max_error = max(_percentile(error, 95), 1e-3)
    if sigma is not None and has_size:
        max_error = max(max_error, _percentile(sigma, 95))
    height, width = depth.shape
    columns = 2 if width / height > WIDE or sigma is None else 3
    rows = (4 if sigma is None else 6) // columns
    aspect = min(max(height / width, 1 / MAX_ASPECT**2), MAX_ASPECT)
    panel_height = PANEL_SHARE * FIGURE_WIDTH / columns * aspect
    figure = Figure(figsize=(FIGURE_WIDTH, rows * (panel_height + 0.4)), layout="compressed")
    axes = figure.subplots(rows, columns).reshape(-1)
    axes[0].set_title(f"frame {frame_name(frame.name)}")
    if frame.image is not None:
        axes[0].imshow(frame.image)
    else:
        axes[0].set_facecolor("#eeeeee")
        sentence = "no camera image:\nthese predictions\ncame as maps only"
        middle: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes[0].transAxes}
        axes[0].text(0.5, 0.5, sentence, **middle)
    known = truth if (truth > 0).any() else depth
    near, far = _percentile(known, 2), _percentile(known, 98)
    near = max(near, far / MAX_DEPTH_RATIO)
    depths = LogNorm(near, max(far, 1.1 * near), clip=True)  # else streets would have one color
    errors, ratios = Normalize(0, max_error), Normalize(0, MAX_RATIO)
    _draw(axes[1], thicken(truth), "ground truth (m)", DEPTH_COLORS, depths)
    _draw(axes[2], depth, "predicted depth (m)", DEPTH_COLORS, depths)
    if sigma is None:
        _draw(axes[3], thicken(error), "error (m)", SIGMA_COLORS, errors)
    elif has_size:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = error / sigma
        _draw(axes[3], sigma, "sigma (m), same scale as error", SIGMA_COLORS, errors)
        _draw(axes[4], thicken(error), "error (m), same scale as sigma", SIGMA_COLORS, errors)
        _draw(axes[5], thicken(ratio), "error / sigma, white = 2 sigma", RATIO_COLORS, ratios)
    else:
        ranks = Normalize(_percentile(sigma, 2), _percentile(sigma, 98))
        _draw(axes[3], sigma, "uncertainty, no unit", SIGMA_COLORS, ranks)
        _draw(axes[4], thicken(error), "error (m)", SIGMA_COLORS, errors)
        axes[5].set_axis_off()
    for axis in axes:
        sizes = [image.get_size()[:2] for image in axis.get_images()]
        if frame.left_out and frame.left_out.mask.any() and frame.left_out.mask.shape in sizes:
            hatched = axis.contourf(
                frame.left_out.mask, [0.5, 1.5], colors="none", hatches=[LEFT_OUT_HATCH]
            )
            hatched.set(edgecolor=LEFT_OUT_COLOR, linewidth=0)
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
        number_axis(bar.ax.yaxis, (1, 2, 3, 5, 7))


def _percentile(values: NDArray[np.floating], percent: float) -> float:
    finite = values[np.isfinite(values)]
    return float(np.percentile(finite, percent)) if finite.size else 1.0


def number_axis(axis: Axis, steps: Sequence[float]) -> None:
    """Number a logarithmic axis at multiples of the powers of ten: as 2, not as 2 x 10^0."""
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(StrMethodFormatter("{x:.3g}"))
    axis.set_minor_formatter(NullFormatter())


def lidar_overlay(
    image: NDArray[np.uint8],
    ground_truth_m: NDArray[np.floating],
    left_out: NDArray[np.bool_] | None = None,
) -> NDArray[np.uint8]:
    """Return the image in grey with each depth as a coloured disc, and a colour bar in metres.

    Near points lie on top. Dense depth is blended with the image instead. `left_out` pixels are
    darkened. The result is (height, width, 3) uint8 RGB, at least `MIN_WIDTH` pixels wide.
    """
    factor = math.ceil(MIN_WIDTH / image.shape[1])
    grey = Image.fromarray(image).convert("L")  # the points have the colours
    grey = grey.resize((grey.width * factor, grey.height * factor), Image.Resampling.BILINEAR)
    background = np.repeat(np.asarray(grey)[..., None], 3, axis=2).astype(np.float32)
    if left_out is not None:
        background[left_out.repeat(factor, 0).repeat(factor, 1)] *= LEFT_OUT_BRIGHTNESS
    valid = np.isfinite(ground_truth_m) & (ground_truth_m > 0)
    near, far = np.percentile(ground_truth_m[valid], (1, 99)) if valid.any() else (1.0, 10.0)
    norm = LogNorm(near, max(far, near * 1.1), clip=True)
    if valid.mean() < DENSE:
        depth_m = _discs(np.where(valid, ground_truth_m, np.nan), factor)
        opacity = 1.0
    else:
        depth_m = np.where(valid, ground_truth_m, np.nan).repeat(factor, axis=0)
        depth_m = depth_m.repeat(factor, axis=1)
        opacity = DENSE_OPACITY
    covered = np.isfinite(depth_m)
    colors = colormaps[DEPTH_COLORS](norm(depth_m[covered]))[:, :3] * 255
    background[covered] = (1 - opacity) * background[covered] + opacity * colors
    bar = _color_bar(norm, background.shape[1], int(valid.sum()))
    return np.vstack([background.round().astype(np.uint8), bar])


def _discs(sparse_m: NDArray[np.floating], factor: int) -> NDArray[np.float32]:
    """Return (H * factor, W * factor) depth with a disc around each point, the nearest on top."""
    rows, columns = np.nonzero(np.isfinite(sparse_m))
    height, width = sparse_m.shape
    points = np.full((height * factor, width * factor), np.nan, np.float32)
    points[rows * factor + factor // 2, columns * factor + factor // 2] = sparse_m[rows, columns]
    diameter = 2 * (factor // 2) + 3  # a little wider than a pixel of the image
    offsets = np.arange(diameter) - diameter // 2
    disc = np.hypot(offsets[:, None], offsets) <= diameter / 2
    return stamped(points, disc)


def _color_bar(norm: LogNorm, width: int, points: int) -> NDArray[np.uint8]:
    """Return the colour bar as (BAR_HEIGHT, width, 3) uint8."""
    figure = Figure(figsize=(width / DPI, BAR_HEIGHT / DPI), dpi=DPI)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.68, 0.96, 0.27))
    bar = figure.colorbar(ScalarMappable(norm, DEPTH_COLORS), cax=axes, orientation="horizontal")
    number_axis(bar.ax.xaxis, (1, 1.5, 2, 3, 4, 5, 7))
    bar.ax.tick_params(labelsize=15, pad=2)
    bar.set_label(f"depth (m), {points:,} points", fontsize=15, labelpad=0)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:BAR_HEIGHT, :width, :3]
    missing = width - pixels.shape[1]
    return np.pad(pixels, ((0, 0), (0, missing), (0, 0)), mode="edge")
