# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What stands in the worlds, and that the robot drives through them without touching anything."""

from __future__ import annotations

import numpy as np
import pytest

from synthetic import furnishing
from synthetic.furnishing import ROUND
from synthetic.rooms import Drive, smooth_loop
from synthetic.solids import Frustum
from synthetic.test.test_solids import contains

ROBOT_RADIUS = 0.3
ROBOT_HEIGHT = 1.2


def touches(solid, x: float, y: float) -> bool:
    """Return whether a robot at (x, y) overlaps the solid, by points over its disc and height."""
    radius, angle, z = (
        axis.ravel()
        for axis in np.meshgrid(
            [0, 0.5, 1], np.arange(0, 2 * np.pi, 0.3), np.linspace(0.03, ROBOT_HEIGHT, 12)
        )
    )
    px = x + ROBOT_RADIUS * radius * np.cos(angle)
    py = y + ROBOT_RADIUS * radius * np.sin(angle)
    if isinstance(solid, Frustum):
        widest = max(solid.base_radius, solid.top_radius)
        return bool((np.hypot(px - solid.base[0], py - solid.base[1]) < widest).any())
    return bool(contains(solid, np.stack([px, py, z])).any())


def test_round_objects_stand_in_test_worlds_alone():
    for number in range(25):
        ordinary = furnishing.build(1, number)
        test = furnishing.build(1, number, test_objects=True)
        assert not any(
            solid.label == ROUND or isinstance(solid, Frustum) for solid in ordinary.solids
        )
        assert (
            sum(isinstance(solid, Frustum) and solid.label == ROUND for solid in test.solids) >= 3
        )


@pytest.mark.parametrize("test_objects", [False, True])
def test_the_robot_touches_nothing(test_objects):
    for number in range(12):
        world = furnishing.build(2, number, test_objects)
        low = [
            solid
            for solid in world.solids
            if solid.centre[2] - solid.bound < ROBOT_HEIGHT and solid.label != "floor"
        ]
        for x, y in world.drive.path[::8]:
            near = [
                solid
                for solid in low
                if np.hypot(solid.centre[0] - x, solid.centre[1] - y) < solid.bound + ROBOT_RADIUS
            ]
            hit = [solid.label for solid in near if touches(solid, x, y)]
            assert not hit, f"world {number}: the robot at ({x:.2f}, {y:.2f}) touches {hit}"


def test_the_drive_keeps_its_speed_and_looks_where_it_goes():
    drive = Drive(smooth_loop(np.array([[0, 0], [4, 0], [4, 3], [0, 3.0]])), speed=0.6, start=1.3)
    times = np.arange(0, 40, 0.05)
    x, y, yaw = np.array([drive.pose(time) for time in times]).T
    moved = np.hypot(np.diff(x), np.diff(y)) / 0.05
    heading = np.arctan2(np.diff(y), np.diff(x))
    off = np.angle(
        np.exp(1j * (heading - (yaw[1:] + np.angle(np.exp(1j * (yaw[:-1] - yaw[1:]))) / 2)))
    )
    assert moved == pytest.approx(0.6, abs=0.01)
    assert np.abs(off).max() < 0.03
    assert np.abs(np.angle(np.exp(1j * np.diff(yaw)))).max() < 0.06
