# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Floor plans and the drive through them.

A plan is one room, a corridor, or two rooms (or a room and a corridor) joined by two openings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthetic import materials
from synthetic.materials import Material, Random
from synthetic.solids import Box, Solid, Sphere

THICKNESS = 0.15  # walls, metres
SLOT = 1.7  # metres of wall per door, window or poster
STEPS = 24  # points per span of the robot's path


@dataclass(frozen=True)
class Room:
    """The rectangle x0 <= x <= x1, y0 <= y <= y1, metres.

    `open_sides` (of "west east south north") have no wall of their own.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    height: float
    open_sides: tuple[str, ...] = ()

    @property
    def centre(self) -> tuple[float, float]:
        """Return the middle, metres."""
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2

    @property
    def corner(self) -> tuple[float, float, float]:
        """Return the corner of min x and y, on the floor."""
        return self.x0, self.y0, 0.0

    @property
    def far_corner(self) -> tuple[float, float, float]:
        """Return the corner of max x and y, under the ceiling."""
        return self.x1, self.y1, self.height

    @property
    def size(self) -> tuple[float, float]:
        """Return the extent along x and y, metres."""
        return self.x1 - self.x0, self.y1 - self.y0

    def walls(self) -> list[Wall]:
        """Return the walls of this room."""
        x, y = self.centre
        width, length = self.size
        sides = {
            "west": (self.x0, y, 1, 0, length),
            "east": (self.x1, y, -1, 0, length),
            "south": (x, self.y0, 0, 1, width),
            "north": (x, self.y1, 0, -1, width),
        }
        return [Wall(*sides[side], self.height) for side in sides if side not in self.open_sides]


@dataclass(frozen=True)
class Wall:
    """Inner face of a wall: middle, normal into the room, length and height in metres."""

    x: float
    y: float
    normal_x: int
    normal_y: int
    length: float
    height: float

    @property
    def yaw(self) -> float:
        """Return the yaw at which +y of a piece of furniture points into the room."""
        return float(np.arctan2(-self.normal_x, self.normal_y))

    def point(self, along: float, away: float) -> tuple[float, float]:
        """Return the point `along` metres from the middle and `away` metres into the room."""
        x = self.x + along * abs(self.normal_y) + away * self.normal_x
        y = self.y + along * abs(self.normal_x) + away * self.normal_y
        return x, y

    def slab(
        self,
        along: float,
        z: float,
        length: float,
        height: float,
        proud: float,
        look: Material,
        label: str,
    ) -> Box:
        """Return a box of `length` by `height` around (along, z).

        It stands `proud` metres out of the wall; the rest of it is inside the wall.
        """
        x, y = self.point(along, (proud - THICKNESS) / 2)
        deep = (proud + THICKNESS) / 2
        along_wall = length / 2
        half = (along_wall, deep, height / 2) if self.normal_y else (deep, along_wall, height / 2)
        return Box((x, y, z), half, look, label)


def shell(rng: Random, room: Room) -> list[Solid]:
    """Draw floor, ceiling and walls of a room, with skirting boards, doors, windows, posters."""
    x, y = room.centre
    width, length = room.size
    look = materials.wall(rng)
    skirting = materials.furniture(rng)
    solids: list[Solid] = [
        Box((x, y, -0.1), (width / 2, length / 2, 0.1), materials.floor(rng), "floor"),
        Box(
            (x, y, room.height + 0.1),
            (width / 2, length / 2, 0.1),
            materials.ceiling(rng),
            "ceiling",
        ),
    ]
    wainscot = materials.wall(rng) if rng.random() < 0.3 else None
    for wall in room.walls():
        face = wall.length + 2 * THICKNESS
        solids.append(wall.slab(0, room.height / 2, face, room.height, 0.0, look, "wall"))
        solids.append(wall.slab(0, 0.05, face, 0.1, 0.015, skirting, "wall"))
        if wainscot is not None:
            solids.append(wall.slab(0, 0.5, face, 1.0, 0.01, wainscot, "wall"))
        solids += _fittings(rng, wall)
    return solids


def _fittings(rng: Random, wall: Wall) -> list[Solid]:
    """Draw doors, windows and posters in the slots of a wall."""
    solids: list[Solid] = []
    slots = int(wall.length // SLOT)
    for k in range(slots):
        along = (k + 0.5 - slots / 2) * SLOT + rng.uniform(-0.15, 0.15)
        fitting = rng.choice(4, p=[0.18, 0.1, 0.32, 0.4])
        solids += (_door, _window, _poster, _nothing)[fitting](rng, wall, along)
    return solids


def _door(rng: Random, wall: Wall, along: float) -> list[Solid]:
    leaf = materials.furniture(rng)
    frame = materials.furniture(rng)
    handle_x, handle_y = wall.point(along + float(rng.choice([-0.38, 0.38])), 0.09)
    return [
        wall.slab(along, 1.05, 1.04, 2.1, 0.02, frame, "door"),
        wall.slab(along, 1.015, 0.9, 2.03, 0.035, leaf, "door"),
        Sphere((handle_x, handle_y, 1.02), 0.035, materials.glowing((0.5, 0.5, 0.5), 0.0), "door"),
    ]


def _window(rng: Random, wall: Wall, along: float) -> list[Solid]:
    width = rng.uniform(0.8, 1.3)
    height = rng.uniform(0.9, 1.2)
    look = materials.furniture(rng)
    sky = materials.glowing(
        materials.hsv(rng, (0.5, 0.65), (0.05, 0.4), (0.6, 0.95)), rng.uniform(0.15, 0.6)
    )
    pane = (width - 0.04) / 2
    pane_offset = (width + 0.04) / 4
    return [
        wall.slab(along, 1.5, width + 0.12, height + 0.12, 0.03, look, "window"),
        wall.slab(along - pane_offset, 1.5, pane, height, 0.035, sky, "window"),
        wall.slab(along + pane_offset, 1.5, pane, height, 0.035, sky, "window"),
    ]


def _poster(rng: Random, wall: Wall, along: float) -> list[Solid]:
    width = rng.uniform(0.4, 1.3)
    height = rng.uniform(0.4, 1.1)
    z = rng.uniform(1.4, 1.7)
    look = materials.poster(rng, (width, height))
    return [wall.slab(along, z, width, height, 0.02, look, "picture")]


def _nothing(_rng: Random, _wall: Wall, _along: float) -> list[Solid]:
    return []


@dataclass(frozen=True, eq=False)
class Plan:
    """Rooms, the walls between them, and the closed path of a robot that keeps clear of both."""

    rooms: list[Room]
    partitions: list[Box]
    path: NDArray[np.float64]


def plan(rng: Random) -> Plan:
    """Draw a floor plan."""
    return [_hall, _corridor, _divided][rng.choice(3, p=[0.45, 0.2, 0.35])](rng)


def _hall(rng: Random) -> Plan:
    width = rng.uniform(3.8, 10.0)
    length = rng.uniform(3.8, 13.0)
    angle = np.linspace(0, 2 * np.pi, 10, endpoint=False) * rng.choice([-1, 1])
    reach = rng.uniform(0.75, 1.0, (10, 1)) * (
        np.array([width, length]) / 2 - rng.uniform(0.9, 1.3)
    )
    path = np.array([width, length]) / 2 + reach * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Plan([Room(0, 0, width, length, rng.uniform(2.3, 3.6))], [], smooth_loop(path))


def _corridor(rng: Random) -> Plan:
    width = rng.uniform(2.1, 3.2)
    length = rng.uniform(8.0, 16.0)
    along = np.arange(1.0, length - 1.0, 0.8)
    way_out = np.stack([np.full_like(along, width / 2 + 0.3), along], axis=1)
    way_back = np.stack([np.full_like(along, width / 2 - 0.3), along], axis=1)[::-1]
    room = Room(0, 0, width, length, rng.uniform(2.2, 3.0))
    return Plan([room], [], smooth_loop(np.concatenate([way_out, way_back])))


def _divided(rng: Random) -> Plan:
    """Draw two rooms, or a room and a corridor; the loop uses both openings between them."""
    width = rng.uniform(7.0, 13.0)
    height = rng.uniform(2.4, 3.2)
    near = rng.uniform(3.2, 6.0)
    far = rng.uniform(1.9, 4.5)
    gap = rng.uniform(1.2, 1.7)
    lintel = rng.uniform(2.0, 2.2)
    first = rng.uniform(1.3, 2.0)
    second = width - rng.uniform(1.3, 2.0)
    rooms = [
        Room(0, 0, width, near, height, ("north",)),
        Room(0, near, width, near + far, height, ("south",)),
    ]
    return Plan(
        rooms,
        _partition(rng, width, near, height, (first, second), gap, lintel),
        _through(width, near, far, first, second),
    )


def _partition(
    rng: Random,
    width: float,
    y: float,
    height: float,
    openings: tuple[float, float],
    gap: float,
    lintel: float,
) -> list[Box]:
    look = materials.wall(rng)
    edges = [
        0.0,
        openings[0] - gap / 2,
        openings[0] + gap / 2,
        openings[1] - gap / 2,
        openings[1] + gap / 2,
        width,
    ]
    solids: list[Box] = []
    for k in range(5):
        bottom = lintel if k % 2 else 0.0
        middle = (edges[k] + edges[k + 1]) / 2
        half = (edges[k + 1] - edges[k]) / 2
        solids.append(
            Box(
                (middle, y, (height + bottom) / 2),
                (half, THICKNESS / 2, (height - bottom) / 2),
                look,
                "wall",
            )
        )
    return solids


def _through(
    width: float, near: float, far: float, first: float, second: float
) -> NDArray[np.float64]:
    low = near - min(near / 2, 1.8)
    high = near + far / 2
    across = np.linspace(first, second, int(np.ceil((second - first) / 0.8)) + 1)
    up = np.array([[first, near - 0.5], [first, near], [first, near + 0.5]])
    down = np.array([[second, near + 0.5], [second, near], [second, near - 0.5]])
    there = np.stack([across, np.full_like(across, high)], axis=1)
    back = np.stack([across[::-1], np.full_like(across, low)], axis=1)
    return smooth_loop(np.concatenate([up, there, down, back]))


@dataclass(frozen=True, eq=False)
class Drive:
    """Position of the robot over time.

    Attributes:
        path: (P, 2) points of the closed curve, metres, first not repeated.
        speed: metres per second.
        start: metres along the curve at time 0.
    """

    path: NDArray[np.float64]
    speed: float
    start: float

    def pose(self, time_s: float) -> tuple[float, float, float]:
        """Return (x, y, yaw) at a time, metres and radians; the robot looks straight ahead."""
        closed = np.vstack([self.path, self.path[:1]])
        steps = np.diff(closed, axis=0)
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*steps.T))])
        at = (self.start + self.speed * time_s) % along[-1]
        heading = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
        middle = (along[1:] + along[:-1]) / 2
        turn = 2 * np.pi * np.round((heading[-1] - heading[0]) / (2 * np.pi))
        middle = np.concatenate([[middle[-1] - along[-1]], middle, [middle[0] + along[-1]]])
        heading = np.concatenate([[heading[-1] - turn], heading, [heading[0] + turn]])
        return (
            float(np.interp(at, along, closed[:, 0])),
            float(np.interp(at, along, closed[:, 1])),
            float(np.interp(at, middle, heading)),
        )


def smooth_loop(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the closed uniform cubic B-spline of (C, 2) control points, (STEPS * C, 2).

    It stays in the convex hull of each four neighbouring points.
    """
    s = np.arange(STEPS)[:, None] / STEPS
    cubics = [(1 - s) ** 3, 3 * s**3 - 6 * s**2 + 4, -3 * s**3 + 3 * s**2 + 3 * s + 1, s**3]
    basis = np.stack(cubics) / 6
    spans = []
    for i in range(len(corners)):
        span = np.zeros((STEPS, 2))
        for k in range(4):
            span += basis[k] * corners[(i + k) % len(corners)]
        spans.append(span)
    return np.concatenate(spans)
