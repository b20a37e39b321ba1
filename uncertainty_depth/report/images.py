# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Maps as colour images, on scales with a fixed range; images as a file's bytes."""

from __future__ import annotations

import io
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.text import Text
from numpy.typing import NDArray

from uncertainty_depth.core import strict
from uncertainty_depth.core.output import MARK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTH_COLORS = "viridis_r"
"""Colours for every depth shown anywhere: near is yellow, far is dark violet."""
SIGMA_COLORS = "magma"
"""Colours for every sigma and every error, in images and on points: black is certain, or right."""
MISSING_RGB = (128, 128, 128)
"""A colour in neither palette: black would be certain, or right."""
MISSING_COLOR = "#808080"
"""The same for matplotlib."""
SPARSE = 0.3


def colorize(
    values: NDArray[np.floating], maximum: float, colors: str = DEPTH_COLORS
) -> NDArray[np.uint8]:
    """Return (H, W) values as (H, W, 3) uint8 RGB on the scale 0 ... `maximum`; NaN is grey."""
    valid = np.isfinite(values) | np.isposinf(values)
    scaled = np.where(valid, values, 0.0) * (255.0 / maximum)
    levels = np.clip(scaled, 0.0, 255.0).astype(np.uint8)
    image: NDArray[np.uint8] = _table(colors).take(levels, axis=0)
    image[~valid] = MISSING_RGB
    return image


@cache
def _table(colors: str) -> NDArray[np.uint8]:
    """Return RGB for 256 levels, (256, 3)."""
    rgb = colormaps[colors](np.arange(256))[:, :3]
    return (rgb * 255).round().astype(np.uint8)


def thicken(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return a sparse map with each valid pixel enlarged to 3 x 3 pixels.

    Known pixels keep their value; an unknown one takes the smallest value around it. A map with
    more than the fraction `SPARSE` of its pixels known is returned unchanged.
    """
    valid = np.isfinite(values)
    if valid.mean() > SPARSE:
        return values
    square = np.ones((3, 3), bool)
    return np.where(valid, values, stamped(values, square).astype(values.dtype))


def stamped(sparse: NDArray[np.floating], footprint: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return (H, W) with an odd (h, w) footprint around each known value, the smallest on top."""
    from scipy.ndimage import minimum_filter  # loads slowly, and colour maps need none

    known = np.where(np.isfinite(sparse), sparse, np.inf).astype(np.float32)
    grown = minimum_filter(known, footprint=footprint, mode="constant", cval=np.inf)
    grown[np.isinf(grown)] = np.nan
    return grown


WIDTH = 480
ROW = 64
BAR = 20
MARGIN = 24
TICKS = 5
FONT_SCALE = 0.42
WHITE = (255, 255, 255)
BLACK = (0, 0, 0)


@lru_cache(maxsize=4)
def color_scales(max_depth_m: float, max_sigma_m: float) -> NDArray[np.uint8]:
    """Return the scales for the color images of depth and sigma, (H, W, 3) uint8 RGB."""
    missing = np.full((BAR, WIDTH, 3), MISSING_RGB, np.uint8)
    _text(missing, "no value", WIDTH // 2, BAR - 6, WHITE)
    depth = _scale("depth, metres", max_depth_m, DEPTH_COLORS)
    sigma = _scale("sigma, metres", max_sigma_m, SIGMA_COLORS)
    return np.concatenate([depth, sigma, missing])


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


def _text(
    image: NDArray[np.uint8],
    text: str,
    center: int,
    baseline: int,
    color: tuple[int, int, int] = BLACK,
) -> None:
    """Write a text into an image, centred on a column."""
    import cv2  # a report of arrays does not need it

    font = cv2.FONT_HERSHEY_SIMPLEX
    (width, _), _ = cv2.getTextSize(text, font, FONT_SCALE, 1)
    origin = (center - width // 2, baseline)
    cv2.putText(image, text, origin, font, FONT_SCALE, color, 1, cv2.LINE_AA)


JPEG_QUALITY = 85


def encoded(figure: Figure, dpi: int, image_format: str = "png") -> bytes:
    """Return a figure as a "png" or "jpeg" file's bytes, in half of `Figure.savefig`'s time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # nodes colour maps without it

    figure.set_dpi(dpi)
    for text in figure.findobj(Text):  # names of files and topics are no formulas
        text.set_parse_math(False)
        text.set_text(strict.encodable(text.get_text()))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return encoded_pixels(np.asarray(canvas.buffer_rgba()), image_format, dpi)


def vector(figure: Figure, file_format: str) -> bytes:
    """Return a figure as an "svg" or "pdf" file's bytes, without a time in it."""
    buffer = io.BytesIO()
    no_date = {"svg": "Date", "pdf": "CreationDate"}[file_format]
    figure.savefig(buffer, format=file_format, metadata={no_date: None})
    return buffer.getvalue()


def encoded_pixels(pixels: NDArray[np.uint8], image_format: str = "png", dpi: int = 100) -> bytes:
    """Return (H, W, 3 or 4) pixels as a "png" or "jpeg" file's bytes."""
    from matplotlib.image import imsave

    options: Any = {"quality": JPEG_QUALITY} if image_format == "jpeg" else {}
    metadata = {"Software": MARK} if image_format == "png" else None
    buffer = io.BytesIO()
    imsave(buffer, pixels, format=image_format, dpi=dpi, metadata=metadata, pil_kwargs=options)
    return buffer.getvalue()
