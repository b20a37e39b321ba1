# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The legend of the color images: both scales with their numbers, as an image."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.report.images import (
    DEPTH_COLORS,
    MISSING_RGB,
    SIGMA_COLORS,
    colorize,
)

WIDTH = 480
ROW = 64
BAR = 20
MARGIN = 24
TICKS = 5
FONT = cv2.FONT_HERSHEY_SIMPLEX
FONT_SCALE = 0.42
WHITE = (255, 255, 255)
BLACK = (0, 0, 0)


@lru_cache(maxsize=4)
def color_scales(max_depth_m: float, max_sigma_m: float) -> NDArray[np.uint8]:
    """Return the scales of the color images of depth and sigma, (H, W, 3) uint8 RGB.

    Args:
        max_depth_m: depth at the upper end of its scale, metres.
        max_sigma_m: sigma at the upper end of its scale, metres.
    """
    rows = [
        _scale("depth, metres", max_depth_m, DEPTH_COLORS),
        _scale("sigma, metres", max_sigma_m, SIGMA_COLORS),
        _missing(),
    ]
    return np.concatenate(rows)


def _scale(title: str, maximum: float, colors: str) -> NDArray[np.uint8]:
    """Return one scale from 0 to `maximum` with its title and numbers, (ROW, WIDTH, 3)."""
    image = np.full((ROW, WIDTH, 3), 255, np.uint8)
    length = WIDTH - 2 * MARGIN
    values = np.linspace(0, maximum, length, dtype=np.float32)
    bar = colorize(np.broadcast_to(values, (BAR, length)), maximum, colors)
    image[BAR : 2 * BAR, MARGIN : MARGIN + length] = bar
    _text(image, title, WIDTH // 2, BAR - 6)
    for tick in np.linspace(0, 1, TICKS):
        label = f"{tick * maximum:.3g}" + ("+" if tick == 1 else "")
        _text(image, label, MARGIN + int(tick * length), 2 * BAR + 16)
    return image


def _missing() -> NDArray[np.uint8]:
    """Return the color of pixels without a value, (BAR, WIDTH, 3)."""
    image = np.full((BAR, WIDTH, 3), MISSING_RGB, np.uint8)
    _text(image, "no value", WIDTH // 2, BAR - 6, WHITE)
    return image


def _text(
    image: NDArray[np.uint8],
    text: str,
    center: int,
    baseline: int,
    color: tuple[int, int, int] = BLACK,
) -> None:
    """Write a text into an image, centred on a column."""
    (width, _), _ = cv2.getTextSize(text, FONT, FONT_SCALE, 1)
    origin = (center - width // 2, baseline)
    cv2.putText(image, text, origin, FONT, FONT_SCALE, color, 1, cv2.LINE_AA)
