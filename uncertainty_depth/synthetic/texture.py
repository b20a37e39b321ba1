# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Procedural textures in metres.

Each is filtered over the footprint of a pixel: it fades to its mean when it gets too fine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Colour = tuple[float, float, float]
Texture = Callable[[Floats, Floats], Floats]
"""(2, N) texture coordinates and (2, N) footprint widths, metres, to (3, N) linear albedo."""

_HASH = np.random.default_rng(1).random(4096, dtype=np.float32)
_NOISE_CELLS = 256


def _fractal_noise() -> Floats:
    """Return periodic 1/frequency noise, (256, 256), of mean 0 and unit variance."""
    spectrum = np.fft.rfft2(np.random.default_rng(2).standard_normal((_NOISE_CELLS, _NOISE_CELLS)))
    frequency = np.hypot(
        np.fft.fftfreq(_NOISE_CELLS)[:, None], np.fft.rfftfreq(_NOISE_CELLS)[None]
    )
    frequency[0, 0] = np.inf
    noise = np.fft.irfft2(spectrum / frequency, s=(_NOISE_CELLS, _NOISE_CELLS))
    return (noise / noise.std()).astype(np.float32)


_NOISE = _fractal_noise().ravel()


def pulse(x: Floats, width: Floats, duty: float) -> Floats:
    """Return the mean of a pulse wave over a box of `width` around x.

    The wave of period 1 is 1 on the first `duty` of each period and 0 on the rest.
    """
    width = np.maximum(width, np.float32(1e-3))

    def integral(at: Floats) -> Floats:
        periods = np.floor(at)
        return periods * np.float32(duty) + np.minimum(at - periods, np.float32(duty))

    half = width * np.float32(0.5)
    return (integral(x + half) - integral(x - half)) / width


def cell_hash(*cells: Floats) -> Floats:
    """Return a fixed value in [0, 1) for each cell of a grid."""
    index = np.zeros(cells[0].shape, np.int64)
    for cell, prime in zip(cells, (73856093, 19349663, 83492791), strict=False):
        index ^= cell.astype(np.int64) * prime
    return _HASH[(index ^ (index >> 12)) & 4095]


def noise(u: Floats, v: Floats) -> Floats:
    """Return smooth fractal noise of mean 0 and unit variance.

    Its finest detail is one unit wide, and it repeats after 256.
    """
    iu = np.floor(u)
    iv = np.floor(v)
    fu = u - iu
    fv = v - iv
    column = iu.astype(np.int32) & 255
    row = (iv.astype(np.int32) & 255) * _NOISE_CELLS
    column1 = (column + 1) & 255
    row1 = (row + _NOISE_CELLS) & 65535
    low = _NOISE[row + column] * (1 - fu) + _NOISE[row + column1] * fu
    high = _NOISE[row1 + column] * (1 - fu) + _NOISE[row1 + column1] * fu
    return low * (1 - fv) + high * fv


def fade(feature: float, width: Floats) -> Floats:
    """Return 1 if the footprint is much finer than the feature, 0 if it is coarser."""
    return np.clip(np.float32(1.5) - width / np.float32(feature), 0, 1)


def mix(first: Colour, second: Colour, weight: Floats) -> Floats:
    """Return (3, N) colours between `first` (weight 0) and `second` (weight 1)."""
    a = np.asarray(first, np.float32)[:, None]
    b = np.asarray(second, np.float32)[:, None]
    return a + (b - a) * weight


@dataclass(frozen=True)
class Plain:
    """One colour."""

    colour: Colour

    def __call__(self, uv: Floats, width: Floats) -> Floats:
        """See `Texture`."""
        return np.repeat(np.asarray(self.colour, np.float32)[:, None], uv.shape[1], axis=1)


@dataclass(frozen=True)
class Checker:
    """Squares of `size` metres."""

    size: float
    first: Colour
    second: Colour

    def __call__(self, uv: Floats, width: Floats) -> Floats:
        """See `Texture`."""
        period = 2 * np.float32(self.size)
        waves = 2 * pulse(uv / period, width / period, 0.5) - 1
        return mix(self.first, self.second, 0.5 - 0.5 * waves[0] * waves[1])


@dataclass(frozen=True)
class Blocks:
    """Bricks, tiles, planks and panels: rows of blocks with joints.

    Each row is shifted by `shift` of a block, and each block has a shade of its own.
    """

    length: float
    height: float
    joint: float
    shift: float
    shades: float
    block: Colour
    mortar: Colour

    def __call__(self, uv: Floats, width: Floats) -> Floats:
        """See `Texture`."""
        v = uv[1] / np.float32(self.height)
        wv = width[1] / np.float32(self.height)
        row = np.floor(v)
        u = uv[0] / np.float32(self.length) + row * np.float32(self.shift)
        wu = width[0] / np.float32(self.length)
        solid = pulse(u, wu, 1 - self.joint / self.length) * pulse(
            v, wv, 1 - self.joint / self.height
        )
        shade = (cell_hash(np.floor(u), row) - np.float32(0.5)) * fade(1.0, np.maximum(wu, wv))
        return mix(self.mortar, self.block, solid) * (
            1 + np.float32(2 * self.shades) * shade * solid
        )


@dataclass(frozen=True)
class Stripes:
    """Stripes of `period` metres across u (axis 0: upright on a wall) or v (axis 1)."""

    period: float
    duty: float
    axis: int
    first: Colour
    second: Colour

    def __call__(self, uv: Floats, width: Floats) -> Floats:
        """See `Texture`."""
        period = np.float32(self.period)
        wave = pulse(uv[self.axis] / period, width[self.axis] / period, self.duty)
        return mix(self.first, self.second, wave)


@dataclass(frozen=True)
class Dots:
    """Discs of `radius` (a fraction of `period` metres) on a grid."""

    period: float
    radius: float
    first: Colour
    second: Colour

    def __call__(self, uv: Floats, width: Floats) -> Floats:
        """See `Texture`."""
        cell = uv / np.float32(self.period)
        offset = cell - np.floor(cell) - np.float32(0.5)
        blur = np.maximum(width.max(axis=0) / np.float32(self.period), np.float32(1e-3))
        edge_distance = np.float32(self.radius) - np.hypot(*offset)
        inside = np.clip(np.float32(0.5) + edge_distance / blur, 0, 1)
        clear = fade(0.6, blur)
        mean = np.float32(np.pi * self.radius**2)
        return mix(self.first, self.second, inside * clear + mean * (1 - clear))


@dataclass(frozen=True)
class Mottled:
    """Fractal noise between two colours: wood if stretched along u, carpet if fine, or plaster."""

    grain: float
    stretch: float
    first: Colour
    second: Colour

    def __call__(self, uv: Floats, width: Floats) -> Floats:
        """See `Texture`."""
        weight = noise(
            uv[0] / np.float32(self.grain * self.stretch), uv[1] / np.float32(self.grain)
        )
        contrast = 0.3 + 0.7 * fade(4 * self.grain, width[1])
        return mix(self.first, self.second, np.clip(0.5 + 0.3 * weight * contrast, 0, 1))


@dataclass(frozen=True)
class Poster:
    """A framed poster of `size` metres: bars, discs and a horizon, drawn from a seed.

    u and v are measured from its middle.
    """

    size: tuple[float, float]
    seed: int
    colours: tuple[Colour, ...]
    frame: Colour

    def __call__(self, uv: Floats, width: Floats) -> Floats:
        """See `Texture`."""
        rng = np.random.default_rng(self.seed)
        u, v = uv / np.asarray(self.size, np.float32)[:, None] + np.float32(0.5)
        footprint = width / np.asarray(self.size, np.float32)[:, None]
        blur = np.maximum(footprint.max(axis=0), np.float32(1e-3))
        horizon = v + rng.uniform(-0.5, 0.5) * (u - 0.5)
        sky = _above(horizon, rng.uniform(0.3, 0.7), blur)
        colour = mix(self.colours[0], self.colours[1], sky)
        for k in range(int(rng.integers(2, 6))):
            x = rng.uniform(0.1, 0.9)
            y = rng.uniform(0.1, 0.9)
            radius = rng.uniform(0.06, 0.3)
            if rng.random() < 0.5:
                distance = np.hypot(u - x, v - y)
            else:
                distance = np.maximum(np.abs(u - x), 2.5 * np.abs(v - y))
            inside = _above(radius - distance.astype(np.float32), 0.0, blur)
            colour = _painted_over(colour, self.colours[k % len(self.colours)], inside)
        edge = _above(np.maximum(np.abs(u - 0.5), np.abs(v - 0.5)), 0.46, blur)
        return _painted_over(colour, self.frame, edge)


def _painted_over(ground: Floats, paint: Colour, weight: Floats) -> Floats:
    """Return (3, N) colours of the ground under paint of the given weight, (N,)."""
    return ground + (np.asarray(paint, np.float32)[:, None] - ground) * weight


def _above(x: Floats, threshold: float, blur: Floats) -> Floats:
    """Return 1 if x is above the threshold, 0 below, with an edge as wide as the blur."""
    return np.clip(np.float32(0.5) + (x - np.float32(threshold)) / blur, 0, 1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Material:
    """A texture with a shift, a little dirt, and light of its own (lamps, windows)."""

    texture: Texture
    shift: tuple[float, float] = (0.0, 0.0)
    dirt: float = 0.04
    emission: float = 0.0

    def albedo(self, uv: Floats, width: Floats) -> Floats:
        """Return the linear reflectance (3, N) at texture coordinates (2, N) and footprints, m."""
        colour = self.texture(uv + np.asarray(self.shift, np.float32)[:, None], width)
        if self.dirt > 0:
            u, v = (uv + np.float32(self.shift[0])) / np.float32(0.025)
            colour = colour * (1 + np.float32(self.dirt) * noise(u, v))
        return np.clip(colour, 0.01, 0.95).astype(np.float32)
