# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Predictions of the demo's model on worlds it never saw, with exact depth and exact poses.

What the experiments on the worth of sigma have in common: each asks what a robot that drives
through these worlds would have done with the prediction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synthetic import sensors
from synthetic.config import SynthesisConfig
from synthetic.source import World
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.core.model_location import SHIPPED_MODEL
from uncertainty_depth.depth.predictor import Predictor

Floats = NDArray[np.float64]
REPLICATES = 1000
FIRST_SEED = 40_000
"""The first repetition's seed; the demo's model was trained and chosen on others."""


@dataclass(frozen=True, eq=False)
class View:
    """One frame: its true depth and pose, and the model's prediction; P pixels, row by row.

    Attributes:
        camera: of the image, pinhole.
        rays: (P, 3) from the camera, x ahead and z up in the robot's frame, 1 m of depth long.
        camera_to_world: (4, 4) exact pose of the optical frame.
        truth_m: (P,) exact depth, metres along the optical axis.
        depth_m: (P,) predicted.
        sigma_m: (P,) predicted.
        stamp_ns: of the image, nanoseconds.
        lidar_m: (P,) depth that the LiDAR measures, metres, NaN where it does not.
    """

    camera: Camera
    rays: Floats
    camera_to_world: Floats
    truth_m: Floats
    depth_m: Floats
    sigma_m: Floats
    stamp_ns: int = 0
    lidar_m: Floats | None = None

    def world_points(self, depth_m: Floats) -> Floats:
        """Return the points of all pixels at these depths, (P, 3) metres in the world."""
        rotation = self.camera_to_world[:3, :3] @ sensors.CAMERA_TO_BASE[:3, :3].T
        return (self.rays * depth_m[:, None]) @ rotation.T + self.camera_to_world[:3, 3]

    def pixels(self, points: Floats) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the pixels that see these points, and which points any pixel sees.

        Args:
            points: (N, 3) in the optical frame, in front of the camera.

        Returns:
            (M,) indices of the pixels of the M seen points, and (N,) whether a point is seen.
        """
        columns, rows = np.rint(self.camera.pixels(points)).T
        in_image = (columns >= 0) & (columns < self.camera.width)
        in_image &= (rows >= 0) & (rows < self.camera.height)
        places = rows[in_image] * self.camera.width + columns[in_image]
        return places.astype(np.intp), in_image


def make_config(seed: int, worlds: int, frames: int) -> SynthesisConfig:
    """Return the worlds of a repetition; they hold a class of objects unseen in training.

    Two seconds, about 1.3 m, lie between frames: neighbours are alike, but not the same.
    """
    return SynthesisConfig(
        worlds=worlds, frames=frames, rate=0.5, seed=FIRST_SEED + seed, test_objects=True
    )


def load_predictor() -> Predictor:
    """Return the demo's model on the CPU, with its own method and number of samples."""
    return Predictor(SHIPPED_MODEL, PredictorConfig(device="cpu"))


def model_digest(model: Path = SHIPPED_MODEL) -> str:
    """Return a digest of a model: results of another model are computed again."""
    content = b"".join(path.read_bytes() for path in sorted(model.glob("*.*")))
    return hashlib.sha256(content).hexdigest()[:16]


def drive(
    config: SynthesisConfig, number: int, predictor: Predictor, lidar: bool = False
) -> Iterator[View]:
    """Yield the frames of one world that have exact depth in every pixel.

    Args:
        config: the worlds.
        number: of the world.
        predictor: of depth and sigma.
        lidar: whether the frames are scanned too.
    """
    camera = sensors.make_camera(config.width, config.height)
    rays = camera.rays().reshape(-1, 3) @ sensors.CAMERA_TO_BASE[:3, :3].T
    world = World(config, number)
    for frame in range(config.frames):
        view = world.view(frame)
        if np.isnan(view.depth_m).any():  # a ray left the world through a gap
            continue
        image = world.photograph(frame, view)
        prediction = predictor.predict(image, world.stamp_ns(frame), world.camera)
        yield View(
            camera,
            rays,
            world.camera_to_world(frame),
            view.depth_m.ravel().astype(np.float64),
            prediction.depth_m.ravel().astype(np.float64),
            prediction.sigma_m.ravel().astype(np.float64),
            world.stamp_ns(frame),
            scanned(world, frame) if lidar else None,
        )


def scanned(world: World, frame: int) -> Floats:
    """Return the depth that the LiDAR measures, (P,) metres, NaN where it does not."""
    points = world.cloud(frame)[:, :3]
    depth_m = ground_truth_from_cloud(points, world.lidar_to_camera, world.camera)
    return depth_m.ravel().astype(np.float64)


def replicate_weights(worlds: int) -> Floats:
    """Return how often a bootstrap draws each world, (1 + REPLICATES, worlds).

    Row 0 is the sample. Worlds are resampled whole: their frames share objects and path.
    """
    random = np.random.default_rng(0)
    draws = random.multinomial(worlds, np.full(worlds, 1 / worlds), size=REPLICATES)
    return np.vstack([np.ones((1, worlds)), draws]).astype(np.float64)
