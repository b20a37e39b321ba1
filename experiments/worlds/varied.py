# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Varied worlds: the robot's rooms, homes in any light and texture, and streets.

Domain randomisation (Tobin et al. 2017): a network that has seen enough unlike renderings takes a
photograph for one more of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.worlds.people import HOME, person
from experiments.worlds.street import street
from synthetic import furnishing, materials, sensors
from synthetic.config import SynthesisConfig
from synthetic.furnishing import ALONG_WALLS, IN_THE_OPEN
from synthetic.materials import Random
from synthetic.render import Lamp, Scene
from synthetic.rooms import Plan, Room, plan, smooth_loop
from synthetic.sensors import Look, Rig
from synthetic.solids import Solid
from uncertainty_depth.core.geometry.camera import Camera

PROBABILITIES = {"rooms": 0.3, "home": 0.4, "street": 0.3}
STREAM = 5  # of random numbers; `furnishing` and `source` use those below
ASPECTS = (4 / 3, 4 / 3, 4 / 3, 5 / 4, 16 / 9, 16 / 9, 1.0, 3.3)
FOCAL_LENGTHS = (0.5, 1.5)
"""Focal length over the square root of the image's area: 105 to 43 degrees across at 4:3."""
REPAINTED = (0.0, 0.5)  # fraction of the solids of a home that get any texture


def build(config: SynthesisConfig, number: int, look: Random) -> tuple[Scene, Rig]:
    """Return world `number` of a seed and its robot, the same on each call."""
    rng = np.random.default_rng([config.seed, number, STREAM])
    theme = rng.choice(list(PROBABILITIES), p=list(PROBABILITIES.values()))
    if theme == "rooms":
        scene = furnishing.build(config.seed, number, config.test_objects)
        return scene, Rig.usual(config.width, config.height, look)
    is_street = theme == "street"
    scene = street(rng) if is_street else home(rng)
    return scene, _rig(config.width, config.height, rng, is_street)


def home(rng: Random) -> Scene:
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


def _rig(width: int, height: int, rng: np.random.Generator, outdoors: bool) -> Rig:
    """Draw a robot with a lens, an aspect, a camera height and tilt of its own."""
    camera = lens(width, height, rng)
    if outdoors:
        above_floor = rng.uniform(0.4, 2.0)
        pitch = np.clip(rng.normal(3, 5), -8, 18)
        roll = rng.normal(0, 1.5)
        yaw = rng.normal(0, 18)
    else:
        above_floor = rng.uniform(0.2, 1.8)
        pitch = np.clip(rng.normal(8, 13), -20, 45)
        roll = rng.normal(0, 3)
        yaw = rng.uniform(-180, 180)
    camera_to_base = mount(above_floor, *np.deg2rad([yaw, pitch, roll]))
    return Rig(camera, camera_to_base, camera_look(rng))


def lens(width: int, height: int, rng: Random) -> Camera:
    """Draw a camera whose image is at most `width` by `height` pixels."""
    aspect = ASPECTS[int(rng.integers(len(ASPECTS)))]
    width = min(width, round(height * aspect))
    height = round(width / aspect)
    focal = np.exp(rng.uniform(*np.log(FOCAL_LENGTHS)))
    field_of_view = 2 * np.arctan(np.sqrt(aspect) / (2 * focal))
    return sensors.make_camera(width, height, float(field_of_view))


def mount(above_floor: float, yaw: float, pitch: float, roll: float) -> NDArray[np.float64]:
    """Return the pose of an optical frame on the robot; angles in radians."""
    turned = np.eye(4)
    turned[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    turned[2, 3] = above_floor
    tilted = np.eye(4)
    tilted[:3, :3] = [
        [np.cos(pitch), 0, np.sin(pitch)],
        [0, 1, 0],
        [-np.sin(pitch), 0, np.cos(pitch)],
    ]
    rolled = np.eye(4)
    rolled[1:3, 1:3] = [[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]]
    return turned @ tilted @ rolled @ sensors.OPTICAL_TO_CAMERA_LINK


def camera_look(rng: Random) -> Look:
    """Draw any camera: dark or bright, tinted, soft, noisy, flat or hard."""
    return Look(
        np.exp(rng.uniform(np.log(0.3), np.log(2.2))),
        rng.uniform(0.8, 1.2, 3).astype(np.float32),
        rng.uniform(0.0, 0.5),
        rng.uniform(0.3, 1.2),
        np.exp(rng.uniform(np.log(0.3), np.log(5.0))),
        rng.uniform(1.6, 2.8),
    )
