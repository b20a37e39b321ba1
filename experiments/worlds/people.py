# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""People and home furniture of the varied worlds; of boxes and spheres, as all training worlds."""

from __future__ import annotations

import numpy as np

from synthetic import materials
from synthetic.furnishing import Maker, Piece, block
from synthetic.materials import Blocks, Material, Random
from synthetic.solids import Solid, Sphere


def person(rng: Random) -> Piece:
    """Draw a standing or walking person, 1.1 to 1.95 m tall."""
    tall = rng.uniform(1.1, 1.95) if rng.random() < 0.2 else rng.uniform(1.55, 1.95)
    trousers = materials.thing(rng)
    shirt = materials.thing(rng)
    skin = Material(materials.Plain(materials.hsv(rng, (0.04, 0.09), (0.3, 0.7), (0.15, 0.7))))
    leg = 0.48 * tall
    body = 0.36 * tall
    wide = 0.24 * tall * rng.uniform(0.85, 1.2)
    stride = rng.uniform(0, 0.14) * tall
    head = 0.065 * tall
    solids: list[Solid] = [
        block(-wide / 4, -stride, 0, 0.4 * wide, 0.4 * wide, leg, trousers, "person"),
        block(wide / 4, stride, 0, 0.4 * wide, 0.4 * wide, leg, trousers, "person"),
        block(0, 0, leg, wide, 0.6 * wide, body, shirt, "person"),
        block(-0.6 * wide, stride, leg - 0.05, 0.2 * wide, 0.3 * wide, body, shirt, "person"),
        block(0.6 * wide, -stride, leg - 0.05, 0.2 * wide, 0.3 * wide, body, shirt, "person"),
        Sphere((0, 0, leg + body + head), 1.1 * head, skin, "person"),
    ]
    return Piece(solids, (0.75 * wide, 0.2 * tall))


def bed(rng: Random) -> Piece:
    """Draw a bed with pillows and a headboard."""
    width = float(rng.choice([0.95, 1.4, 1.8]))
    height = rng.uniform(0.35, 0.6)
    frame = materials.furniture(rng)
    sheet = materials.thing(rng)
    pillow = materials.thing(rng)
    solids: list[Solid] = [
        block(0, 0, 0, width, 2.0, 0.6 * height, frame),
        block(0, 0, 0.6 * height, 0.97 * width, 1.95, 0.4 * height, sheet),
        block(0, -1.0, 0, width, 0.05, rng.uniform(0.7, 1.2), frame),
    ]
    for x in np.linspace(-0.25, 0.25, 1 if width < 1 else 2) * width:
        solids.append(block(float(x), -0.7, height, 0.6, 0.35, 0.12, pillow, yaw=0.1))
    return Piece(solids, (width / 2, 1.03))


def counter(rng: Random) -> Piece:
    """Draw a kitchen counter with cupboards above it."""
    width = rng.uniform(1.2, 3.0)
    colour = materials.wood(rng) if rng.random() < 0.5 else materials.paint(rng)
    doors = Blocks(0.6, 0.9, 0.015, 0.0, 0.05, colour, materials.scaled(colour, 0.3))
    look = Material(doors, (width / 2, 0.45))
    top = materials.furniture(rng)
    solids: list[Solid] = [
        block(0, 0, 0, width, 0.58, 0.86, look),
        block(0, 0.01, 0.86, width + 0.02, 0.62, 0.04, top),
        block(0, -0.13, 1.4, width, 0.34, 0.7, look),
    ]
    for x in np.linspace(-0.4, 0.4, int(rng.integers(1, 5))) * width:
        size = rng.uniform(0.1, 0.3)
        height = rng.uniform(0.08, 0.4)
        solids.append(block(float(x), 0.1, 0.9, size, size, height, materials.thing(rng)))
    return Piece(solids, (width / 2 + 0.01, 0.32))


def desk(rng: Random) -> Piece:
    """Draw a desk with a screen on it."""
    width = rng.uniform(1.0, 1.6)
    look = materials.furniture(rng)
    dark = Material(materials.Plain(materials.hsv(rng, (0, 1), (0, 0.3), (0.01, 0.1))))
    solids: list[Solid] = [
        block(0, 0, 0.7, width, 0.7, 0.03, look),
        block(-width / 2 + 0.25, 0, 0, 0.42, 0.6, 0.7, look),
        block(width / 2 - 0.03, 0, 0, 0.04, 0.6, 0.7, look),
        block(0.1, -0.2, 0.83, rng.uniform(0.4, 0.7), 0.05, rng.uniform(0.25, 0.4), dark),
        block(0.1, -0.2, 0.73, 0.05, 0.05, 0.12, dark),
    ]
    return Piece(solids, (width / 2, 0.35))


HOME: list[Maker] = [bed, counter, desk]
