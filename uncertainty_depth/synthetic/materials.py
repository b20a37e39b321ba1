# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Random materials of floors, walls, ceilings and objects; colours are linear albedo."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Sequence

import numpy as np

from uncertainty_depth.synthetic.texture import (
    Blocks,
    Checker,
    Colour,
    Dots,
    Material,
    Mottled,
    Plain,
    Poster,
    Stripes,
    Texture,
)

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
