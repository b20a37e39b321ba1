# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Daylight: a sun with shadows, and the sky above it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthetic.materials import noise
from synthetic.render import MAP_COLUMNS, MAP_ROWS, Floats, Lamp, LampView, Scene
from synthetic.solids import TINY


@dataclass(frozen=True)
class Sun(Lamp):
    """A lamp so far away that its shadow map covers only the cone around the scene.

    Attributes:
        target: where it shines.
        reach: tangent of half the cone's angle.
    """

    target: tuple[float, float, float]
    reach: float

    def shadows(self, scene: Scene) -> LampView:
        """Return what the sun shines on."""
        return SunView(scene, self)


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

    def __call__(self, directions: Floats) -> Floats:
        """Return the light along rays, (3, N)."""
        x, y, z = directions / np.sqrt(np.einsum("ij,ij->j", directions, directions))
        height = np.maximum(z, 0)
        horizon = np.asarray(self.horizon, np.float32)[:, None]
        zenith = np.asarray(self.zenith, np.float32)[:, None]
        colour = zenith + (horizon - zenith) * np.exp(-4 * height)
        spread = 40 / (height + np.float32(0.1))
        clouds = 1 + np.float32(self.clouds) * noise(x * spread, y * spread)
        return (colour * np.maximum(clouds, np.float32(0.2))).astype(np.float32)


class SunView(LampView):
    """Shadow map of a sun: a square image of the cone around what it shines on."""

    def __init__(self, scene: Scene, sun: Sun) -> None:
        ahead = np.subtract(sun.target, sun.position)
        ahead /= np.linalg.norm(ahead)
        right = np.cross(ahead, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        axes = np.stack([right, np.cross(ahead, right), ahead])
        self._axes = axes.astype(np.float32)  # rows: across, down, ahead
        self._reach = np.float32(sun.reach)
        super().__init__(scene, sun)

    def directions(self) -> NDArray[np.floating]:
        """Return the direction of each texel, (3, MAP_ROWS * MAP_COLUMNS)."""
        rows = (2 * np.arange(MAP_ROWS) + 1) / MAP_ROWS - 1
        columns = (2 * np.arange(MAP_COLUMNS) + 1) / MAP_COLUMNS - 1
        down, across = np.meshgrid(rows * self._reach, columns * self._reach, indexing="ij")
        directions = np.stack([across, down, np.ones_like(down)]).reshape(3, -1)
        return self._axes.T @ (directions / np.linalg.norm(directions, axis=0))

    def texels(self, offsets: Floats) -> tuple[Floats, Floats]:
        """Return row and column of directions (3, N), fractional."""
        across, down, ahead = self._axes @ offsets
        scale = 1 / (np.maximum(ahead, TINY) * self._reach)
        half = np.float32(0.5)
        row = np.clip((down * scale + 1) * half * MAP_ROWS - half, 0, MAP_ROWS - 1)
        column = np.clip((across * scale + 1) * half * MAP_COLUMNS - half, 0, MAP_COLUMNS - 1)
        return row, column
