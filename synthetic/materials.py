# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Textures, filtered over the footprint of a pixel, and random materials made of them.

A texture fades to its mean when it gets too fine.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Sequence
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


Random = np.random.Generator


def hsv(
    rng: Random,
    hue: tuple[float, float],
    saturation: tuple[float, float],
    value: tuple[float, float],
) -> Colour:
    """Draw a colour from ranges of hue, saturation and value, each 0 to 1."""
    return colorsys.hsv_to_rgb(
        rng.uniform(*hue) % 1.0, rng.uniform(*saturation), rng.uniform(*value)
    )


def paint(rng: Random) -> Colour:
    """Draw a light, muted wall colour."""
    return hsv(
        rng,
        (0, 1) if rng.random() < 0.5 else (0.03, 0.2),
        (0.0, 0.15) if rng.random() < 0.5 else (0.1, 0.45),
        (0.4, 0.85),
    )


def vivid(rng: Random) -> Colour:
    """Draw a saturated colour."""
    return hsv(rng, (0, 1), (0.5, 0.9), (0.15, 0.7))


def wood(rng: Random) -> Colour:
    """Draw a brown from oak to walnut."""
    return hsv(rng, (0.05, 0.1), (0.45, 0.75), (0.12, 0.5))


def grey(rng: Random) -> Colour:
    """Draw a nearly neutral grey."""
    return hsv(rng, (0, 1), (0.0, 0.08), (0.1, 0.6))


def scaled(colour: Colour, factor: float) -> Colour:
    """Return the same colour, darker or lighter."""
    red, green, blue = colour
    return min(factor * red, 0.95), min(factor * green, 0.95), min(factor * blue, 0.95)


def material(rng: Random, texture: Texture, dirt: float = 0.05) -> Material:
    """Return a material of the texture at a random shift, with up to `dirt` of dirt."""
    return Material(texture, (rng.uniform(0, 5), rng.uniform(0, 5)), rng.uniform(0.2, 1.0) * dirt)


def planks(rng: Random) -> Texture:
    """Draw floor boards 8 to 20 cm wide."""
    colour = wood(rng)
    height = rng.uniform(0.08, 0.2)
    return Blocks(
        rng.uniform(0.9, 1.8),
        height,
        0.006,
        rng.uniform(0.3, 0.45),
        rng.uniform(0.15, 0.4),
        colour,
        scaled(colour, 0.35),
    )


def tiles(rng: Random, min_size: float = 0.2, max_size: float = 0.6) -> Texture:
    """Draw square tiles with joints."""
    size = rng.uniform(min_size, max_size)
    colour = paint(rng)
    return Blocks(
        size,
        size,
        0.012,
        0.0,
        rng.uniform(0.02, 0.15),
        colour,
        scaled(colour, rng.uniform(0.3, 0.6)),
    )


def bricks(rng: Random) -> Texture:
    """Draw bricks of the usual 25 by 7.5 cm, or blocks of twice that size."""
    size = float(rng.choice([1.0, 1.0, 1.0, 2.0]))
    colour = hsv(rng, (-0.02, 0.07), (0.1, 0.7), (0.25, 0.6))
    return Blocks(
        0.25 * size, 0.075 * size, 0.012, 0.5, rng.uniform(0.15, 0.45), colour, grey(rng)
    )


def checker(rng: Random) -> Texture:
    """Draw a checker floor of light and dark squares."""
    return Checker(
        rng.uniform(0.25, 0.5),
        hsv(rng, (0, 1), (0, 0.2), (0.5, 0.8)),
        hsv(rng, (0, 1), (0.1, 0.8), (0.04, 0.3)),
    )


def carpet(rng: Random) -> Texture:
    """Draw carpet or worn concrete."""
    colour = hsv(rng, (0, 1), (0.0, 0.6), (0.1, 0.5))
    return Mottled(rng.uniform(0.01, 0.03), 1.0, scaled(colour, 0.6), scaled(colour, 1.4))


def plaster(rng: Random) -> Texture:
    """Draw painted plaster with soft unevenness."""
    colour = paint(rng)
    return Mottled(
        rng.uniform(0.02, 0.06), rng.uniform(1, 3), scaled(colour, 0.85), scaled(colour, 1.1)
    )


def grained(rng: Random) -> Texture:
    """Draw wood grain."""
    colour = wood(rng)
    return Mottled(
        rng.uniform(0.004, 0.01), rng.uniform(6, 12), scaled(colour, 0.6), scaled(colour, 1.3)
    )


def wallpaper(rng: Random) -> Texture:
    """Draw upright stripes or dots in two shades of one colour."""
    colour = paint(rng)
    other = scaled(colour, rng.uniform(0.6, 0.85)) if rng.random() < 0.7 else paint(rng)
    if rng.random() < 0.7:
        return Stripes(rng.uniform(0.1, 0.4), rng.uniform(0.3, 0.7), 0, colour, other)
    return Dots(rng.uniform(0.12, 0.3), rng.uniform(0.15, 0.35), colour, other)


def panelling(rng: Random) -> Texture:
    """Draw upright boards."""
    colour = wood(rng) if rng.random() < 0.6 else paint(rng)
    return Blocks(
        rng.uniform(0.08, 0.2),
        4.0,
        0.008,
        0.0,
        rng.uniform(0.05, 0.25),
        colour,
        scaled(colour, 0.4),
    )


def _draw(
    rng: Random, makers: Sequence[Callable[[Random], Texture]], weights: Sequence[float]
) -> Texture:
    """Draw a texture by one of the makers, chosen by weight."""
    return makers[rng.choice(len(makers), p=np.array(weights) / np.sum(weights))](rng)


def _plain_paint(rng: Random) -> Texture:
    return Plain(paint(rng))


def _plain_vivid(rng: Random) -> Texture:
    return Plain(vivid(rng))


def _plain_wood(rng: Random) -> Texture:
    return Plain(wood(rng))


def _plain_grey(rng: Random) -> Texture:
    return Plain(grey(rng))


def _small_checker(rng: Random) -> Texture:
    return Checker(rng.uniform(0.06, 0.15), vivid(rng), paint(rng))


def _small_stripes(rng: Random) -> Texture:
    period = rng.uniform(0.06, 0.2)
    duty = rng.uniform(0.3, 0.7)
    return Stripes(period, duty, int(rng.integers(2)), vivid(rng), paint(rng))


def _small_dots(rng: Random) -> Texture:
    return Dots(rng.uniform(0.08, 0.16), rng.uniform(0.2, 0.35), vivid(rng), paint(rng))


def _boards(rng: Random) -> Texture:
    height = rng.uniform(0.08, 0.14)
    return Blocks(2.0, height, 0.008, 0.3, 0.3, wood(rng), scaled(wood(rng), 0.3))


def floor(rng: Random) -> Material:
    """Draw the material of a floor."""
    return material(rng, _draw(rng, [planks, tiles, checker, carpet], [3, 2, 1.5, 2]))


def wall(rng: Random) -> Material:
    """Draw the material of the walls of one room."""
    makers = [_plain_paint, plaster, bricks, wallpaper, panelling, tiles]
    return material(rng, _draw(rng, makers, [2, 2, 2, 2, 1, 0.7]))


def ceiling(rng: Random) -> Material:
    """Draw the material of a ceiling: paint, office panels or boards."""
    white = hsv(rng, (0, 1), (0, 0.1), (0.6, 0.85))

    def plain(_: Random) -> Texture:
        return Plain(white)

    def panels(_: Random) -> Texture:
        return Blocks(0.6, 0.6, 0.02, 0.0, 0.05, white, scaled(white, 0.5))

    return material(rng, _draw(rng, [plain, panels, planks], [3, 2, 1]))


def thing(rng: Random) -> Material:
    """Draw the material of a crate, a ball or a piece of furniture."""
    makers = [
        _plain_vivid,
        _plain_paint,
        _small_checker,
        _small_stripes,
        _small_dots,
        _boards,
        grained,
        carpet,
    ]
    return material(rng, _draw(rng, makers, [2, 1, 1, 1, 1, 2, 2, 1]), dirt=0.08)


def furniture(rng: Random) -> Material:
    """Draw the material of furniture: wood, lacquer or metal."""
    makers = [grained, _plain_wood, _plain_grey, _plain_paint, _plain_vivid]
    return material(rng, _draw(rng, makers, [4, 2, 2, 2, 1]), dirt=0.06)


def poster(rng: Random, size: tuple[float, float]) -> Material:
    """Draw a poster of `size` metres."""
    colours = tuple(vivid(rng) if rng.random() < 0.6 else paint(rng) for _ in range(5))
    if rng.random() < 0.6:
        frame = scaled((1.0, 1.0, 1.0), rng.choice([0.03, 0.5, 0.9]))
    else:
        frame = wood(rng)
    return Material(Poster(size, int(rng.integers(1 << 30)), colours, frame), dirt=0.0)


def glowing(colour: Colour, emission: float) -> Material:
    """Return the material of a lamp or window: `emission` times white paper in unit light."""
    return Material(Plain(colour), dirt=0.0, emission=emission)
