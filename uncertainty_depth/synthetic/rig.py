# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The sensors of one world's robot: the same in all rooms, another in each varied world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.synthetic import sensors
from uncertainty_depth.synthetic.sensors import Look

ASPECTS = (4 / 3, 4 / 3, 4 / 3, 5 / 4, 16 / 9, 16 / 9, 1.0, 3.3)
FOCAL_LENGTHS = (0.5, 1.5)
"""Focal length over the square root of the image's area: 105 to 43 degrees across at 4:3."""


@dataclass(frozen=True, eq=False)
class Rig:
    """Camera and LiDAR of a robot.

    Attributes:
        camera: the intrinsics.
        camera_to_base: (4, 4), optical frame to the robot's.
        look: exposure, colours, blur and noise of the camera.
    """

    camera: Camera
    camera_to_base: NDArray[np.float64]
    look: Look

    @property
    def lidar_to_camera(self) -> NDArray[np.float64]:
        """Return the transform of the LiDAR into the optical frame, (4, 4)."""
        return np.linalg.inv(self.camera_to_base) @ sensors.LIDAR_TO_BASE


def usual(width: int, height: int, look: np.random.Generator) -> Rig:
    """Return the robot of the rooms: 72 degrees across, 0.8 m above the floor."""
    camera = sensors.make_camera(width, height)
    return Rig(camera, sensors.CAMERA_TO_BASE, Look.usual(look))


def varied(width: int, height: int, rng: np.random.Generator, outdoors: bool) -> Rig:
    """Draw a robot with a lens, an aspect, a camera height and tilt of its own.

    The image is at most `width` by `height` pixels.
    """
    aspect = ASPECTS[int(rng.integers(len(ASPECTS)))]
    width = min(width, round(height * aspect))
    height = round(width / aspect)
    focal = np.exp(rng.uniform(*np.log(FOCAL_LENGTHS)))
    field_of_view = 2 * np.arctan(np.sqrt(aspect) / (2 * focal))
    if outdoors:
        above_floor = rng.uniform(0.4, 2.0)
        pitch = np.clip(rng.normal(3, 5), -8, 18)
        roll = rng.normal(0, 1.5)
        yaw = rng.normal(0, 18)
    else:
        above_floor = rng.uniform(0.2, 1.8)
        pitch = np.clip(rng.normal(8, 13), -20, 45)
        roll = rng.normal(0, 3)
        yaw = rng.uniform(-180, 180)
    camera_to_base = _mount(above_floor, *np.deg2rad([yaw, pitch, roll]))
    camera = sensors.make_camera(width, height, float(field_of_view))
    return Rig(camera, camera_to_base, Look.varied(rng))


def _mount(above_floor: float, yaw: float, pitch: float, roll: float) -> NDArray[np.float64]:
    """Return the pose of an optical frame on the robot; angles in radians."""
    turned = np.eye(4)
    turned[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    turned[2, 3] = above_floor
    tilted = np.eye(4)
    tilted[:3, :3] = [
        [np.cos(pitch), 0, np.sin(pitch)],
        [0, 1, 0],
        [-np.sin(pitch), 0, np.cos(pitch)],
    ]
    rolled = np.eye(4)
    rolled[1:3, 1:3] = [[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]]
    return turned @ tilted @ rolled @ sensors.OPTICAL_TO_CAMERA_LINK
