# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Print how sigmas rank the errors of a real stereo matcher, and what they cover.

    python -m benchmarks.stereo 1 2

OpenCV's semi-global matching (SGBM) on rendered pairs, for each seed on other worlds. Half of the
walls, ceilings and pillars are bare, and some surfaces mirror the room with the parallax of what
they mirror: there matchers fail. A LiDAR teaches in some worlds; scored is, by exact depth, in
others, and with another camera in furnished homes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from experiments.worlds.varied import home
from synthetic import furnishing, materials, sensors
from synthetic.render import NOTHING, Floats, Hits, Renderer, Scene
from uncertainty_depth.core.config.scoring import CalibrationConfig
from uncertainty_depth.core.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.sigma.calibration.depth_head import features, learn
from uncertainty_depth.sigma.calibration.fit import (
    DEPTH_HEAD,
    NO_CONFIDENCE,
    OFFSET,
    UNITLESS_CONFIDENCE,
    MapInput,
)
from uncertainty_depth.sigma.calibration.run import calibrate

Image = NDArray[np.uint8]
SIZE = (640, 480)
FRAMES = 2  # of each world
STEP_S = 5.0
MAX_DEPTH_M = 20.0  # of what is matched
BARE = 0.5
BARE_LABELS = ("wall", "ceiling", "pillar")
GLOSSY = {"floor": 0.5, "picture": 0.5, "window": 0.5, "furniture": 0.3, "door": 0.3, "box": 0.3}
"""Fraction of the solids of a label that mirror."""
REFLECTANCE = (0.04, 0.4)  # of those, seen along their normal
GRAIN_M = 0.06  # finest detail of what is mirrored
UNIQUENESS = (10, 20, 40, 80)
"""Percent by which the best match must beat all others. Counted are those a pixel survives."""
UNMATCHED_PX = 16.0  # left-right difference of a pixel without a match from right to left
SPREAD = 4  # of the features: logarithm of the log depth's deviation in the smallest window
SCORED = 0.1  # fraction of the pixels, drawn at random
HEAD_TRAINING_FRACTION = 0.6  # as `calibrate --learn` has it
STREAM = 11  # of random numbers; the worlds use those below


@dataclass(frozen=True)
class Drive:
    """A stereo camera, and where it drives.

    Attributes:
        worlds: their number.
        baseline_m: between the cameras.
        block: width of the matched windows, pixels, odd.
        disparities: that are searched, a multiple of 16.
        is_at_home: whether in furnished homes, not in the robot's rooms.
        has_lidar: whether the truth is a LiDAR's, not exact.
    """

    worlds: int = 16
    baseline_m: float = 0.1
    block: int = 5
    disparities: int = 96
    is_at_home: bool = False
    has_lidar: bool = False


TAUGHT = Drive(worlds=24, has_lidar=True)
NEW = {
    "other worlds": Drive(),
    "other camera, homes": Drive(baseline_m=0.06, block=9, disparities=64, is_at_home=True),
}


@dataclass(frozen=True, eq=False)
class Pair:
    """A matched pair, (H, W) float32 each.

    Attributes:
        depth_m: of the left camera, NaN for no match.
        truth_m: NaN for unknown.
        uncertainties: by name, without a unit: larger is less certain.
    """

    depth_m: Floats
    truth_m: Floats
    uncertainties: dict[str, Floats] = field(default_factory=dict)

    def frame(self, name: str = "") -> Frame:
        """Return the frame with one of the uncertainties as sigma; 1 without a name."""
        sigma = self.uncertainties[name] if name else np.ones_like(self.depth_m)
        prediction = DepthPrediction(self.depth_m, sigma)
        return Frame(0, "", ground_truth_m=self.truth_m, prediction=prediction)


class Frames(list[Frame]):
    """A source of frames."""

    name = "stereo"

    @property
    def notes(self) -> list[str]:
        """See `Source`."""
        return []


class GlossyRenderer(Renderer):
    """A renderer whose solids mirror the box around all rooms, and the lamps in it.

    Args:
        scene: the world.
        gloss: (K,) reflectance of each solid along its normal, 0 for none.
        level: mean light that comes from the box.
    """

    def __init__(self, scene: Scene, gloss: Floats, level: float) -> None:
        super().__init__(scene)
        self._gloss = gloss
        self._level = level

    def radiance(self, origin: Floats, directions: Floats, hits: Hits, pixel: float) -> Floats:
        """See `Renderer`; adds the mirrored light, by Schlick's approximation of Fresnel."""
        light = super().radiance(origin, directions, hits, pixel)
        for k in np.unique(hits.solid[hits.solid != NOTHING]):
            if not self._gloss[k]:
                continue
            rays = np.flatnonzero(hits.solid == k)
            points = origin[:, None] + hits.t[rays] * directions[:, rays]
            along = directions[:, rays] / np.linalg.norm(directions[:, rays], axis=0)
            normals = self.scene.solids[k].surface(points, along).normals
            cosine = np.einsum("ij,ij->j", normals, along)
            share = self._gloss[k] + (1 - self._gloss[k]) * (1 - np.abs(cosine)) ** 5
            light[:, rays] += share * self._mirrored(points, along - 2 * cosine * normals)
        return light

    def _mirrored(self, points: Floats, directions: Floats) -> Floats:
        away = np.where(np.abs(directions) < 1e-6, np.float32(1e-6), directions)
        low, high = self.scene.extent[:, :, None]
        distance = (np.where(away > 0, high - points, low - points) / away).min(axis=0)
        x, y, z = (points + np.maximum(distance, 0) * directions) / np.float32(GRAIN_M)
        light = np.maximum(1 + 0.6 * materials.noise(x + 0.6 * y, z + 0.3 * y), 0)
        for lamp in self.scene.lamps:
            offsets = np.asarray(lamp.position, np.float32)[:, None] - points
            cosine = np.einsum("ij,ij->j", offsets, directions) / np.linalg.norm(offsets, axis=0)
            light += 5 * np.exp(200 * (cosine - 1))
        return (self._level * light).astype(np.float32)


def pairs(drive: Drive, seed: int) -> Iterator[Pair]:
    """Yield the matched pairs of a drive."""
    for number in range(drive.worlds):
        rng = np.random.default_rng([seed, number, STREAM])
        scene = home(rng) if drive.is_at_home else furnishing.build(seed, number)
        renderer = _glossy(_with_bare_walls(scene, rng), rng)
        rig = sensors.Rig.usual(*SIZE, rng)
        for frame in range(FRAMES):
            base = sensors.base_to_world(*scene.drive.pose(frame * STEP_S))
            pose = base @ rig.camera_to_base
            aside = np.eye(4)
            aside[0, 3] = drive.baseline_m
            left, right = (
                sensors.CameraView(renderer, rig.camera, each) for each in (pose, pose @ aside)
            )
            truth_m: Floats = left.depth_m
            if drive.has_lidar:
                points = sensors.scan(renderer, 32, 1.0, base @ sensors.LIDAR_TO_BASE, rng)[:, :3]
                place = rig.lidar_to_camera
                truth_m = ground_truth_from_cloud(points, place, rig.camera)
            grey = [
                cv2.cvtColor(sensors.expose(view.radiance, 1.0, rng, rig.look), cv2.COLOR_RGB2GRAY)
                for view in (left, right)
            ]
            scale = drive.baseline_m * float(rig.camera.intrinsics[0, 0])
            yield matched(drive, np.asarray(grey[0]), np.asarray(grey[1]), scale, truth_m)


def _with_bare_walls(scene: Scene, rng: np.random.Generator) -> Scene:
    solids: list[Any] = list(scene.solids)
    for index, solid in enumerate(solids):
        if solid.label in BARE_LABELS and rng.random() < BARE:
            bare = materials.Material(materials.Plain(materials.paint(rng)), dirt=0.0)
            solids[index] = replace(solid, material=bare)
    return replace(scene, solids=solids)


def _glossy(scene: Scene, rng: np.random.Generator) -> GlossyRenderer:
    """Draw what mirrors; the box around the rooms is as bright as the median of a small view."""
    gloss = [
        rng.uniform(*REFLECTANCE) if rng.random() < GLOSSY.get(solid.label, 0) else 0.0
        for solid in scene.solids
    ]
    rig = sensors.Rig.usual(80, 60, rng)
    pose = sensors.base_to_world(*scene.drive.pose(0.0)) @ rig.camera_to_base
    light = sensors.CameraView(Renderer(scene), rig.camera, pose).radiance
    return GlossyRenderer(scene, np.array(gloss, np.float32), float(np.median(light)))


def matched(drive: Drive, left: Image, right: Image, scale: float, truth_m: Floats) -> Pair:
    """Return the depth that drivers serve: unique, the same from right to left, and no speckle.

    Args:
        drive: the matcher's options.
        left: (H, W) rectified.
        right: (H, W) rectified.
        scale: baseline times focal length, metres times pixels.
        truth_m: (H, W).
    """
    served = _disparity(drive, left, right, UNIQUENESS[0], check=1, speckle=100)
    back = _from_right_to_left(drive, left, right)
    rows, columns = np.indices(left.shape, np.float32)
    there = columns - np.maximum(served, 0)
    other = cv2.remap(back, there, rows, cv2.INTER_NEAREST, borderValue=-1)
    difference = np.where(
        other > 0, np.minimum(np.abs(served - other), UNMATCHED_PX), UNMATCHED_PX
    )
    survived = sum(_disparity(drive, left, right, ratio) > 0 for ratio in UNIQUENESS)
    gradient = np.abs(cv2.Sobel(left.astype(np.float32), cv2.CV_32F, 1, 0)) / 8
    warped = cv2.remap(right, there, rows, cv2.INTER_LINEAR)
    is_known = served > scale / MAX_DEPTH_M
    depth_m = np.where(is_known, scale / np.where(is_known, served, 1), np.nan).astype(np.float32)
    uncertainties = {
        "left-right difference": difference,
        "uniqueness": len(UNIQUENESS) - survived,
        "texture": 1 / (1 + cv2.GaussianBlur(gradient, (0, 0), 2.0)),
        "correlation": 1 - _correlation(left.astype(np.float32), warped.astype(np.float32)),
        "spread of depth in 11 pixels": np.exp(features(depth_m)[..., SPREAD]),
    }
    return Pair(
        depth_m,
        truth_m,
        {name: np.asarray(values, np.float32) for name, values in uncertainties.items()},
    )


def _disparity(
    drive: Drive, left: Image, right: Image, uniqueness: int = 0, check: int = -1, speckle: int = 0
) -> Floats:
    """Return the disparity, pixels; negative for none."""
    matcher = cv2.StereoSGBM.create(
        minDisparity=0,
        numDisparities=drive.disparities,
        blockSize=drive.block,
        P1=8 * drive.block**2,
        P2=32 * drive.block**2,
        disp12MaxDiff=check,
        preFilterCap=31,
        uniquenessRatio=uniqueness,
        speckleWindowSize=speckle,
        speckleRange=2,
    )
    left, right = map(np.ascontiguousarray, (left, right))
    return matcher.compute(left, right).astype(np.float32) / 16


def _from_right_to_left(drive: Drive, left: Image, right: Image) -> Floats:
    """Return the disparity of the right image, padded: SGBM leaves a margin unmatched."""
    margin = ((0, 0), (drive.disparities, 0))
    from_right, to_left = (np.pad(image[:, ::-1], margin, "edge") for image in (right, left))
    return _disparity(drive, from_right, to_left)[:, drive.disparities :][:, ::-1]


def _correlation(left: Floats, right: Floats, size: int = 9) -> Floats:
    """Return the normalised correlation of windows, -1 to 1; near 0 where they are flat."""

    def mean(values: Floats) -> Floats:
        return np.asarray(cv2.blur(values, (size, size)), np.float32)

    covariance = mean(left * right) - mean(left) * mean(right)
    variances = [np.maximum(mean(each**2) - mean(each) ** 2, 0) for each in (left, right)]
    return np.clip(covariance / (np.sqrt(variances[0] * variances[1]) + 4), -1, 1)


@dataclass(frozen=True)
class Sigma:
    """A sigma that was fitted to the taught worlds.

    Attributes:
        of: returns it of a pair, (H, W).
        distribution: that it is the standard deviation of; empty if it only ranks.
    """

    of: Callable[[Pair], Floats]
    distribution: str


def mapped(taught: Sequence[Pair], kind: MapInput, name: str = "") -> Sigma:
    """Return what `calibrate` makes of an uncertainty; of the depth alone without a name."""
    frames = Frames(pair.frame(name) for pair in taught)
    choice = calibrate([frames], CalibrationConfig(), kind, progress=False).choice

    def sigma(pair: Pair) -> Floats:
        uncertainty = pair.uncertainties[name] if name else np.ones_like(pair.depth_m)
        return np.asarray(choice.sigma_map(uncertainty, pair.depth_m), np.float32)

    return Sigma(sigma, choice.distribution)


def by_square(taught: Sequence[Pair], name: str) -> Sigma:
    """Return an uncertainty, which ranks alone, as stereo's errors grow: with the square."""
    known = [pair.uncertainties[name][np.isfinite(pair.depth_m)] for pair in taught]
    offset = OFFSET * float(np.quantile(np.concatenate(known), 0.99))
    return Sigma(lambda pair: (pair.uncertainties[name] + offset) * pair.depth_m**2, "")


def learned(taught: Sequence[Pair]) -> Sigma:
    """Return what `calibrate --learn` makes of the depth."""
    frames = Frames(pair.frame() for pair in taught)
    config = CalibrationConfig()
    cut = round(HEAD_TRAINING_FRACTION * len(frames))
    head = learn([Frames(frames[:cut])], config)
    rest = Frames()
    for frame in frames[cut:]:
        depth_m = frame.need_depth().depth_m
        rest.append(replace(frame, prediction=DepthPrediction(depth_m, head(depth_m))))
    choice = calibrate([rest], config, DEPTH_HEAD, progress=False).choice

    def sigma(pair: Pair) -> Floats:
        made = choice.sigma_map(head(pair.depth_m), pair.depth_m)
        return np.asarray(made, np.float32)

    return Sigma(sigma, choice.distribution)


def shuffled(taught: Sequence[Pair], within_frames: bool) -> list[Pair]:
    """Return the pairs with the errors of their log depth in random places."""
    random = np.random.default_rng(0)
    places = [np.flatnonzero((pair.depth_m > 0) & (pair.truth_m > 0)) for pair in taught]
    errors = [
        np.log(pair.truth_m.flat[place] / pair.depth_m.flat[place])
        for pair, place in zip(taught, places, strict=True)
    ]
    if within_frames:
        errors = [random.permutation(each) for each in errors]
    else:
        ends = np.cumsum([len(each) for each in errors])[:-1]
        errors = np.split(random.permutation(np.concatenate(errors)), ends)
    made = []
    for pair, place, error in zip(taught, places, errors, strict=True):
        truth_m = np.full_like(pair.truth_m, np.nan)
        truth_m.flat[place] = pair.depth_m.flat[place] * np.exp(error)
        made.append(replace(pair, truth_m=truth_m))
    return made


def sigmas(taught: Sequence[Pair]) -> dict[str, Sigma]:
    """Return every sigma that is compared, by its name."""
    made = {"a d^k": mapped(taught, NO_CONFIDENCE)}
    for name in taught[0].uncertainties:
        made[f"{name}, times d^2"] = by_square(taught, name)
        made[f"{name}, mapped"] = mapped(taught, UNITLESS_CONFIDENCE, name)
    made["learned"] = learned(taught)
    random = np.random.default_rng(0)

    def in_random_places(pair: Pair) -> Floats:
        sigma = made["learned"].of(pair)
        known = np.isfinite(sigma)
        sigma[known] = random.permutation(sigma[known])
        return sigma

    made["learned, then shuffled"] = replace(made["learned"], of=in_random_places)
    made["learned from errors shuffled in each frame"] = learned(shuffled(taught, True))
    made["learned from errors shuffled over all"] = learned(shuffled(taught, False))
    return made


def scores(made: dict[str, Sigma], drive: Drive, seed: int) -> dict[str, tuple[str, ...]]:
    """Return AUSE of abs_rel and of rmse, and coverage at 95 %, of each sigma on a drive."""
    metrics = {name: OnlineMetrics() for name in made}
    random = np.random.default_rng(seed)
    for pair in pairs(drive, seed):
        is_scored = random.random(pair.depth_m.shape) < SCORED
        truth_m = np.where(is_scored, pair.truth_m, np.float32(np.nan))
        for name, sigma in made.items():
            metrics[name].update(pair.depth_m, sigma.of(pair), truth_m)
    values = {name: each.compute() for name, each in metrics.items()}
    constant = values["learned"]["baselines"]["constant"]["ause"]
    result: dict[str, tuple[str, ...]] = {}
    result["a constant"] = (f"{constant['abs_rel']:.3f}", f"{constant['rmse']:.3f}", "-")
    for name, sigma in made.items():
        own = values[name]["uncertainty"]
        key = "coverage_95_laplace" if sigma.distribution == "laplace" else "coverage_95"
        ause = [f"{own['ause'][statistic]:.3f}" for statistic in ("abs_rel", "rmse")]
        result[name] = *ause, f"{100 * own[key]:.1f}" if sigma.distribution else "-"
    return result


def main(seeds: Sequence[int]) -> None:
    """Print a row for each sigma; a cell has the value of each seed."""
    columns: list[dict[str, tuple[str, ...]]] = []
    for seed in seeds:
        made = sigmas(list(pairs(TAUGHT, 1000 * seed)))
        for number, drive in enumerate(NEW.values(), 1):
            columns.append(scores(made, drive, 1000 * seed + 300 * number))
    titles = [
        f"{name}: {what}"
        for name in NEW
        for what in ("AUSE abs_rel", "AUSE rmse (m)", "coverage at 95 %")
    ]
    print(f"| sigma | {' | '.join(titles)} |")
    print(f"| --- |{' --- |' * len(titles)}")
    for row in columns[0]:
        cells = []
        for number in range(len(NEW)):
            of_seeds = [column[row] for column in columns[number :: len(NEW)]]
            cells += [" / ".join(values) for values in zip(*of_seeds, strict=True)]
        print(f"| {row} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or [1])
