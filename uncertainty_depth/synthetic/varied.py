# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Varied worlds: the robot's rooms, homes in any light and texture, and streets.

Domain randomisation (Tobin et al. 2017): a network that has seen enough unlike renderings takes a
photograph for one more of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from uncertainty_depth.synthetic import furnishing, materials, rig
from uncertainty_depth.synthetic.furniture import ALONG_WALLS, IN_THE_OPEN
from uncertainty_depth.synthetic.materials import Random
from uncertainty_depth.synthetic.people import HOME, person
from uncertainty_depth.synthetic.rig import Rig
from uncertainty_depth.synthetic.rooms import Plan, Room, plan
from uncertainty_depth.synthetic.scene import Lamp, Scene
from uncertainty_depth.synthetic.solids import Solid
from uncertainty_depth.synthetic.street import street
from uncertainty_depth.synthetic.trajectory import smooth_loop

PROBABILITIES = {"rooms": 0.3, "home": 0.4, "street": 0.3}
STREAM = 5  # of random numbers; `furnishing` and `source` use those below
REPAINTED = (0.0, 0.5)  # fraction of the solids of a home that get any texture


def build(
    seed: int, number: int, test_objects: bool, width: int, height: int, look: Random
) -> tuple[Scene, Rig]:
    """Return world `number` of `seed` and its robot, the same on each call."""
    rng = np.random.default_rng([seed, number, STREAM])
    theme = rng.choice(list(PROBABILITIES), p=list(PROBABILITIES.values()))
    if theme == "rooms":
        return furnishing.build(seed, number, test_objects), rig.usual(width, height, look)
    if theme == "street":
        return street(rng), rig.varied(width, height, rng, outdoors=True)
    return _home(rng), rig.varied(width, height, rng, outdoors=False)


def _home(rng: Random) -> Scene:
    """Draw furnished rooms with people, any textures and any light."""
    rooms = _chamber(rng) if rng.random() < 0.6 else plan(rng)
    along_walls = [*ALONG_WALLS, *HOME, *HOME]
    in_the_open = [*IN_THE_OPEN, person, person]
    clutter = rng.uniform(0.6, 2.2)
    plain = furnishing.furnish(rng, rooms, along_walls, in_the_open, clutter)
    fraction = rng.uniform(*REPAINTED)
    lamps = [_relit(rng, lamp) for lamp in plain.lamps]
    ambient = np.exp(rng.uniform(np.log(0.02), np.log(0.6)))
    solids = [_repainted(rng, solid, fraction) for solid in plain.solids]
    return replace(plain, solids=solids, lamps=lamps, ambient=float(ambient))


def _chamber(rng: Random) -> Plan:
    """Draw one small room and a short path at one side of it."""
    width = rng.uniform(2.6, 5.5)
    length = rng.uniform(2.6, 7.0)
    x = rng.uniform(0.6, width - 0.6)
    y = rng.uniform(0.6, 1.2)
    angle = np.linspace(0, 2 * np.pi, 6, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    path = smooth_loop(np.array([x, y]) + 0.25 * circle)
    return Plan([Room(0, 0, width, length, rng.uniform(2.2, 3.2))], [], path)


def _relit(rng: Random, lamp: Lamp) -> Lamp:
    colour = np.array(lamp.colour) * rng.uniform(0.75, 1.25, 3)
    red, green, blue = colour.tolist()
    power = lamp.power * float(np.exp(rng.uniform(np.log(0.2), np.log(2.5))))
    return replace(lamp, colour=(red, green, blue), power=power)


def _repainted(rng: Random, solid: Any, fraction: float) -> Solid:
    if solid.material.emission > 0 or rng.random() >= fraction:
        return solid
    makers = [materials.thing, materials.furniture, materials.wall, materials.floor]
    return replace(solid, material=makers[int(rng.integers(len(makers)))](rng))
