# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Corruptions of exposure and colour: night, too much or too little light, a wrong white balance.

Each takes (H, W, 3) float32 RGB in [0, 1], the severity 0 to 4 as an index, and a generator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
GAMMA = 2.2


def linear(image: Floats) -> Floats:
    """Return linear light of gamma-encoded values in [0, 1]."""
    return np.power(image, np.float32(GAMMA))


def encoded(light: Floats) -> Floats:
    """Return gamma-encoded values of linear light, clipped to [0, 1]."""
    return np.power(np.clip(light, 0, 1), np.float32(1 / GAMMA))


def night(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image at a fraction of the light, bluish, with the noise of a high gain."""
    brightness = (0.3, 0.15, 0.07, 0.035, 0.015)[index]
    read_noise = (0.001, 0.0015, 0.002, 0.003, 0.004)[index]
    tint = np.array([0.8, 0.9, 1.15], np.float32)
    light = linear(image) * tint * np.float32(brightness)
    deviation = np.sqrt(np.float32(0.0004) * light + np.float32(read_noise**2))
    return encoded(light + deviation * rng.standard_normal(light.shape, np.float32))


def overexposed(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image at 1.6 to 8 times the light, clipped."""
    return encoded(linear(image) * np.float32((1.6, 2.4, 3.5, 5.0, 8.0)[index]))


def underexposed(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image at a half to a twentieth of the light."""
    return encoded(linear(image) * np.float32((0.5, 0.3, 0.18, 0.1, 0.05)[index]))


def white_balance(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image with red and blue gained against each other, warm or cold by chance."""
    shift = (0.1, 0.2, 0.35, 0.5, 0.7)[index] * rng.choice([-1, 1])
    gains = np.exp(np.array([shift, 0, -shift])).astype(np.float32)
    return encoded(linear(image) * gains)
