# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Indoor worlds for any camera: furnished homes, and bare halls, classrooms and corridors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.worlds.varied import camera_look, home, lens, mount
from synthetic import furnishing
from synthetic.config import SynthesisConfig
from synthetic.materials import Random
from synthetic.render import Scene
from synthetic.rooms import plan
from synthetic.sensors import Rig

STREAM = 7  # of random numbers; `furnishing`, `source`, `varied` and `near` use those below
HOMES = 0.5
"""Fraction of worlds that are homes; the others are bare, and most of them large."""
CLUTTER = (0.05, 0.7)


def build(config: SynthesisConfig, number: int, look: Random) -> tuple[Scene, Rig]:
    """Return world `number` of a seed and its robot, the same on each call."""
    rng = np.random.default_rng([config.seed, number, STREAM])
    scene = home(rng) if rng.random() < HOMES else _bare(rng)
    camera = lens(config.width, config.height, rng)
    yaw = rng.normal(0, 50)
    pitch = np.clip(rng.normal(6, 12), -20, 45)
    angles = np.deg2rad([yaw, pitch, rng.normal(0, 3)])
    return scene, Rig(camera, mount(rng.uniform(0.2, 1.8), *angles), camera_look(rng))


def _bare(rng: Random) -> Scene:
    """Draw rooms with little in them, in even light."""
    scene = furnishing.furnish(rng, plan(rng), clutter=rng.uniform(*CLUTTER))
    return replace(scene, ambient=float(np.exp(rng.uniform(np.log(0.1), np.log(0.8)))))
