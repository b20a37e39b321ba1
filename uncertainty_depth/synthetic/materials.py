# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Random colours and materials of floors, walls, ceilings and things. All colours are linear albedo."""

from __future__ import annotations

import colorsys

import numpy as np

from uncertainty_depth.synthetic.texture import (
    Blocks,
    Checker,
    Colour,
    Dots,
    Material,
    Mottled,
    Picture,
    Plain,
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
    """A colour drawn from ranges of hue, saturation and value, each 0 to 1."""
    return colorsys.hsv_to_rgb(
        rng.uniform(*hue) % 1.0, rng.uniform(*saturation), rng.uniform(*value)
    )


def paint(rng: Random) -> Colour:
    """A light, muted wall colour."""
    return hsv(
        rng,
        (0, 1) if rng.random() < 0.5 else (0.03, 0.2),
        (0.0, 0.15) if rng.random() < 0.5 else (0.1, 0.45),
        (0.4, 0.85),
    )


def vivid(rng: Random) -> Colour:
    """A saturated colour."""
    return hsv(rng, (0, 1), (0.5, 0.9), (0.15, 0.7))


def wood(rng: Random) -> Colour:
    """A brown from oak to walnut."""
    return hsv(rng, (0.05, 0.1), (0.45, 0.75), (0.12, 0.5))


def grey(rng: Random) -> Colour:
    """A nearly neutral grey."""
    return hsv(rng, (0, 1), (0.0, 0.08), (0.1, 0.6))


def scaled(colour: Colour, factor: float) -> Colour:
    """The same colour, darker or lighter."""
    red, green, blue = (min(factor * part, 0.95) for part in colour)
    return red, green, blue


def material(rng: Random, texture: Texture, dirt: float = 0.05) -> Material:
    """`texture` at a random shift, with its share of dirt."""
    return Material(texture, (rng.uniform(0, 5), rng.uniform(0, 5)), rng.uniform(0.2, 1.0) * dirt)


def planks(rng: Random) -> Texture:
    """Floor boards 8 to 20 cm wide."""
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


def tiles(rng: Random, smallest: float = 0.2, largest: float = 0.6) -> Texture:
    """Square tiles with joints."""
    size = rng.uniform(smallest, largest)
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
    """Bricks of the usual 25 by 7.5 cm, or blocks of twice that."""
    size = float(rng.choice([1.0, 1.0, 1.0, 2.0]))
    colour = hsv(rng, (-0.02, 0.07), (0.1, 0.7), (0.25, 0.6))
    return Blocks(
        0.25 * size, 0.075 * size, 0.012, 0.5, rng.uniform(0.15, 0.45), colour, grey(rng)
    )


def checker(rng: Random) -> Texture:
    """A checker floor of light and dark squares."""
    return Checker(
        rng.uniform(0.25, 0.5),
        hsv(rng, (0, 1), (0, 0.2), (0.5, 0.8)),
        hsv(rng, (0, 1), (0.1, 0.8), (0.04, 0.3)),
    )


def carpet(rng: Random) -> Texture:
    """A carpet or worn concrete."""
    colour = hsv(rng, (0, 1), (0.0, 0.6), (0.1, 0.5))
    return Mottled(rng.uniform(0.01, 0.03), 1.0, scaled(colour, 0.6), scaled(colour, 1.4))


def plaster(rng: Random) -> Texture:
    """Painted plaster with a soft unevenness."""
    colour = paint(rng)
    return Mottled(
        rng.uniform(0.02, 0.06), rng.uniform(1, 3), scaled(colour, 0.85), scaled(colour, 1.1)
    )


def grained(rng: Random) -> Texture:
    """Wood grain."""
    colour = wood(rng)
    return Mottled(
        rng.uniform(0.004, 0.01), rng.uniform(6, 12), scaled(colour, 0.6), scaled(colour, 1.3)
    )


def wallpaper(rng: Random) -> Texture:
    """Upright stripes or dots in two shades of one colour."""
    colour = paint(rng)
    other = scaled(colour, rng.uniform(0.6, 0.85)) if rng.random() < 0.7 else paint(rng)
    if rng.random() < 0.7:
        return Stripes(rng.uniform(0.1, 0.4), rng.uniform(0.3, 0.7), 0, colour, other)
    return Dots(rng.uniform(0.12, 0.3), rng.uniform(0.15, 0.35), colour, other)


def panelling(rng: Random) -> Texture:
    """Upright boards."""
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


def _draw(rng: Random, makers: list, weights: list[float]) -> Texture:
    return makers[rng.choice(len(makers), p=np.array(weights) / np.sum(weights))](rng)


def floor(rng: Random) -> Material:
    """Material of a floor."""
    return material(rng, _draw(rng, [planks, tiles, checker, carpet], [3, 2, 1.5, 2]))


def wall(rng: Random) -> Material:
    """Material of the walls of one room."""
    plain = lambda r: Plain(paint(r))  # noqa: E731
    return material(
        rng,
        _draw(rng, [plain, plaster, bricks, wallpaper, panelling, tiles], [2, 2, 2, 2, 1, 0.7]),
    )


def ceiling(rng: Random) -> Material:
    """Material of a ceiling: paint, office panels or boards."""
    white = hsv(rng, (0, 1), (0, 0.1), (0.6, 0.85))
    panels = lambda _: Blocks(0.6, 0.6, 0.02, 0.0, 0.05, white, scaled(white, 0.5))  # noqa: E731
    return material(rng, _draw(rng, [lambda _: Plain(white), panels, planks], [3, 2, 1]))


def thing(rng: Random) -> Material:
    """Material of a crate, a ball or a piece of furniture."""
    makers = [
        lambda r: Plain(vivid(r)),
        lambda r: Plain(paint(r)),
        lambda r: Checker(r.uniform(0.06, 0.15), vivid(r), paint(r)),
        lambda r: Stripes(
            r.uniform(0.06, 0.2), r.uniform(0.3, 0.7), int(r.integers(2)), vivid(r), paint(r)
        ),
        lambda r: Dots(r.uniform(0.08, 0.16), r.uniform(0.2, 0.35), vivid(r), paint(r)),
        lambda r: Blocks(
            2.0, r.uniform(0.08, 0.14), 0.008, 0.3, 0.3, wood(r), scaled(wood(r), 0.3)
        ),
        grained,
        carpet,
    ]
    return material(rng, _draw(rng, makers, [2, 1, 1, 1, 1, 2, 2, 1]), dirt=0.08)


def furniture(rng: Random) -> Material:
    """Material of furniture: wood, lacquer or metal."""
    makers = [
        grained,
        lambda r: Plain(wood(r)),
        lambda r: Plain(grey(r)),
        lambda r: Plain(paint(r)),
        lambda r: Plain(vivid(r)),
    ]
    return material(rng, _draw(rng, makers, [4, 2, 2, 2, 1]), dirt=0.06)


def picture(rng: Random, size: tuple[float, float]) -> Material:
    """A poster of `size` metres."""
    colours = tuple(vivid(rng) if rng.random() < 0.6 else paint(rng) for _ in range(5))
    frame = (
        scaled((1.0, 1.0, 1.0), rng.choice([0.03, 0.5, 0.9])) if rng.random() < 0.6 else wood(rng)
    )
    return Material(Picture(size, int(rng.integers(1 << 30)), colours, frame), dirt=0.0)


def glowing(colour: Colour, emission: float) -> Material:
    """A lamp or a window: `emission` times white paper under one unit of light."""
    return Material(Plain(colour), dirt=0.0, emission=emission)
