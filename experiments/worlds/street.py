# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Streets, yards and parks: ground, buildings, cars, trees and people under the sky.

The road runs along x. The robot drives the first metres of it, where no obstacle stands.
`synthetic:scenes=experiments.worlds.street` shows them to the camera of the rooms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.worlds.people import person
from experiments.worlds.sky import Sky, Sun
from synthetic import materials
from synthetic.config import SynthesisConfig
from synthetic.furnishing import Piece, block, crates
from synthetic.materials import Blocks, Material, Mottled, Plain, Random, Stripes
from synthetic.render import Scene
from synthetic.rooms import Drive, smooth_loop
from synthetic.sensors import Rig
from synthetic.solids import Solid, Sphere

REACH = 110.0  # metres of street ahead and behind
DRIVE = 14.0  # metres that the robot drives
SUN_DISTANCE = 220.0
SHADOWED = 70.0  # radius around the robot in which the sun casts shadows, metres


def build(config: SynthesisConfig, number: int, look: Random) -> tuple[Scene, Rig]:
    """Return street `number` of a seed and the robot of the rooms, the same on each call."""
    scene = street(np.random.default_rng([config.seed, number]))
    return scene, Rig.usual(config.width, config.height, look)


def street(rng: Random) -> Scene:
    """Draw a street between houses, or an open place without a road."""
    is_open = rng.random() < 0.25
    half_road = rng.uniform(2.5, 6.5)
    pavement = rng.uniform(1.2, 4.0)
    front = half_road + pavement + rng.choice([0.0, rng.uniform(1, 8)])
    on_pavement = rng.random() < 0.4
    lane = half_road + pavement / 2 if on_pavement else -half_road / 2
    solids = _ground(rng, half_road, pavement, is_open)
    solids += _houses(rng, front + (rng.uniform(5, 25) if is_open else 0), is_open)
    solids += _traffic(rng, half_road, lane)
    solids += _beside(rng, half_road, pavement, front, lane)
    corners = np.array([[0, -0.3], [DRIVE / 2, -0.3], [DRIVE, -0.3]])
    back = np.array([[DRIVE, 0.3], [DRIVE / 2, 0.3], [0, 0.3]])
    path = smooth_loop(np.concatenate([corners, back]) + np.array([0, lane]))
    sun, ambient, sky = _daylight(rng)
    extent = np.array([(-1e4, -1e4, 0), (1e4, 1e4, 1e4)], np.float32)
    return Scene(solids, [sun], ambient, Drive(path, 1.0, rng.uniform(0, 100)), extent, sky)


def _daylight(rng: Random) -> tuple[Sun, float, Sky]:
    """Draw sun and sky: clear or overcast, noon to dusk."""
    azimuth = rng.uniform(-np.pi, np.pi)
    elevation = np.deg2rad(rng.uniform(12, 75))
    along = np.cos(elevation)
    toward = np.array([along * np.cos(azimuth), along * np.sin(azimuth), np.sin(elevation)])
    middle = np.array([12.0, 0.0, 0.0])
    position = middle + SUN_DISTANCE * toward
    overcast = rng.random() < 0.4
    strength = rng.uniform(0.0, 0.3) if overcast else rng.uniform(0.5, 1.6)
    ambient = rng.uniform(0.25, 0.6)
    warmth = np.exp(-elevation / 0.4)
    colour = (1.0, 1.0 - 0.2 * warmth, 1.0 - 0.5 * warmth)
    grey = rng.uniform(0.5, 1.2)
    blue = (0.35 * grey, 0.55 * grey, 0.95 * grey)
    white = (grey, grey, 1.03 * grey)
    sky = Sky(white, white if overcast else blue, rng.uniform(0.0, 0.35))
    x, y, z = position.tolist()
    target = (float(middle[0]), 0.0, 0.0)
    spread = SHADOWED / SUN_DISTANCE
    sun = Sun((x, y, z), colour, strength * SUN_DISTANCE**2, target, spread)
    return sun, ambient, sky


def _asphalt(rng: Random) -> Material:
    colour = materials.hsv(rng, (0, 1), (0, 0.12), (0.06, 0.35))
    texture = Mottled(
        rng.uniform(0.02, 0.3), 1.0, materials.scaled(colour, 0.75), materials.scaled(colour, 1.25)
    )
    return materials.material(rng, texture, 0.15)


def _paving(rng: Random) -> Material:
    if rng.random() < 0.4:
        return _asphalt(rng)
    return materials.material(rng, materials.tiles(rng, 0.2, 1.0), 0.1)


def _ground(rng: Random, half_road: float, pavement: float, is_open: bool) -> list[Solid]:
    base = grass(rng) if rng.random() < 0.6 else _paving(rng)
    solids: list[Solid] = [block(0, 0, -1.0, 6 * REACH, 6 * REACH, 1.0, base, "ground")]
    if is_open and rng.random() < 0.6:
        return solids
    solids.append(block(0, 0, 0, 4 * REACH, 2 * half_road, 0.01, _asphalt(rng), "ground"))
    kerb = rng.choice([0.03, rng.uniform(0.08, 0.16)])
    slabs = _paving(rng)
    for side in (-1, 1):
        middle = side * (half_road + pavement / 2)
        solids.append(block(0, middle, 0, 4 * REACH, pavement, kerb, slabs, "ground"))
    white = Stripes(rng.uniform(3, 9), rng.uniform(0.3, 0.6), 0, (0.1, 0.1, 0.1), (0.7, 0.7, 0.7))
    lines = [0.0] if rng.random() < 0.7 else []
    lines += [-half_road + 0.3, half_road - 0.3] if rng.random() < 0.4 else []
    for y in lines:
        look = materials.material(rng, white)
        solids.append(block(0, y, 0, 2 * REACH, 0.12, 0.012, look, "ground"))
    return solids


def _facade(rng: Random) -> Material:
    """Draw walls with rows of windows, or plain ones."""
    wall = (
        materials.paint(rng)
        if rng.random() < 0.6
        else materials.hsv(rng, (0.0, 0.1), (0.1, 0.6), (0.15, 0.6))
    )
    if rng.random() < 0.2:
        return materials.wall(rng)
    window = materials.hsv(rng, (0.5, 0.65), (0, 0.4), (0.03, 0.35))
    across = rng.uniform(1.5, 4.0)
    up = rng.uniform(2.6, 3.6)
    joint = rng.uniform(0.35, 0.65) * min(across, up)
    texture = Blocks(across, up, joint, 0.0, rng.uniform(0, 0.4), window, wall)
    return materials.material(rng, texture, 0.08)


def _houses(rng: Random, front: float, is_open: bool) -> list[Solid]:
    solids: list[Solid] = []
    for side in (-1, 1):
        x = -25.0
        setback = 0.0 if rng.random() < 0.5 else rng.uniform(0, 3)
        while x < REACH:
            width = rng.uniform(5, 28)
            deep = rng.uniform(6, 15)
            y = side * (front + rng.uniform(0, setback + 0.01) + deep / 2)
            tall = rng.uniform(3, 18)
            if rng.random() < (0.5 if is_open else 0.85):
                solids.append(
                    block(x + width / 2, y, 0, width, deep, tall, _facade(rng), "building")
                )
                roof = materials.grained(rng)
                high = rng.uniform(0.2, 1.5)
                surface = materials.material(rng, roof)
                size = (width + 0.5, deep + 0.5, high)
                solids.append(block(x + width / 2, y, tall, *size, surface, "building"))
            x += width + rng.choice([0.0, rng.uniform(1, 12)])
    end = block(REACH, 0, 0, 5, 4 * front, rng.uniform(4, 20), _facade(rng), "building")
    return [*solids, end] if rng.random() < 0.5 else solids


def _traffic(rng: Random, half_road: float, lane: float) -> list[Solid]:
    """Draw parked and driving cars."""
    solids: list[Solid] = []
    for side in (-1, 1):
        parked = rng.random() < 0.6
        y = side * (half_road - 1.0)
        x = rng.uniform(-8, 0)
        while parked and x < 60:
            parked_car = car(rng)
            if rng.random() < 0.7 and (abs(y - lane) > 2.3 or x > DRIVE + 6):
                yaw = rng.choice([0, np.pi]) + rng.normal(0, 0.03)
                solids += parked_car.placed(x, y, yaw)
            x += 2 * parked_car.half[0] + rng.uniform(0.5, 5)
    for _ in range(int(rng.integers(0, 4))):
        moving_car = car(rng)
        y = rng.choice([-1, 1]) * rng.uniform(0.25, 0.5) * half_road
        x = rng.uniform(DRIVE + 7, 80)
        solids += moving_car.placed(x, y, rng.choice([0, np.pi]) + rng.normal(0, 0.05))
    return solids


def _beside(
    rng: Random, half_road: float, pavement: float, front: float, lane: float
) -> list[Solid]:
    """Draw trees, hedges, posts, bins and people beside the road, clear of the robot."""
    solids: list[Solid] = []
    makers: list[Callable[[Random], Piece]] = [tree, tree, hedge, post, post, person, person]
    makers.append(crates)
    clutter = int(rng.integers(4, 26))
    for _ in range(clutter):
        piece = makers[int(rng.integers(len(makers)))](rng)
        x = 60 * rng.random() ** 1.5 - 3
        y = float(rng.choice([-1, 1])) * rng.uniform(half_road + 0.3, max(front, half_road + 3))
        if abs(y - lane) < 1.4 + min(piece.half[1], 0.6) and x < DRIVE + 3:
            continue
        # All but people stand along the road: of two draws theirs alone is an angle.
        is_person = piece.solids[0].label == "person"
        yaw = rng.uniform(-np.pi, np.pi) if is_person else 0.0 * rng.integers(2)
        solids += piece.placed(x, y, yaw)
    for _ in range(int(rng.integers(0, 3))):
        walker = person(rng)
        x = rng.uniform(DRIVE + 2, 40)
        solids += walker.placed(x, rng.uniform(-1, 1) * half_road, rng.uniform(-np.pi, np.pi))
    return solids


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
