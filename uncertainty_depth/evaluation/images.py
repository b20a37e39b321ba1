"""Maps as pictures: colour scales with a fixed range, and the panel of one frame that reports show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

if TYPE_CHECKING:
    from uncertainty_depth.evaluation.examples import Example

DEPTH_COLORS = "viridis_r"
SIGMA_COLORS = "magma"
MISSING_RGB = (40, 40, 40)
SPARSE = 0.3
MAX_ASPECT = 2.0
"""Height over width of a panel: a map of one column must not make an image of a million rows."""


def colorize(
    values: NDArray[np.floating], maximum: float, colors: str = DEPTH_COLORS
) -> NDArray[np.uint8]:
    """(H, W) values as (H, W, 3) uint8 RGB on the scale 0 ... `maximum`; NaN is dark grey, +inf the far end."""
    table = (colormaps[colors](np.arange(256))[:, :3] * 255).round().astype(np.uint8)
    known = np.isfinite(values) | np.isposinf(values)
    levels = np.clip(np.where(known, values, 0.0) * (255.0 / maximum), 0.0, 255.0).astype(np.uint8)
    return np.where(known[..., None], table[levels], np.array(MISSING_RGB, np.uint8))


def thicken(values: NDArray[np.floating], size: int = 3) -> NDArray[np.floating]:
    """The map with the known pixels of a sparse one `size` pixels wide, so that LiDAR points can be seen.

    Known pixels keep their own value; where points compete for an unknown one, the smallest wins.
    A map that is known in more than `SPARSE` of its pixels is returned as it is.
    """
    known = np.isfinite(values)
    if known.mean() > SPARSE:
        return values
    grown = cv2.erode(
        np.where(known, values, np.inf).astype(np.float32),
        np.ones((size, size), np.uint8),
        borderType=cv2.BORDER_CONSTANT,
        borderValue=float("inf"),
    )
    return np.where(known, values, np.where(np.isfinite(grown), grown, np.nan))


def panel_aspect(shape: tuple[int, ...]) -> float:
    """Height over width of a panel that shows a map of this shape, (H, W, ...), within limits."""
    return min(max(shape[0] / shape[1], 1 / MAX_ASPECT**2), MAX_ASPECT)


def example_figure(example: Example) -> Figure:
    """Image, ground truth, depth, sigma and error of one frame, side by side, each with its colour scale in metres."""
    depth, sigma, truth = (
        example.prediction.depth_m,
        example.prediction.sigma_m,
        example.ground_truth_m,
    )
    error = np.abs(depth - truth)
    far = _percentile(truth if np.isfinite(truth).any() else depth, 98)
    off = max(_percentile(error, 95), 1e-3)
    panels = [
        ("ground truth (m)", thicken(truth), DEPTH_COLORS, far),
        ("depth (m)", depth, DEPTH_COLORS, far),
    ]
    panels += [
        ("sigma (m)", sigma, SIGMA_COLORS, max(_percentile(sigma, 98), 1e-3)),
        ("error (m)", thicken(error), SIGMA_COLORS, off),
    ]
    figure = Figure(figsize=(16, 16 / 5 * panel_aspect(depth.shape) + 0.7), layout="constrained")
    axes, scales = figure.subplots(2, 5, height_ratios=(1, 0.05))
    _show_image(axes[0], example)
    scales[0].set_axis_off()
    for axis, scale, (title, values, colors, maximum) in zip(
        axes[1:], scales[1:], panels, strict=True
    ):
        drawn = axis.imshow(values, cmap=colors, vmin=0, vmax=maximum, interpolation="nearest")
        axis.set_facecolor(np.array(MISSING_RGB) / 255)
        figure.colorbar(drawn, cax=scale, orientation="horizontal")
        axis.set_title(title)
    for axis in axes:
        axis.set_xticks([])
        axis.set_yticks([])
    return figure


def _show_image(axis: Axes, example: Example) -> None:
    if example.image is None:
        axis.set_axis_off()
    else:
        axis.imshow(example.image)
    axis.set_title(f"frame {example.name}")


def _percentile(values: NDArray[np.floating], share: float) -> float:
    known = values[np.isfinite(values)]
    return float(np.percentile(known, share)) if known.size else 1.0
