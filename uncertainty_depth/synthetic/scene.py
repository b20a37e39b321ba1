# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A world: its solids, its lights, and the robot's drive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.synthetic.solids import Solid
from uncertainty_depth.synthetic.trajectory import Drive


@dataclass(frozen=True)
class Lamp:
    """A point light; its irradiance at a distance d is `power * colour / (d^2 + softening)`."""

    position: tuple[float, float, float]
    colour: tuple[float, float, float]
    power: float


@dataclass(frozen=True)
class Sun(Lamp):
    """A lamp so far away that its shadow map covers only the cone around the scene.

    Attributes:
        target: where it shines.
        reach: tangent of half the cone's angle.
    """

    target: tuple[float, float, float]
    reach: float


@dataclass(frozen=True)
class Sky:
    """Linear RGB light of the sky: between two colours by elevation, with clouds.

    Attributes:
        horizon: colour at the horizon.
        zenith: colour overhead.
        clouds: amplitude of the clouds, a fraction.
    """

    horizon: tuple[float, float, float]
    zenith: tuple[float, float, float]
    clouds: float


@dataclass(frozen=True, eq=False)
class Scene:
    """One world.

    Attributes:
        solids: all that a ray can hit.
        lamps: the point lights.
        ambient: irradiance from all directions.
        drive: path and speed of the robot.
        extent: (2, 3), min and max corner of the rooms, metres.
        sky: where a ray hits nothing; None is black.
    """

    solids: list[Solid]
    lamps: list[Lamp]
    ambient: float
    drive: Drive
    extent: NDArray[np.float32]
    sky: Sky | None = None

    @cached_property
    def centres(self) -> NDArray[np.float32]:
        """Return the centres of the solids' bounding spheres, (K, 3)."""
        return np.array([solid.centre for solid in self.solids], np.float32)

    @cached_property
    def bounds(self) -> NDArray[np.float32]:
        """Return the radii of the solids' bounding spheres, (K,)."""
        return np.array([solid.bound for solid in self.solids], np.float32)
