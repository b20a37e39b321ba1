# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A world's solids and lights; the first solid along each ray, and the light from there.

Arrays of vectors are (3, N) float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synthetic.rooms import Drive
from synthetic.solids import TINY, Solid

Floats = NDArray[np.float32]
NOTHING = -1
SOFTENING = 0.25  # square metres; keeps the irradiance beside a lamp finite
CORNER_REACH = 0.22  # metres over which a corner brightens
# directions a lamp looks in, polar angle by azimuth
MAP_ROWS = 128
MAP_COLUMNS = 256


@dataclass(frozen=True)
class Lamp:
    """A point light; its irradiance at a distance d is `power * colour / (d^2 + softening)`."""

    position: tuple[float, float, float]
    colour: tuple[float, float, float]
    power: float

    def shadows(self, scene: Scene) -> LampView:
        """Return what the lamp shines on."""
        return LampView(scene, self)


@dataclass(frozen=True, eq=False)
class Scene:
    """One world.

    Attributes:
        solids: all that a ray can hit.
        lamps: the point lights.
        ambient: irradiance from all directions.
        drive: path and speed of the robot.
        extent: (2, 3), min and max corner of the rooms, metres.
        sky: (3, N) directions of rays that hit nothing to their light; None is black.
    """

    solids: list[Solid]
    lamps: list[Lamp]
    ambient: float
    drive: Drive
    extent: Floats
    sky: Callable[[Floats], Floats] | None = None

    @cached_property
    def centres(self) -> Floats:
        """Return the centres of the solids' bounding spheres, (K, 3)."""
        return np.array([solid.centre for solid in self.solids], np.float32)

    @cached_property
    def bounds(self) -> Floats:
        """Return the radii of the solids' bounding spheres, (K,)."""
        return np.array([solid.bound for solid in self.solids], np.float32)


@dataclass(frozen=True, eq=False)
class Hits:
    """End points of N rays.

    Attributes:
        t: (N,) ray parameter, inf if nothing is hit.
        solid: (N,) int16 index of the solid, `NOTHING` if nothing is hit.
    """

    t: Floats
    solid: NDArray[np.int16]


def cast(scene: Scene, origin: Floats, directions: Floats) -> Hits:
    """Return the first solid along each ray `origin + t * directions`, of any length.

    A ray can only hit a solid if its angle to the centre of the solid's bounding sphere is small
    enough. One matrix product tests that for all rays, before the exact intersection.
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
    """Return the indices of solids whose bounding sphere touches the cone around all rays.

    That leaves out what is behind a camera.
    """
    axis = units.sum(axis=1) + TINY
    axis /= np.linalg.norm(axis)
    spread = np.arccos(np.clip((axis @ units).min(initial=1), -1, 1))
    distances = np.maximum(np.linalg.norm(offsets, axis=1), TINY)
    half_width = np.where(distances > bounds, np.arcsin(np.minimum(bounds / distances, 1)), np.pi)
    away = np.arccos(np.clip(offsets @ axis / distances, -1, 1))
    return np.flatnonzero(away <= spread + half_width + 1e-3)


class LampView:
    """Shadow map of a lamp: the first solid in each direction, and its distance.

    All solids are convex, so a point is lit if the map has its own solid there, or a farther one.
    """

    def __init__(self, scene: Scene, lamp: Lamp) -> None:
        position = np.asarray(lamp.position, np.float32)
        self._map = cast(scene, position, self.directions().astype(np.float32))

    def directions(self) -> NDArray[np.floating]:
        """Return the direction of each texel, (3, MAP_ROWS * MAP_COLUMNS)."""
        polar, azimuth = np.meshgrid(
            (np.arange(MAP_ROWS) + 0.5) * np.pi / MAP_ROWS,
            (np.arange(MAP_COLUMNS) + 0.5) * 2 * np.pi / MAP_COLUMNS,
            indexing="ij",
        )
        return np.stack(
            [np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)]
        ).reshape(3, -1)

    def texels(self, offsets: Floats) -> tuple[Floats, Floats]:
        """Return row and column of directions (3, N), fractional."""
        polar = np.arctan2(np.sqrt(offsets[0] ** 2 + offsets[1] ** 2), offsets[2])
        azimuth = np.arctan2(offsets[1], offsets[0])
        row = polar * np.float32(MAP_ROWS / np.pi) - np.float32(0.5)
        column = azimuth * np.float32(MAP_COLUMNS / (2 * np.pi)) - np.float32(0.5)
        return row, column

    def lit(self, offsets: Floats, solid: NDArray[np.int16]) -> Floats:
        """Return the fraction of light that reaches points on the given solids, (N,).

        Bilinear in the shadow map, so that shadows have soft edges.

        Args:
            offsets: (3, N) from the lamp to the points.
            solid: (N,) index of the solid each point is on.
        """
        row, column = self.texels(offsets)
        top_row = np.floor(row)
        left_column = np.floor(column)
        down = row - top_row
        right = column - left_column
        distance = np.sqrt(np.einsum("ij,ij->j", offsets, offsets))

        def is_lit(rows_down: int, columns_right: int) -> NDArray[np.bool_]:
            map_row = np.clip(top_row.astype(np.int32) + rows_down, 0, MAP_ROWS - 1)
            map_column = (left_column.astype(np.int32) + columns_right) % MAP_COLUMNS
            texel = map_row * MAP_COLUMNS + map_column
            return (self._map.solid[texel] == solid) | (self._map.t[texel] > distance)

        top = is_lit(0, 0) * (1 - right) + is_lit(0, 1) * right
        bottom = is_lit(1, 0) * (1 - right) + is_lit(1, 1) * right
        return top * (1 - down) + bottom * down


class Renderer:
    """Renders one scene; the shadow maps of its lamps are made once."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._lamps = [(lamp, lamp.shadows(scene)) for lamp in scene.lamps]

    def radiance(self, origin: Floats, directions: Floats, hits: Hits, pixel: float) -> Floats:
        """Return linear RGB light along each ray, (3, N); the sky if a ray hits nothing.

        Args:
            origin: (3,) of all rays.
            directions: (3, N).
            hits: what `cast` returned for these rays.
            pixel: angle of a pixel, radians.
        """
        albedo, normals, emission = self._surfaces(origin, directions, hits, pixel)
        points = origin[:, None] + directions * np.where(np.isfinite(hits.t), hits.t, 0)
        unshaded = _corner_darkening(points, normals, self.scene.extent)
        upward = np.float32(0.85) + np.float32(0.15) * normals[2]
        ambient = np.float32(self.scene.ambient) * upward
        light = np.repeat(ambient[None], 3, axis=0)
        for lamp, view in self._lamps:
            _add_lamp(light, lamp, view, points, normals, hits.solid)
        total = albedo * (light * unshaded + emission)
        if self.scene.sky is not None:
            above = np.flatnonzero(hits.solid == NOTHING)
            total[:, above] = self.scene.sky(directions.take(above, axis=1))
        return total

    def reflection(self, origin: Floats, directions: Floats, hits: Hits) -> tuple[Floats, Floats]:
        """Return mean albedo and |cosine| between unit ray and normal at the hits, both (N,)."""
        albedo, normals, _ = self._surfaces(origin, directions, hits, 0.005)
        return albedo.mean(axis=0), np.abs(np.einsum("ij,ij->j", normals, directions))

    def _surfaces(
        self, origin: Floats, directions: Floats, hits: Hits, pixel: float
    ) -> tuple[Floats, Floats, Floats]:
        """Return (albedo, normals, emission) at the hits, solid by solid."""
        albedo = np.zeros_like(directions)
        normals = np.zeros_like(directions)
        emission = np.zeros(directions.shape[1], np.float32)
        order = np.argsort(hits.solid, kind="stable")
        indices, counts = np.unique(hits.solid, return_counts=True)
        rays_of_solids = np.split(order, np.cumsum(counts))[:-1]
        for k, rays in zip(indices, rays_of_solids, strict=True):
            if k == NOTHING:
                continue
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
    """Return the fraction of light left near corners, shaded by walls, floor and ceiling."""
    transmitted = np.ones(points.shape[1], np.float32)
    for axis in range(3):
        grazing = np.float32(0.45) * (1 - np.abs(normals[axis]))
        for side in extent[:, axis]:
            transmitted *= 1 - grazing * np.exp(
                np.abs(points[axis] - side) * np.float32(-1 / CORNER_REACH)
            )
    return transmitted
