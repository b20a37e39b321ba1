# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The robot's camera and spinning LiDAR: mounting, rays and noise."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from synthetic.render import NOTHING, Floats, Hits, Renderer, cast
from uncertainty_depth.core.geometry.camera import Camera

CAMERA_HEIGHT = 0.8  # metres above the floor
CAMERA_PITCH = np.deg2rad(5.0)  # looking down
FIELD_OF_VIEW = np.deg2rad(72.0)  # horizontal
# metres above the floor, and behind the camera
LIDAR_HEIGHT = 1.05
LIDAR_BACK = 0.06
ELEVATIONS = np.deg2rad((-28.0, 22.0))  # lowest and highest ring
TURN = 900  # directions per turn of the LiDAR
LIDAR_RANGE = (0.3, 12.0)  # metres
# standard deviation in metres; fraction of returns lost at any surface
RANGE_NOISE = 0.015
LOSS = 0.02
MIDDLE_GREY = 0.2  # mean linear brightness the automatic exposure aims at
SAMPLES = np.array(
    [(0.375, 0.125), (-0.125, 0.375), (-0.375, -0.125), (0.125, -0.375)]
)  # positions in a pixel at which edges are sampled, from its middle


def make_camera(width: int, height: int, field_of_view: float = FIELD_OF_VIEW) -> Camera:
    """Return the pinhole camera of this size; pixel centres are at integer (u, v).

    Args:
        width: pixels.
        height: pixels.
        field_of_view: horizontal, radians.
    """
    focal = width / 2 / np.tan(field_of_view / 2)
    return Camera(
        width,
        height,
        np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]]),
    )


def _mount(x: float, z: float, rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    transform = np.eye(4)
    transform[:3, :3] = rotation
    transform[:3, 3] = (x, 0.0, z)
    return transform


def _pitched(angle: float) -> NDArray[np.float64]:
    return np.array(
        [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    )


CAMERA_LINK_TO_BASE = _mount(0.0, CAMERA_HEIGHT, _pitched(CAMERA_PITCH))
OPTICAL_TO_CAMERA_LINK = _mount(0.0, 0.0, np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]]))
LIDAR_TO_BASE = _mount(-LIDAR_BACK, LIDAR_HEIGHT, np.eye(3))
CAMERA_TO_BASE = CAMERA_LINK_TO_BASE @ OPTICAL_TO_CAMERA_LINK
LIDAR_TO_CAMERA = np.linalg.inv(CAMERA_TO_BASE) @ LIDAR_TO_BASE


def base_to_world(x: float, y: float, yaw: float) -> NDArray[np.float64]:
    """Return the (4, 4) pose of a robot on the floor at (x, y)."""
    transform = np.eye(4)
    transform[:2] = [[np.cos(yaw), -np.sin(yaw), 0, x], [np.sin(yaw), np.cos(yaw), 0, y]]
    return transform


def camera_rays(camera: Camera, u: NDArray, v: NDArray) -> Floats:
    """Return ray directions through pixels (u, v) in the optical frame, (3, N).

    Their z is 1, so that the ray parameter is the depth along the optical axis.
    """
    (fx, _, cx), (_, fy, cy), _ = camera.intrinsics
    return np.stack([(u - cx) / fx, (v - cy) / fy, np.ones(u.shape)]).astype(np.float32)


def lidar_rays(rings: int) -> Floats:
    """Return unit directions of one turn, (3, rings * TURN), x ahead and z up."""
    up, around = np.meshgrid(
        np.linspace(ELEVATIONS[0], ELEVATIONS[1], rings),
        np.arange(TURN) * 2 * np.pi / TURN,
        indexing="ij",
    )
    return (
        np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
        .reshape(3, -1)
        .astype(np.float32)
    )


class CameraView:
    """What the camera sees from one pose, before noise.

    Attributes:
        depth_m: (H, W) float32, metres along the optical axis.
        solid: (H, W) int16, index of the scene's solid in each pixel.
        radiance: (H, W, 3) float32, linear RGB, edges averaged over four samples.
    """

    def __init__(self, renderer: Renderer, camera: Camera, to_world: NDArray[np.float64]) -> None:
        self._renderer = renderer
        self._camera = camera
        self._origin = to_world[:3, 3].astype(np.float32)
        self._rotation = to_world[:3, :3].astype(np.float32)
        v, u = np.mgrid[: camera.height, : camera.width].reshape(2, -1)
        hits, radiance = self._sample(u, v)
        shape = (camera.height, camera.width)
        depth = np.where(hits.solid == NOTHING, np.float32(np.nan), hits.t)
        self.depth_m = depth.reshape(shape)
        self.solid = hits.solid.reshape(shape)
        edges = np.flatnonzero(_edges(self.solid))
        edge_u = u[edges] + SAMPLES[:, :1]
        edge_v = v[edges] + SAMPLES[:, 1:]
        _, samples = self._sample(edge_u.ravel(), edge_v.ravel())
        radiance[:, edges] = samples.reshape(3, len(SAMPLES), -1).mean(axis=1)
        self.radiance = np.ascontiguousarray(radiance.T).reshape(*shape, 3)

    def _sample(self, u: NDArray, v: NDArray) -> tuple[Hits, Floats]:
        directions = self._rotation @ camera_rays(self._camera, u, v)
        hits = cast(self._renderer.scene, self._origin, directions)
        return hits, self._renderer.radiance(
            self._origin, directions, hits, 1 / float(self._camera.intrinsics[0, 0])
        )


def _edges(solid: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Return which pixels have a neighbour on another solid, (H, W)."""
    edges = np.zeros(solid.shape, bool)
    for ahead, behind in ((np.s_[1:, :], np.s_[:-1, :]), (np.s_[:, 1:], np.s_[:, :-1])):
        differs = solid[ahead] != solid[behind]
        edges[ahead] |= differs
        edges[behind] |= differs
    return edges


@dataclass(frozen=True)
class Look:
    """The properties that all images of one camera share.

    Attributes:
        brightness: factor of the automatic exposure.
        tint: factor of each colour, (3,).
        vignette: fraction of the light lost in the corners.
        blur: of the lens, standard deviation in pixels.
        noise: factor of the noise of a typical camera.
        gamma: of the conversion to 8 bit.
    """

    brightness: float
    tint: NDArray[np.float32]
    vignette: float
    blur: float
    noise: float = 1.0
    gamma: float = 2.2

    @classmethod
    def usual(cls, rng: np.random.Generator) -> Look:
        """Draw a well adjusted camera."""
        return cls(
            rng.uniform(0.65, 1.5),
            rng.uniform(0.93, 1.07, 3).astype(np.float32),
            rng.uniform(0.05, 0.3),
            rng.uniform(0.3, 0.6),
        )


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
        return np.linalg.inv(self.camera_to_base) @ LIDAR_TO_BASE

    @classmethod
    def usual(cls, width: int, height: int, look: np.random.Generator) -> Rig:
        """Return the robot of the rooms: 72 degrees across, 0.8 m above the floor."""
        return cls(make_camera(width, height), CAMERA_TO_BASE, Look.usual(look))


def expose(
    radiance: Floats, noise: float, rng: np.random.Generator, look: Look
) -> NDArray[np.uint8]:
    """Return the image that a camera takes of this light, (H, W, 3) uint8.

    Automatic exposure, vignette, lens blur, shot and read noise, gamma.

    Args:
        radiance: (H, W, 3) linear light.
        noise: multiple of the camera's noise; 0 adds none.
        rng: of the noise of this image.
        look: of the camera.
    """
    height, width = radiance.shape[:2]
    y, x = np.ogrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    vignette = (1 - look.vignette * (x * x + y * y) / 2).astype(np.float32)[..., None]
    exposure = np.float32(look.brightness * MIDDLE_GREY / max(float(np.median(radiance)), 1e-4))
    light = (
        cv2.GaussianBlur(np.minimum(radiance * exposure, 4), (3, 3), look.blur)
        * vignette
        * look.tint
    )
    noise *= look.noise
    if noise > 0:
        deviation = np.float32(noise) * np.sqrt(np.float32(0.0004) * light + np.float32(0.000004))
        light = light + deviation * rng.standard_normal(light.shape, np.float32)
    shoulder = 1 - np.exp(-np.float32(1.2) * np.maximum(light, 0))
    return (255 * shoulder ** np.float32(1 / look.gamma) + np.float32(0.5)).astype(np.uint8)


def scan(
    renderer: Renderer,
    rings: int,
    noise: float,
    to_world: NDArray[np.float64],
    rng: np.random.Generator,
) -> Floats:
    """Return one turn of the LiDAR, taken at one instant (no motion during the turn).

    Returns:
        (N, 4) x y z intensity in the LiDAR's frame. Beams that hit nothing in range are absent.
        With noise some more are, most often those that graze a surface or hit it far away.
    """
    rays = lidar_rays(rings)
    directions = to_world[:3, :3].astype(np.float32) @ rays
    origin = to_world[:3, 3].astype(np.float32)
    hits = cast(renderer.scene, origin, directions)
    in_range = np.flatnonzero((hits.t >= LIDAR_RANGE[0]) & (hits.t <= LIDAR_RANGE[1]))
    rays = rays[:, in_range]
    directions = directions[:, in_range]
    hits = Hits(hits.t[in_range], hits.solid[in_range])
    reflectance, cosine = renderer.reflection(origin, directions, hits)
    ranges = hits.t
    returned: NDArray[np.bool_] = np.ones(len(ranges), bool)
    if noise > 0:
        loss_probability = noise * (
            LOSS + 0.3 * np.exp(-12 * cosine) + 0.1 * (hits.t / LIDAR_RANGE[1]) ** 4
        )
        ranges = hits.t + np.float32(noise * RANGE_NOISE) * rng.standard_normal(
            len(hits.t), np.float32
        )
        returned = rng.random(len(loss_probability)) >= loss_probability
    points = np.concatenate([rays * ranges, (reflectance * cosine)[None]])
    return points[:, returned].T.astype(np.float32)
