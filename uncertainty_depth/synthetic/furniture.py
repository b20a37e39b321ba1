# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Furniture and other objects of a room.

Each maker returns a piece around the origin that stands on z = 0 with its front towards +y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from uncertainty_depth.synthetic import materials
from uncertainty_depth.synthetic.materials import Random
from uncertainty_depth.synthetic.solids import Box, Frustum, Solid, Sphere
from uncertainty_depth.synthetic.texture import Blocks, Material, Stripes

ROUND = "round"  # the object class of test worlds: cones, barrels, columns


@dataclass(frozen=True, eq=False)
class Piece:
    """Solids that stand together, and the rectangle they stand on.

    Attributes:
        solids: in the piece's own frame.
        half: half width (x) and half depth (y) of the rectangle, metres.
    """

    solids: list[Solid]
    half: tuple[float, float]

    def placed(self, x: float, y: float, yaw: float) -> list[Solid]:
        """Return the solids rotated by yaw and moved to (x, y)."""
        return [_moved(solid, x, y, yaw) for solid in self.solids]


def _moved(solid: Solid, x: float, y: float, yaw: float) -> Solid:
    def move(point: tuple[float, float, float]) -> tuple[float, float, float]:
        cosine = float(np.cos(yaw))
        sine = float(np.sin(yaw))
        return (
            x + cosine * point[0] - sine * point[1],
            y + sine * point[0] + cosine * point[1],
            point[2],
        )

    if isinstance(solid, Box):
        return replace(solid, centre=move(solid.centre), yaw=solid.yaw + yaw)
    if isinstance(solid, Frustum):
        return replace(solid, base=move(solid.base))
    return replace(solid, centre=move(solid.centre))  # type: ignore[type-var]


def block(
    x: float,
    y: float,
    z: float,
    width: float,
    depth: float,
    height: float,
    look: Material,
    label: str = "furniture",
    yaw: float = 0.0,
) -> Box:
    """Return a box; the centre of its foot is (x, y, z)."""
    return Box((x, y, z + height / 2), (width / 2, depth / 2, height / 2), look, label, yaw)


def _legs(
    width: float, depth: float, height: float, thickness: float, look: Material
) -> list[Solid]:
    x = (width - thickness) / 2
    y = (depth - thickness) / 2
    corners = ((-x, -y), (-x, y), (x, -y), (x, y))
    return [block(*corner, 0, thickness, thickness, height, look) for corner in corners]


def crates(rng: Random) -> Piece:
    """Draw one to three crates, stacked askew."""
    solids: list[Solid] = []
    z = 0.0
    widest = 0.0
    size = rng.uniform(0.3, 0.85)
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        height = size * rng.uniform(0.6, 1.2)
        depth = size * rng.uniform(0.7, 1)
        look = materials.thing(rng)
        yaw = rng.uniform(-0.3, 0.3)
        solids.append(block(0, 0, z, size, depth, height, look, "box", yaw))
        widest = max(widest, size)
        z += height
        size *= rng.uniform(0.6, 0.95)
    reach = 1.25 * widest / 2
    return Piece(solids, (reach, reach))


def balls(rng: Random) -> Piece:
    """Draw a ball, or a large one and a small one."""
    radius = rng.uniform(0.1, 0.4)
    solids: list[Solid] = [Sphere((0, 0, radius), radius, materials.thing(rng), "sphere")]
    if rng.random() < 0.4:
        small = radius * rng.uniform(0.3, 0.6)
        solids.append(Sphere((radius + small, 0, small), small, materials.thing(rng), "sphere"))
    return Piece(solids, (2 * radius, radius))


def table(rng: Random) -> Piece:
    """Draw a table 0.7 to 0.76 m high with a few objects on it."""
    width = rng.uniform(1.0, 1.7)
    depth = rng.uniform(0.6, 0.9)
    height = rng.uniform(0.7, 0.76)
    look = materials.furniture(rng)
    solids = [
        block(0, 0, height - 0.04, width, depth, 0.04, look),
        *_legs(width, depth, height - 0.04, 0.06, look),
    ]
    for x in np.linspace(-0.35, 0.35, int(rng.integers(1, 4))) * width:
        size = rng.uniform(0.06, 0.14)
        y = rng.uniform(-0.25, 0.25) * depth
        ball = Sphere((x, y, height + size), size, materials.thing(rng), "sphere")
        box_height = rng.uniform(0.05, 0.35)
        box_look = materials.thing(rng)
        yaw = rng.uniform(0, 1)
        box = block(x, y, height, 2 * size, 1.5 * size, box_height, box_look, "box", yaw)
        solids.append(ball if rng.random() < 0.3 else box)
    return Piece(solids, (width / 2, depth / 2))


def chair(rng: Random) -> Piece:
    """Draw a chair with its seat at 0.47 m."""
    look = materials.furniture(rng)
    size = rng.uniform(0.4, 0.48)
    seat = block(0, 0, 0.42, size, size, 0.05, look)
    back = block(0, -size / 2 + 0.02, 0.47, size, 0.04, rng.uniform(0.35, 0.5), look)
    return Piece([seat, back, *_legs(size, size, 0.42, 0.045, look)], (size / 2, size / 2))


def shelf(rng: Random) -> Piece:
    """Draw shelves with rows of books."""
    width = rng.uniform(0.7, 1.4)
    depth = rng.uniform(0.26, 0.36)
    height = rng.uniform(1.2, 2.1)
    look = materials.furniture(rng)
    sides = [block(i * (width / 2 - 0.015), 0, 0, 0.03, depth, height, look) for i in (-1, 1)]
    solids: list[Solid] = [
        *sides,
        block(0, -depth / 2 + 0.01, 0, width, 0.02, height, look),
        block(0, 0, height - 0.03, width, depth, 0.03, look),
    ]
    for z in np.arange(0.05, height - 0.3, rng.uniform(0.3, 0.42)).tolist():
        solids.append(block(0, 0, z, width, depth, 0.025, look))
        if rng.random() < 0.75:
            solids.append(_books(rng, width, z + 0.025))
    return Piece(solids, (width / 2, depth / 2))


def _books(rng: Random, width: float, z: float) -> Solid:
    length = rng.uniform(0.4, 0.9) * width
    spines = Blocks(
        rng.uniform(0.025, 0.05), 5.0, 0.004, 0.0, 0.9, materials.vivid(rng), (0.03, 0.03, 0.03)
    )
    x = rng.uniform(-0.5, 0.5) * (width - length - 0.06)
    height = rng.uniform(0.18, 0.26)
    return block(x, 0.0, z, length, 0.2, height, materials.material(rng, spines))


def cabinet(rng: Random) -> Piece:
    """Draw a cupboard or chest with doors or drawers."""
    width = rng.uniform(0.6, 1.3)
    depth = rng.uniform(0.35, 0.55)
    height = float(rng.choice([0.8, 1.1, 1.9]))
    colour = materials.wood(rng) if rng.random() < 0.5 else materials.paint(rng)
    doors = Blocks(
        width / int(rng.integers(1, 4)),
        height / int(rng.integers(1, 5)),
        0.015,
        0.0,
        0.1,
        colour,
        materials.scaled(colour, 0.3),
    )
    look = Material(doors, (width / 2, height / 2))
    return Piece(
        [
            block(0, 0, 0, width, depth, height, look),
            block(0, 0.01, height, width + 0.04, depth + 0.04, 0.03, look),
        ],
        (width / 2 + 0.02, depth / 2 + 0.03),
    )


def sofa(rng: Random) -> Piece:
    """Draw a sofa or an armchair."""
    look = materials.thing(rng)
    width = float(rng.choice([0.95, 1.5, 2.0]))
    arms = [block(i * (width / 2 - 0.1), 0, 0, 0.2, 0.85, 0.6, look) for i in (-1, 1)]
    return Piece(
        [
            block(0, 0, 0, width, 0.85, 0.42, look),
            block(0, -0.32, 0, width, 0.2, 0.85, look),
            *arms,
        ],
        (width / 2, 0.43),
    )


def pillar(rng: Random) -> Piece:
    """Draw a square pillar, higher than any room."""
    size = rng.uniform(0.25, 0.5)
    return Piece(
        [block(0, 0, 0, size, size, 5.0, materials.wall(rng), "pillar")], (size / 2, size / 2)
    )


def plant(rng: Random) -> Piece:
    """Draw a pot with a bush of spheres."""
    pot = rng.uniform(0.2, 0.35)
    green = materials.material(
        rng, materials.Mottled(0.02, 1.0, (0.02, 0.08, 0.02), (0.15, 0.4, 0.08)), 0.2
    )
    solids: list[Solid] = [block(0, 0, 0, pot, pot, 1.1 * pot, materials.furniture(rng))]
    for _ in range(int(rng.integers(4, 8))):
        x = rng.uniform(-0.6, 0.6) * pot
        y = rng.uniform(-0.6, 0.6) * pot
        z = rng.uniform(1.2, 3.0) * pot
        solids.append(Sphere((x, y, z), rng.uniform(0.35, 0.6) * pot, green, "plant"))
    return Piece(solids, (1.2 * pot, 1.2 * pot))


def round_object(rng: Random) -> Piece:
    """Draw a traffic cone, a barrel or a column, which training worlds never contain."""
    makers = [_cone, _barrel, _column]
    solid = makers[int(rng.integers(3))](rng)
    return Piece([solid], (solid.base_radius, solid.base_radius))


def _cone(rng: Random) -> Frustum:
    height = rng.uniform(0.5, 1.0)
    look = materials.material(
        rng, Stripes(height / 2.5, 0.6, 1, (0.75, 0.15, 0.02), (0.8, 0.8, 0.8))
    )
    return Frustum((0, 0, 0), height, 0.3 * height, 0.03, look, ROUND)


def _barrel(rng: Random) -> Frustum:
    radius = rng.uniform(0.22, 0.38)
    height = rng.uniform(0.7, 1.1)
    top_radius = radius * rng.uniform(0.85, 1.15)
    return Frustum((0, 0, 0), height, radius, top_radius, materials.thing(rng), ROUND)


def _column(rng: Random) -> Frustum:
    radius = rng.uniform(0.12, 0.25)
    return Frustum((0, 0, 0), 5.0, radius, radius, materials.wall(rng), ROUND)


Maker = Callable[[Random], Piece]
ALONG_WALLS: list[Maker] = [shelf, shelf, cabinet, cabinet, sofa, table, crates, plant, chair]
IN_THE_OPEN: list[Maker] = [crates, crates, balls, balls, balls, table, chair, pillar, plant]
