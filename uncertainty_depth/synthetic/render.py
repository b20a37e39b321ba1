# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ray casting: which solid each ray meets first, and the light that comes back from there. Vectors are (3, N) float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.synthetic.scene import Lamp, Scene
from uncertainty_depth.synthetic.solids import TINY

Floats = NDArray[np.float32]
NOTHING = -1
SOFTENING = 0.25  # square metres; keeps the irradiance beside a lamp finite
CORNER_REACH = 0.22  # metres over which a corner brightens
# directions a lamp looks in, polar angle by azimuth
MAP_ROWS = 128
MAP_COLUMNS = 256


@dataclass(frozen=True, eq=False)
class Hits:
    """Where N rays end.

    Attributes:
        t: (N,) ray parameter, inf where nothing is hit.
        solid: (N,) int16 index of the solid, `NOTHING` where nothing is hit.
    """

    t: Floats
    solid: NDArray[np.int16]


def cast(scene: Scene, origin: Floats, directions: Floats) -> Hits:
    """The first solid along each ray `origin + t * directions`; directions need not be unit vectors.

    Solids whose bounding sphere lies outside a ray's reach are never asked: a ray meets the sphere only if its angle to the
    centre is small enough, which one product of vectors decides for all rays.
    """
    t = np.full(directions.shape[1], np.inf, np.float32)
    solid = np.full(directions.shape[1], NOTHING, np.int16)
    units = directions / np.sqrt(np.einsum("ij,ij->j", directions, directions))
    offsets = scene.centres - origin
    tangents = np.sum(offsets**2, axis=1) - scene.bounds**2
    for k in _in_reach(offsets, scene.bounds, units):
        candidate = scene.solids[k]
        if tangents[k] <= 0:
            enter = candidate.intersect(origin, directions)
            rays = np.flatnonzero(enter < t)
            enter = enter[rays]
        else:
            rays = np.flatnonzero(offsets[k] @ units >= np.sqrt(tangents[k]))
            enter = candidate.intersect(origin, directions.take(rays, axis=1))
            nearer = enter < t[rays]
            rays = rays[nearer]
            enter = enter[nearer]
        t[rays] = enter
        solid[rays] = k
    return Hits(t, solid)


def _in_reach(offsets: Floats, bounds: Floats, units: Floats) -> NDArray[np.intp]:
    """Indices of the solids whose bounding sphere the cone around all rays touches: what is behind a camera is left out at once."""
    axis = units.sum(axis=1) + TINY
    axis /= np.linalg.norm(axis)
    spread = np.arccos(np.clip((axis @ units).min(initial=1), -1, 1))
    distances = np.maximum(np.linalg.norm(offsets, axis=1), TINY)
    half_width = np.where(distances > bounds, np.arcsin(np.minimum(bounds / distances, 1)), np.pi)
    away = np.arccos(np.clip(offsets @ axis / distances, -1, 1))
    return np.flatnonzero(away <= spread + half_width + 1e-3)


class LampView:
    """What a lamp sees: the first solid in each direction, and how far it is. All solids are convex, so a point is lit if its own solid is
    seen there, or one farther away.
    """

    def __init__(self, scene: Scene, lamp: Lamp) -> None:
        polar, azimuth = np.meshgrid(
            (np.arange(MAP_ROWS) + 0.5) * np.pi / MAP_ROWS,
            (np.arange(MAP_COLUMNS) + 0.5) * 2 * np.pi / MAP_COLUMNS,
            indexing="ij",
        )
        directions = np.stack(
            [np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)]
        ).reshape(3, -1)
        self._seen = cast(
            scene, np.asarray(lamp.position, np.float32), directions.astype(np.float32)
        )

    def lit(self, offsets: Floats, solid: NDArray[np.int16]) -> Floats:
        """Share of light, 0 to 1, that reaches points `offsets` away from the lamp on the given solids; bilinear, so shadows have soft edges."""
        row = np.arctan2(np.sqrt(offsets[0] ** 2 + offsets[1] ** 2), offsets[2]) * np.float32(
            MAP_ROWS / np.pi
        ) - np.float32(0.5)
        column = np.arctan2(offsets[1], offsets[0]) * np.float32(
            MAP_COLUMNS / (2 * np.pi)
        ) - np.float32(0.5)
        row0 = np.floor(row)
        column0 = np.floor(column)
        down = row - row0
        right = column - column0
        rows = [np.clip(row0.astype(np.int32) + k, 0, MAP_ROWS - 1) * MAP_COLUMNS for k in (0, 1)]
        columns = [(column0.astype(np.int32) + k) % MAP_COLUMNS for k in (0, 1)]
        distance = np.sqrt(np.einsum("ij,ij->j", offsets, offsets))
        top, bottom = (
            [
                (self._seen.solid[r + c] == solid) | (self._seen.t[r + c] > distance)
                for c in columns
            ]
            for r in rows
        )
        return (top[0] * (1 - right) + top[1] * right) * (1 - down) + (
            bottom[0] * (1 - right) + bottom[1] * right
        ) * down


class Renderer:
    """Renders one scene; what its lamps see is worked out once."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._lamps = [(lamp, LampView(scene, lamp)) for lamp in scene.lamps]

    def radiance(self, origin: Floats, directions: Floats, hits: Hits, pixel: float) -> Floats:
        """Linear RGB light along each ray, (3, N); `pixel` is the angle of a pixel, radians. Rays that hit nothing are black."""
        albedo, normals, emission = self._surfaces(origin, directions, hits, pixel)
        points = origin[:, None] + directions * np.where(np.isfinite(hits.t), hits.t, 0)
        unshaded = _corner_darkening(points, normals, self.scene.extent)
        light = np.repeat(
            (np.float32(self.scene.ambient) * (np.float32(0.85) + np.float32(0.15) * normals[2]))[
                None
            ],
            3,
            axis=0,
        )
        for lamp, view in self._lamps:
            _add_lamp(light, lamp, view, points, normals, hits.solid)
        return albedo * (light * unshaded + emission)

    def reflection(self, origin: Floats, directions: Floats, hits: Hits) -> tuple[Floats, Floats]:
        """Mean albedo at the hits, and the cosine between each unit ray and the normal there, both (N,)."""
        albedo, normals, _ = self._surfaces(origin, directions, hits, 0.005)
        return albedo.mean(axis=0), np.abs(np.einsum("ij,ij->j", normals, directions))

    def _surfaces(
        self, origin: Floats, directions: Floats, hits: Hits, pixel: float
    ) -> tuple[Floats, Floats, Floats]:
        """(albedo, normals, emission) at the hits, solid by solid."""
        albedo = np.zeros_like(directions)
        normals = np.zeros_like(directions)
        emission = np.zeros(directions.shape[1], np.float32)
        order = np.argsort(hits.solid, kind="stable")
        found, counts = np.unique(hits.solid, return_counts=True)
        for k, rays in zip(
            found, np.split(order, np.cumsum(counts)), strict=False
        ):  # the last part of the split is always empty
            if k != NOTHING:
                along = directions.take(rays, axis=1)
                solid = self.scene.solids[k]
                surface = solid.surface(origin[:, None] + hits.t[rays] * along, along)
                width = np.float32(pixel) * hits.t[rays] * np.sqrt(1 + surface.slopes**2)
                albedo[:, rays] = solid.material.albedo(surface.uv, width)
                normals[:, rays] = surface.normals
                emission[rays] = solid.material.emission
        return albedo, normals, emission


def _add_lamp(
    light: Floats,
    lamp: Lamp,
    view: LampView,
    points: Floats,
    normals: Floats,
    solid: NDArray[np.int16],
) -> None:
    """Add the irradiance of one lamp: inverse square law and Lambert's cosine."""
    offsets = points - np.asarray(lamp.position, np.float32)[:, None]
    projection = -np.einsum("ij,ij->j", offsets, normals)
    facing = np.flatnonzero(projection > 0)
    offsets = offsets.take(facing, axis=1)
    square = np.einsum("ij,ij->j", offsets, offsets)
    strength = np.zeros_like(projection)
    strength[facing] = (
        projection[facing]
        / np.sqrt(square)
        / (square + np.float32(SOFTENING))
        * view.lit(offsets, solid[facing])
    )
    light += np.asarray(lamp.colour, np.float32)[:, None] * np.float32(lamp.power) * strength


def _corner_darkening(points: Floats, normals: Floats, extent: NDArray[np.float32]) -> Floats:
    """Share of light left near the corners of the building, where walls, floor and ceiling stand in each other's light."""
    left = np.ones(points.shape[1], np.float32)
    for axis in range(3):
        grazing = np.float32(0.45) * (1 - np.abs(normals[axis]))
        for side in extent[:, axis]:
            left *= 1 - grazing * np.exp(
                np.abs(points[axis] - side) * np.float32(-1 / CORNER_REACH)
            )
    return left
