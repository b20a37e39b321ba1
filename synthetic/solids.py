# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Convex solids with closed-form ray intersections.

Arrays of vectors are (3, N) float32, metres, z up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from synthetic.materials import Material

Floats = NDArray[np.float32]
TINY = np.float32(1e-9)
# texture axes of a box's face, by the axis of its normal: vertical faces keep v upright
UV_AXES = np.array([[1, 2], [0, 2], [0, 1]])


@dataclass(frozen=True, eq=False)
class Surface:
    """Normals and texture coordinates of N points on a solid.

    Attributes:
        normals: (3, N), unit, outwards.
        uv: (2, N), metres along the surface.
        slopes: (2, N), metres that a view ray moves along u and v for each metre along the normal;
            stretches the footprint of a pixel.
    """

    normals: Floats
    uv: Floats
    slopes: Floats


class Solid(Protocol):
    """A convex solid."""

    @property
    def material(self) -> Material:
        """Return its material."""

    @property
    def label(self) -> str:
        """Return its object class."""

    @property
    def centre(self) -> tuple[float, float, float]:
        """Return the centre of its bounding sphere, metres."""

    @property
    def bound(self) -> float:
        """Return the radius of its bounding sphere, metres."""

    def intersect(self, origin: Floats, directions: Floats) -> Floats:
        """Return t > 0 at which `origin + t * directions` enters the solid, (N,).

        It is inf if a ray misses the solid or starts inside it.
        """

    def surface(self, points: Floats, directions: Floats) -> Surface:
        """Return the surface at (3, N) points, seen along (3, N) directions."""


@dataclass(frozen=True, eq=False)
class Box:
    """A box rotated by `yaw` radians about its vertical axis; `half` are its half sizes."""

    centre: tuple[float, float, float]
    half: tuple[float, float, float]
    material: Material
    label: str
    yaw: float = 0.0

    @property
    def bound(self) -> float:
        """See `Solid`."""
        return float(np.linalg.norm(self.half))

    def intersect(self, origin: Floats, directions: Floats) -> Floats:
        """Intersect by the slab method: inside is between all three pairs of faces."""
        local = _turn(directions, -self.yaw)
        inverse = np.float32(1) / np.where(np.abs(local) < TINY, TINY, local)
        middle = -_turn(origin[:, None] - _column(self.centre), -self.yaw) * inverse
        reach = _column(self.half) * np.abs(inverse)
        enter = _max_of_rows(middle - reach)
        leave = -_max_of_rows(-middle - reach)
        return np.where((enter <= leave) & (enter > 0), enter, np.float32(np.inf))

    def surface(self, points: Floats, directions: Floats) -> Surface:
        """Return the surface; texture axes lie along the edges of each face."""
        local = _turn(points - _column(self.centre), -self.yaw)
        along = _turn(directions, -self.yaw)
        x, y, z = np.abs(local) - _column(self.half)
        axis = np.where(x > y, np.where(x > z, 0, 2), np.where(y > z, 1, 2))
        column = np.arange(points.shape[1])
        normals = np.zeros_like(local)
        normals[axis, column] = np.sign(local[axis, column])
        uv_axes = UV_AXES[axis].T
        slopes = along[uv_axes, column] / _away_from_zero(along[axis, column])
        return Surface(_turn(normals, self.yaw), local[uv_axes, column], slopes)


@dataclass(frozen=True, eq=False)
class Sphere:
    """A ball."""

    centre: tuple[float, float, float]
    radius: float
    material: Material
    label: str

    @property
    def bound(self) -> float:
        """See `Solid`."""
        return self.radius

    def intersect(self, origin: Floats, directions: Floats) -> Floats:
        """Intersect by the smaller root of a quadratic."""
        offset = origin - np.asarray(self.centre, np.float32)
        a = np.einsum("ij,ij->j", directions, directions)
        b = offset @ directions
        discriminant = b * b - a * np.float32(offset @ offset - self.radius**2)
        t = (-b - np.sqrt(np.maximum(discriminant, 0))) / a
        return np.where((discriminant >= 0) & (t > 0), t, np.float32(np.inf))

    def surface(self, points: Floats, directions: Floats) -> Surface:
        """Return the surface; texture axes are longitude and latitude, metres along it."""
        normals = (points - _column(self.centre)) / np.float32(self.radius)
        around = np.float32(self.radius) * np.arctan2(normals[1], normals[0])
        up = np.float32(self.radius) * np.arcsin(np.clip(normals[2], -1, 1))
        return Surface(normals, np.stack([around, up]), _slopes(normals, directions))


@dataclass(frozen=True, eq=False)
class Frustum:
    """An upright truncated cone: traffic cones, and with equal radii columns and barrels.

    `base` is the centre of its foot.
    """

    base: tuple[float, float, float]
    height: float
    base_radius: float
    top_radius: float
    material: Material
    label: str

    @property
    def centre(self) -> tuple[float, float, float]:
        """See `Solid`."""
        return (self.base[0], self.base[1], self.base[2] + self.height / 2)

    @property
    def bound(self) -> float:
        """See `Solid`."""
        return float(np.hypot(self.height / 2, max(self.base_radius, self.top_radius)))

    @property
    def taper(self) -> float:
        """Return the change of the radius per metre of height."""
        return (self.top_radius - self.base_radius) / self.height

    def intersect(self, origin: Floats, directions: Floats) -> Floats:
        """Intersect by the nearest of both roots of the side and the two caps."""
        ox, oy, oz = (origin - np.asarray(self.base, np.float32)).tolist()
        hits = [
            self._side(ox, oy, oz, directions, -1),
            self._side(ox, oy, oz, directions, 1),
            self._cap(ox, oy, oz, directions, 0.0, self.base_radius),
            self._cap(ox, oy, oz, directions, self.height, self.top_radius),
        ]
        nearest = np.min(hits, axis=0)
        inside = 0 < oz < self.height and np.hypot(ox, oy) < self.base_radius + self.taper * oz
        return np.full_like(nearest, np.inf) if inside else nearest

    def _side(self, ox: float, oy: float, oz: float, directions: Floats, sign: int) -> Floats:
        """Return one root of x^2 + y^2 = radius(z)^2 with z between foot and top."""
        dx, dy, dz = directions.astype(np.float64)
        radius = self.base_radius + self.taper * oz
        a = dx * dx + dy * dy - (self.taper * dz) ** 2
        b = ox * dx + oy * dy - self.taper * radius * dz
        discriminant = b * b - a * (ox * ox + oy * oy - radius * radius)
        root = sign * np.sqrt(np.maximum(discriminant, 0))
        t = (-b + root) / np.where(np.abs(a) < TINY, TINY, a)
        z = oz + t * dz
        is_hit = (discriminant >= 0) & (t > 0) & (z >= 0) & (z <= self.height)
        return np.where(is_hit, t, np.inf).astype(np.float32)

    def _cap(
        self, ox: float, oy: float, oz: float, directions: Floats, z: float, radius: float
    ) -> Floats:
        dx, dy, dz = directions
        t = (z - oz) / np.where(np.abs(dz) < TINY, TINY, dz)
        inside = (ox + t * dx) ** 2 + (oy + t * dy) ** 2 <= radius**2
        return np.where(inside & (t > 0), t, np.float32(np.inf)).astype(np.float32)

    def surface(self, points: Floats, directions: Floats) -> Surface:
        """Return the surface; texture axes are longitude and height."""
        x, y, z = points - _column(self.base)
        distance = np.maximum(np.hypot(x, y), 1e-6)
        radius = self.base_radius + self.taper * z
        side = np.stack([x / distance, y / distance, np.full_like(x, -self.taper)]) / np.float32(
            np.hypot(1, self.taper)
        )
        cap = np.abs(distance - radius) > 1e-3
        up_or_down = np.stack([0 * x, 0 * x, np.sign(z - self.height / 2)])
        normals = np.where(cap, up_or_down, side).astype(np.float32)
        uv = np.stack([np.float32(self.base_radius) * np.arctan2(y, x), z])
        return Surface(normals, uv, _slopes(normals, directions))


def _column(values: tuple[float, float, float]) -> Floats:
    return np.asarray(values, np.float32)[:, None]


def _max_of_rows(rows: Floats) -> Floats:
    """Return the elementwise max of three rows; much faster than `max` over so short an axis."""
    return np.maximum(np.maximum(rows[0], rows[1]), rows[2])


def _turn(vectors: Floats, angle: float) -> Floats:
    """Return (3, N) vectors rotated about z."""
    if angle == 0.0:
        return vectors
    cosine = np.float32(np.cos(angle))
    sine = np.float32(np.sin(angle))
    return np.stack(
        [
            cosine * vectors[0] - sine * vectors[1],
            sine * vectors[0] + cosine * vectors[1],
            vectors[2],
        ]
    )


def _away_from_zero(values: Floats) -> Floats:
    return np.where(np.abs(values) < 1e-3, np.float32(1e-3), values)


def _slopes(normals: Floats, directions: Floats) -> Floats:
    """Return the slope of a view ray against a curved surface, the same along u and v."""
    cosine = np.einsum("ij,ij->j", normals, directions) / np.linalg.norm(directions, axis=0)
    slope = np.sqrt(np.maximum(1 - cosine**2, 0)) / _away_from_zero(cosine)
    return np.stack([slope, slope])
