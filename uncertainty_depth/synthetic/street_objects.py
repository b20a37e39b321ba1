# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Objects of a street: cars, trees, hedges, lamp posts and signs."""

from __future__ import annotations

from uncertainty_depth.synthetic import materials
from uncertainty_depth.synthetic.furniture import Piece, block
from uncertainty_depth.synthetic.materials import Random
from uncertainty_depth.synthetic.solids import Solid, Sphere
from uncertainty_depth.synthetic.texture import Material, Mottled, Plain


def grass(rng: Random) -> Material:
    """Draw grass or leaves from above."""
    colour = materials.hsv(rng, (0.15, 0.33), (0.3, 0.8), (0.06, 0.3))
    texture = Mottled(
        rng.uniform(0.03, 0.4), 1.0, materials.scaled(colour, 0.5), materials.scaled(colour, 1.5)
    )
    return materials.material(rng, texture, 0.2)


def car(rng: Random) -> Piece:
    """Draw a car, a van or a lorry along x."""
    paint = Material(Plain(materials.hsv(rng, (0, 1), (0, 0.9), (0.02, 0.8))), dirt=0.05)
    glass = Material(Plain(materials.hsv(rng, (0.5, 0.65), (0, 0.3), (0.02, 0.2))))
    tyre = Material(Plain((0.03, 0.03, 0.03)))
    is_van = rng.random() < 0.25
    long = rng.uniform(4.6, 7.5) if is_van else rng.uniform(3.5, 4.9)
    wide = rng.uniform(1.9, 2.3) if is_van else rng.uniform(1.6, 1.9)
    low = rng.uniform(0.2, 0.35)
    waist = rng.uniform(0.85, 1.05)
    tall = rng.uniform(2.0, 3.2) if is_van else rng.uniform(1.4, 1.7)
    cabin = 0.95 * long if is_van else rng.uniform(0.5, 0.65) * long
    at = (long - cabin) / 2 * rng.uniform(-0.6, 0.2)
    above = tall - waist
    look = paint if is_van else glass
    solids: list[Solid] = [
        block(0, 0, low, long, wide, waist - low, paint, "car"),
        block(at, 0, waist, cabin, 0.9 * wide, 0.85 * above, look, "car"),
        block(at, 0, waist + 0.85 * above, 0.9 * cabin, 0.88 * wide, 0.15 * above, paint, "car"),
    ]
    for x in (-0.31 * long, 0.31 * long):
        solids.append(block(x, 0, 0, 0.62, wide + 0.02, 0.6, tyre, "car"))
    return Piece(solids, (long / 2, wide / 2))


def tree(rng: Random) -> Piece:
    """Draw a tree with a crown of two to four spheres."""
    trunk = Material(materials.grained(rng), dirt=0.2)
    green = materials.hsv(rng, (0.12, 0.36), (0.3, 0.8), (0.04, 0.35))
    leaves = materials.material(
        rng,
        Mottled(
            rng.uniform(0.05, 0.3), 1.0, materials.scaled(green, 0.3), materials.scaled(green, 1.6)
        ),
        0.2,
    )
    tall = rng.uniform(1.8, 4.0)
    thick = rng.uniform(0.12, 0.4)
    crown = rng.uniform(0.8, 2.4)
    solids: list[Solid] = [block(0, 0, 0, thick, thick, tall + crown / 2, trunk, "tree")]
    for _ in range(int(rng.integers(2, 5))):
        x, y = rng.uniform(-0.6, 0.6, 2) * crown
        z = tall + crown * rng.uniform(0.3, 1.6)
        solids.append(Sphere((x, y, z), crown * rng.uniform(0.6, 1.0), leaves, "tree"))
    return Piece(solids, (thick, thick))


def hedge(rng: Random) -> Piece:
    """Draw a hedge or a garden wall."""
    long = rng.uniform(2, 12)
    look = grass(rng) if rng.random() < 0.6 else materials.wall(rng)
    solid: Solid = block(
        0, 0, 0, long, rng.uniform(0.1, 0.8), rng.uniform(0.6, 2.0), look, "hedge"
    )
    return Piece([solid], (long / 2, 0.4))


def post(rng: Random) -> Piece:
    """Draw a lamp post, a sign or a bollard."""
    look = materials.furniture(rng)
    tall = rng.choice([rng.uniform(0.7, 1.1), rng.uniform(2.2, 3), rng.uniform(4, 8)])
    thick = rng.uniform(0.06, 0.18)
    solids: list[Solid] = [block(0, 0, 0, thick, thick, tall, look, "post")]
    if tall > 2 and rng.random() < 0.7:
        plate = rng.uniform(0.4, 0.9)
        solids.append(block(0, 0, tall - plate, 0.05, plate, plate, materials.thing(rng), "post"))
    return Piece(solids, (thick, thick))
