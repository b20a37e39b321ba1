# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames with true poses over a floor, and what is predicted of them: a costmap's input."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.measurements import WAYS, ByMotion, Way, frames_of
from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import DepthPrediction
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.stream.opening import open_source

PART = 5
"""Scored frames of a world, or of a piece of a drive."""
STRIDE = 4
"""`point_stride`."""
MEASURES = ("motion", "one ring", "64 pixels")
"""Ways to measure, of `benchmarks.measurements`."""
LOWEST = 0.02
"""Fraction of a drive's points that lie below its floor."""
Map = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Moment:
    """A frame.

    Attributes:
        camera: of the maps.
        pose: (4, 4) camera to a world with z up from the floor.
        truth_m: exact depth, metres, NaN for unknown.
        predictions: by the way that corrects the network, which is empty for none.
        before: the scored frame before it; None for the first of a part.
    """

    camera: Camera
    pose: Floats
    truth_m: Map
    predictions: dict[str, DepthPrediction]
    before: Moment | None

    def points(self, depth_m: Map, stride: int = STRIDE) -> Floats:
        """Return the points of pixels with a depth above 0, (N, 3) metres in the world."""
        depth_m = depth_m[::stride, ::stride]
        known = np.isfinite(depth_m) & (depth_m > 0)
        local = self.camera.rays()[::stride, ::stride][known] * depth_m[known][:, None]
        points: Floats = local @ self.pose[:3, :3].T + self.pose[:3, 3]
        return points

    def seen(self, points: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Return the flat pixels that see points of the world, which points, and their depth."""
        to_camera = np.linalg.inv(self.pose)
        local = points @ to_camera[:3, :3].T + to_camera[:3, 3]
        index = np.flatnonzero(local[:, 2] > 0.05)
        columns, rows = np.rint(self.camera.pixels(local[index])).T.astype(np.intp)
        inside = (columns >= 0) & (columns < self.camera.width)
        inside &= (rows >= 0) & (rows < self.camera.height)
        index = index[inside]
        return rows[inside] * self.camera.width + columns[inside], index, local[index, 2]


def moments(notation: str, every: int, predictor: Predictor) -> list[Moment]:
    """Return the frames of a source, every so many."""
    motion = ByMotion()
    prior = predictor.model.error_prior
    ways = [Way(motion) if name == "motion" else WAYS[name] for name in MEASURES]
    found: list[Moment] = []
    for number, frame in enumerate(frames_of(open_source(notation, SourceConfig()))):
        if number % every or frame.ground_truth_m is None:
            motion(frame)
            continue
        camera, pose = frame.camera, frame.pose
        assert camera is not None
        assert pose is not None
        network = predictor.predict(frame.need_image(), frame.stamp_ns, camera)
        frame = replace(frame, prediction=network)
        predictions = {"": network}
        for name, way in zip(MEASURES, ways, strict=True):
            measured = way.measure(frame)
            predictions[name] = network
            if len(measured):
                predictions[name] = way.correct(frame, measured, prior)
        before = found[-1] if len(found) % PART else None
        truth_m = frame.need_ground_truth()
        found.append(Moment(camera, pose, truth_m, predictions, before))
    return found


def stand_upright(found: list[Moment]) -> None:
    """Turn a drive's world, in place, so that z is up from its floor.

    Up is where most normals point of those nearly against the image's y axis; the floor is where
    the lowest points are.
    """
    up = np.mean([-moment.pose[:3, 1] for moment in found], axis=0)
    heights, normals = [], []
    for moment in found:
        points = moment.camera.rays() * moment.truth_m[..., None]
        across = points[8:-8:4, 16::4] - points[8:-8:4, :-16:4]
        down = points[16::4, 8:-8:4] - points[:-16:4, 8:-8:4]
        normal = np.cross(down, across).reshape(-1, 3)
        normal = normal[np.isfinite(normal).all(axis=1)] @ moment.pose[:3, :3].T
        normals.append(normal / np.linalg.norm(normal, axis=1, keepdims=True))
        heights.append(moment.points(moment.truth_m, 8))
    directions = np.concatenate(normals)
    for degrees in (30, 20, 10, 5, 5):
        near = directions @ (up / np.linalg.norm(up)) > np.cos(np.deg2rad(degrees))
        up = directions[near].mean(axis=0)
    up /= np.linalg.norm(up)
    side = np.cross(np.eye(3)[np.argmin(np.abs(up))], up)
    side /= np.linalg.norm(side)
    turn = np.eye(4)
    turn[:3, :3] = side, np.cross(up, side), up
    turn[2, 3] = -np.quantile(np.concatenate(heights) @ up, LOWEST)
    for moment in found:
        moment.pose[:] = turn @ moment.pose
