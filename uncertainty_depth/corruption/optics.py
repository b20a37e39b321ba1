# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Corruptions of lens, sensor and compression.

Each takes (H, W, 3) float32 RGB in [0, 1], the severity 0 to 4 as an index, and a generator.
Lengths are fractions of the image's width, so that a severity means the same at any size.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
DIRT_SEED = 1  # a lens keeps its dirt: it is the same in all frames


def motion_blur(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image blurred along a line of 1 to 6 % of its width, nearly level."""
    length = (0.01, 0.02, 0.03, 0.045, 0.06)[index] * image.shape[1]
    angle = rng.uniform(-0.35, 0.35)
    half = 0.5 * length * np.array([np.cos(angle), np.sin(angle)])
    size = 2 * int(np.ceil(0.5 * length)) + 3
    kernel = np.zeros((size, size), np.float32)
    scale = 1 << 8  # subpixels of `cv2.line`
    ends = np.rint((size // 2 + np.stack([-half, half])) * scale).astype(int)
    cv2.line(kernel, ends[0].tolist(), ends[1].tolist(), 1.0, 1, cv2.LINE_AA, 8)
    return _filtered(image, kernel)


def defocus(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image blurred by a disc of radius 0.4 to 2.2 % of its width."""
    radius = (0.004, 0.007, 0.011, 0.016, 0.022)[index] * image.shape[1]
    reach = int(np.ceil(radius)) + 1
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    disc = np.clip(radius + 0.5 - np.hypot(x, y), 0, 1).astype(np.float32)
    return _filtered(image, disc)


def _filtered(image: Floats, kernel: Floats) -> Floats:
    blurred = cv2.filter2D(image, -1, kernel / kernel.sum(), borderType=cv2.BORDER_REFLECT)
    return blurred.astype(np.float32)


def noise(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image with Gaussian noise of standard deviation 0.04 to 0.26."""
    deviation = np.float32((0.04, 0.08, 0.12, 0.18, 0.26)[index])
    return image + deviation * rng.standard_normal(image.shape, np.float32)


def dirt(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image behind 3 to 45 blurred specks and smears, the same in all frames."""
    specks = (3, 8, 15, 27, 45)[index]
    lens = np.random.default_rng(DIRT_SEED)
    height, width = image.shape[:2]
    opacity: Floats = np.zeros((height, width), np.float32)
    for _ in range(specks):
        centre = (int(lens.uniform(0, width)), int(lens.uniform(0, height)))
        axes = (lens.uniform(0.008, 0.05, 2) * width).astype(int) + 1
        strength = lens.uniform(0.4, 1.0)
        speck = np.zeros_like(opacity)
        cv2.ellipse(speck, centre, axes.tolist(), lens.uniform(0, 180), 0, 360, strength, -1)
        opacity = np.maximum(opacity, speck)
    weight = cv2.GaussianBlur(opacity, (0, 0), 0.008 * width)[..., None].astype(np.float32)
    mud = np.array([0.16, 0.13, 0.1], np.float32)
    return image * (1 - weight) + mud * weight


def jpeg(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image after JPEG of quality 25 to 7, as Hendrycks and Dietterich take it."""
    quality = (25, 18, 15, 10, 7)[index]
    bgr = np.rint(255 * np.clip(image[..., ::-1], 0, 1)).astype(np.uint8)
    _, content = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded: Any = cv2.imdecode(content, cv2.IMREAD_COLOR)
    return decoded[..., ::-1].astype(np.float32) / np.float32(255)


def low_resolution(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image reduced to a half, a third, a quarter, a sixth or an eighth, and back."""
    factor = (2, 3, 4, 6, 8)[index]
    height, width = image.shape[:2]
    size = (max(width // factor, 1), max(height // factor, 1))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    enlarged = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
    return enlarged.astype(np.float32)
