# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A figure as the bytes of an image file, drawn once."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import NDArray

JPEG_QUALITY = 85


def encoded(figure: Figure, dpi: int, image_format: str = "png") -> bytes:
    """Return a figure as the bytes of a "png" or "jpeg" file.

    They equal `Figure.savefig`'s, which draws a figure with a layout engine twice, the first time
    only for the layout.
    """
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return encoded_pixels(np.asarray(canvas.buffer_rgba()), image_format, dpi)


def encoded_pixels(pixels: NDArray[np.uint8], image_format: str = "png", dpi: int = 100) -> bytes:
    """Return (H, W, 3 or 4) pixels as the bytes of a "png" or "jpeg" file."""
    options: Any = {"quality": JPEG_QUALITY} if image_format == "jpeg" else {}
    buffer = io.BytesIO()
    imsave(buffer, pixels, format=image_format, dpi=dpi, pil_kwargs=options)
    return buffer.getvalue()
