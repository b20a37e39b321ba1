# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Furniture and other pieces, and the rooms that they stand in.

Each maker returns a piece around the origin that stands on z = 0 with its front towards +y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synthetic import materials
from synthetic.materials import Blocks, Material, Random, Stripes
from synthetic.render import Lamp, Scene
from synthetic.rooms import Drive, Plan, Room, Wall, plan, shell
from synthetic.solids import Box, Frustum, Solid, Sphere

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


CLEARANCE = 0.45  # metres between the robot's path and whatever stands on the floor
GAP = 0.04  # metres between pieces of furniture
ROUND_OBJECTS = 8  # maximum in a test world
TRIES = 12  # places tried for each piece


def build(seed: int, number: int, test_objects: bool = False) -> Scene:
    """Return world `number` of `seed`, the same on each call.

    Only with `test_objects` are there round objects in it.
    """
    rng = np.random.default_rng([seed, number])
    round_objects = np.random.default_rng([seed, number, 1]) if test_objects else None
    return furnish(rng, plan(rng), round_objects=round_objects)


def furnish(
    rng: Random,
    rooms: Plan,
    along_walls: Sequence[Maker] = ALONG_WALLS,
    in_the_open: Sequence[Maker] = IN_THE_OPEN,
    clutter: float = 1.0,
    round_objects: Random | None = None,
) -> Scene:
    """Return a scene: a plan's rooms with furniture and lamps, and the drive through them.

    Args:
        rng: source of all randomness but the round objects'.
        rooms: the plan.
        along_walls: makers of what stands at walls.
        in_the_open: makers of what stands anywhere.
        clutter: factor of the number of pieces.
        round_objects: source of the randomness of cones, barrels and columns; None for none.
    """
    furnishing = Furnishing(rooms)
    solids: list[Solid] = list(rooms.partitions)
    lamps: list[Lamp] = []
    for room in rooms.rooms:
        solids += shell(rng, room)
        fixtures, lights = _ceiling_lamps(rng, room)
        solids += fixtures
        lamps += lights
    if round_objects is not None:
        _stand_round_objects(round_objects, furnishing)
    _furnish(rng, furnishing, along_walls, in_the_open, clutter)
    drive = Drive(rooms.path, rng.uniform(0.5, 0.8), rng.uniform(0, 100))
    extent = np.array([rooms.rooms[0].corner, rooms.rooms[-1].far_corner], np.float32)
    return Scene(
        solids + furnishing.solids,
        lamps + furnishing.lamps,
        rng.uniform(0.02, 0.12),
        drive,
        extent,
    )


class Furnishing:
    """Places pieces in the rooms, clear of the path and of each other."""

    def __init__(self, rooms: Plan) -> None:
        self.rooms = rooms.rooms
        self.path = rooms.path
        self.solids: list[Solid] = []
        self.lamps: list[Lamp] = []
        outlines = [
            _outline(wall.centre[0], wall.centre[1], wall.half[0], wall.half[1], 0.0)
            for wall in rooms.partitions
        ]
        self._footprints = np.concatenate([np.empty((0, 2)), *outlines])

    def stand(self, piece: Piece, x: float, y: float, yaw: float) -> bool:
        """Place the piece there if it fits; return whether it did."""
        outline = _outline(x, y, *piece.half, yaw)
        inside = any(
            (outline >= (room.x0, room.y0)).all() and (outline <= (room.x1, room.y1)).all()
            for room in self.rooms
        )
        near_path = _distance(self.path, x, y, piece.half, yaw).min() < CLEARANCE
        if (
            not inside
            or near_path
            or (
                len(self._footprints)
                and _distance(self._footprints, x, y, piece.half, yaw).min() < GAP
            )
        ):
            return False
        self._footprints = np.concatenate([self._footprints, outline])
        self.solids += piece.placed(x, y, yaw)
        return True


def _outline(x: float, y: float, half_x: float, half_y: float, yaw: float) -> NDArray[np.float64]:
    """Return points at most 10 cm apart over a rotated rectangle, (N, 2)."""
    steps = [np.linspace(-half, half, int(np.ceil(half / 0.05)) + 1) for half in (half_x, half_y)]
    grid = np.stack(np.meshgrid(*steps), axis=-1).reshape(-1, 2)
    turn = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
    return grid @ turn + (x, y)


def _distance(
    points: NDArray[np.float64], x: float, y: float, half: tuple[float, float], yaw: float
) -> NDArray[np.float64]:
    """Return the distance of (N, 2) points from a rotated rectangle, 0 inside."""
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    beyond = np.abs((points - (x, y)) @ turn) - half
    return np.hypot(*np.maximum(beyond, 0).T)


def _furnish(
    rng: Random,
    furnishing: Furnishing,
    along_walls: Sequence[Maker],
    in_the_open: Sequence[Maker],
    clutter: float,
) -> None:
    """Place furniture along walls and objects in the open, by room size and a random clutter."""
    clutter = clutter * rng.uniform(0.5, 1.3)
    for room in furnishing.rooms:
        for wall in room.walls():
            for _ in range(round(clutter * wall.length / 2.5)):
                piece = along_walls[int(rng.integers(len(along_walls)))](rng)
                _try(furnishing, piece, _along_wall(rng, wall, piece))
        for _ in range(round(clutter * np.prod(room.size) / 8)):
            piece = in_the_open[int(rng.integers(len(in_the_open)))](rng)
            _try(furnishing, piece, _anywhere(rng, room))
        if rng.random() < 0.5:
            _stand_lamp(rng, furnishing, room)


def _along_wall(rng: Random, wall: Wall, piece: Piece) -> list[tuple[float, float, float]]:
    """Return `TRIES` random poses (x, y, yaw) with the back of the piece at the wall."""
    reach = max(wall.length / 2 - piece.half[0], 0)
    poses = []
    for _ in range(TRIES):
        x, y = wall.point(rng.uniform(-reach, reach), piece.half[1] + 0.05)
        poses.append((x, y, wall.yaw))
    return poses


def _anywhere(rng: Random, room: Room) -> list[tuple[float, float, float]]:
    """Return `TRIES` random poses (x, y, yaw) in the room."""
    return [
        (rng.uniform(room.x0, room.x1), rng.uniform(room.y0, room.y1), rng.uniform(-np.pi, np.pi))
        for _ in range(TRIES)
    ]


def _try(furnishing: Furnishing, piece: Piece, places: list[tuple[float, float, float]]) -> bool:
    return any(furnishing.stand(piece, *place) for place in places)


def _stand_round_objects(rng: Random, furnishing: Furnishing) -> None:
    """Place cones, barrels and columns beside the path, in the camera's view."""
    standing = 0
    for _ in range(200):
        piece = round_object(rng)
        angle = rng.uniform(-np.pi, np.pi)
        away = (CLEARANCE + piece.half[0] + 0.01) * rng.uniform(1, 1.8)
        x, y = furnishing.path[rng.integers(len(furnishing.path))] + away * np.array(
            [np.cos(angle), np.sin(angle)]
        )
        standing += furnishing.stand(piece, x, y, 0.0)
        if standing == ROUND_OBJECTS:
            return


def _warm(rng: Random) -> tuple[float, float, float]:
    """Return a lamp colour between candle and daylight."""
    warmth = rng.uniform(-0.15, 0.35)
    return 1.0 + 0.3 * warmth, 1.0 - 0.15 * warmth, 1.0 - 0.8 * warmth


def _ceiling_lamps(rng: Random, room: Room) -> tuple[list[Solid], list[Lamp]]:
    """Return one or two globes under the ceiling, spread along the room's long side."""
    x, y = room.centre
    size = np.array(room.size)
    count = int(np.clip(round(size.max() / rng.uniform(3, 6)), 1, 2))
    long = int(np.argmax(size))
    colour = _warm(rng)
    power = rng.uniform(0.6, 1.4)
    solids: list[Solid] = []
    lamps = []
    for k in range(count):
        centre = np.array([x, y]) + rng.uniform(-0.1, 0.1, 2) * size
        centre[long] = (room.x0, room.y0)[long] + (k + 0.5) / count * size[long]
        fixture, lamp = _globe(
            float(centre[0]),
            float(centre[1]),
            room.height - rng.uniform(0.3, 0.6),
            rng.uniform(0.1, 0.18),
            colour,
            power,
        )
        top = fixture.centre[2] + fixture.radius
        cable = materials.glowing((0.1, 0.1, 0.1), 0)
        solids.append(fixture)
        solids.append(block(centre[0], centre[1], top, 0.015, 0.015, 2.0, cable, "lamp"))
        lamps.append(lamp)
    return solids, lamps


def _globe(
    x: float, y: float, z: float, radius: float, colour: tuple[float, float, float], power: float
) -> tuple[Sphere, Lamp]:
    look = materials.glowing(materials.scaled(colour, 0.7), 4.0)
    return Sphere((x, y, z), radius, look, "lamp"), Lamp((x, y, z), colour, power)


def _stand_lamp(rng: Random, furnishing: Furnishing, room: Room) -> None:
    """Place a lamp on a pole."""
    height = rng.uniform(1.2, 1.7)
    look = materials.furniture(rng)
    colour = _warm(rng)
    globe, lamp = _globe(0.0, 0.0, height, rng.uniform(0.12, 0.2), colour, rng.uniform(0.2, 0.5))
    pole = block(0, 0, 0, 0.03, 0.03, height - globe.radius, look, "lamp")
    foot = block(0, 0, 0, 0.3, 0.3, 0.03, look, "lamp")
    before = len(furnishing.solids)
    if _try(furnishing, Piece([globe, pole, foot], (0.2, 0.2)), _anywhere(rng, room)):
        x, y, _ = furnishing.solids[before].centre
        furnishing.lamps.append(Lamp((x, y, height), colour, lamp.power))
