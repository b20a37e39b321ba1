# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Generate a world from (seed, number): rooms, furniture, and the robot's drive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.synthetic import materials
from uncertainty_depth.synthetic.furniture import (
    ALONG_WALLS,
    IN_THE_OPEN,
    Maker,
    Piece,
    block,
    round_object,
)
from uncertainty_depth.synthetic.materials import Random
from uncertainty_depth.synthetic.render import Lamp, Scene
from uncertainty_depth.synthetic.rooms import Drive, Plan, Room, Wall, plan, shell
from uncertainty_depth.synthetic.solids import Solid, Sphere

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
