# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Near worlds: table-tops seen from an arm or a hand, and homes seen by low robots.

Both are rare among photographs that have depth, whose cameras were carried by people.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.worlds.varied import camera_look, home, lens, mount
from synthetic import materials, sensors
from synthetic.config import SynthesisConfig
from synthetic.furnishing import Piece, block
from synthetic.materials import Random
from synthetic.render import Scene
from synthetic.sensors import Rig
from synthetic.solids import Box, Frustum, Solid, Sphere

STREAM = 6  # of random numbers; `furnishing`, `source` and `varied` use those below
TABLES = 0.6
"""Fraction of worlds that are table-tops; the others have low robots."""
DISTANCE = (0.35, 1.6)  # metres from the camera to the point of the table it looks at
DOWN = (15.0, 70.0)  # degrees that a table-top's camera looks down
FURNITURE = 1.6  # metres: larger solids are walls, floors and ceilings
TRIES = 20  # directions to look at a table from, until the camera is in the room
LOW = (0.08, 0.5)  # metres from the floor to a low robot's camera


def build(config: SynthesisConfig, number: int, look: Random) -> tuple[Scene, Rig]:
    """Return world `number` of a seed and its robot, the same on each call."""
    rng = np.random.default_rng([config.seed, number, STREAM])
    scene = home(rng)
    camera = lens(config.width, config.height, rng)
    if rng.random() < TABLES:
        scene, camera_to_world = _table_top(rng, scene)
        base = sensors.base_to_world(*scene.drive.pose(0.0))
        return scene, Rig(camera, np.linalg.inv(base) @ camera_to_world, camera_look(rng))
    yaw, pitch, roll = np.deg2rad([rng.uniform(-180, 180), rng.normal(-6, 8), rng.normal(0, 2)])
    return scene, Rig(camera, mount(rng.uniform(*LOW), yaw, pitch, roll), camera_look(rng))


def _table_top(rng: Random, scene: Scene) -> tuple[Scene, np.ndarray]:
    """Stand a laid table in the middle of the first room; return the scene and a view of it."""
    low, high = scene.extent
    x, y = (low[:2] + high[:2]) / 2 + rng.uniform(-0.2, 0.2, 2) * (high - low)[:2]
    table, height = laid_table(rng)
    reach = max(table.half) + 0.1
    others = [
        solid
        for solid in scene.solids
        if solid.bound > FURNITURE
        or np.hypot(solid.centre[0] - x, solid.centre[1] - y) > reach + solid.bound
        or solid.centre[2] > 1.9
    ]
    on_table = table.placed(float(x), float(y), rng.uniform(-np.pi, np.pi))
    target = np.array([x, y, height]) + rng.uniform(-0.15, 0.15, 3) * (1, 1, 0)
    distance = np.exp(rng.uniform(*np.log(DISTANCE)))
    pitch = rng.uniform(*np.deg2rad(DOWN))
    roll = np.deg2rad(rng.normal(0, 4))
    for heading in rng.uniform(-np.pi, np.pi, TRIES):
        camera_to_world = mount(0.0, heading, pitch, roll)
        camera_to_world[:3, 3] = target - distance * camera_to_world[:3, 2]
        if (
            np.abs(camera_to_world[:2, 3] - (low + high)[:2] / 2) < (high - low)[:2] / 2 - 0.1
        ).all():
            break  # it is in the room
    return replace(scene, solids=others + on_table), camera_to_world


def laid_table(rng: Random) -> tuple[Piece, float]:
    """Draw a table with many small things on it, and return its height, metres."""
    width = rng.uniform(0.9, 1.8)
    depth = rng.uniform(0.7, 1.2)
    height = rng.uniform(0.4, 0.95)
    look = materials.furniture(rng) if rng.random() < 0.7 else materials.thing(rng)
    solids: list[Solid] = [block(0, 0, height - 0.04, width, depth, 0.04, look)]
    for x in (-0.45, 0.45):
        for y in (-0.45, 0.45):
            solids.append(block(x * width, y * depth, 0, 0.05, 0.05, height - 0.04, look))
    for _ in range(int(rng.integers(2, 22))):
        near = np.clip(rng.normal(0, 0.22, 2), -0.45, 0.45) * (width, depth)
        solids.append(_thing(rng, float(near[0]), float(near[1]), height))
    return Piece(solids, (width / 2, depth / 2)), height


def _thing(rng: Random, x: float, y: float, z: float) -> Solid:
    """Draw a box, a book, a cup, a can, a bottle or a ball on a table."""
    look = materials.thing(rng)
    kind = rng.integers(6)
    size = float(np.exp(rng.uniform(np.log(0.04), np.log(0.16))))
    yaw = rng.uniform(0, np.pi)
    if kind == 0:
        return Sphere((x, y, z + size / 2), size / 2, look, "sphere")
    if kind == 1:
        return block(
            x, y, z, 0.15 + size, 0.12 + size / 2, rng.uniform(0.01, 0.05), look, "box", yaw
        )
    if kind in (2, 3):
        radius = rng.uniform(0.02, 0.06)
        top = radius * rng.uniform(0.4, 1.3)
        return Frustum((x, y, z), rng.uniform(0.06, 0.28), radius, top, look, "cup")
    depth, height = size * rng.uniform(0.3, 1.5, 2)
    return Box((x, y, z + height / 2), (size / 2, depth / 2, height / 2), look, "box", yaw)
