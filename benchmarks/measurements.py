# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What do measurements bring: pixels of known depth, zones, rings, corners, the camera's motion?

python -m benchmarks.measurements SOURCE ... [--every 5] [--bad-poses | --bad-images]
    [--model indoor]

Each frame is predicted once, and corrected by every way of measuring. The simulated ones take
their depth from the ground truth. Measured pixels and their neighbours are never scored, so a
way's frames are compared with the network's on the pixels that are left.

- *68, 95 % holds*: of the intervals, under the distribution of the model's head.
- *by distance*: 95 % holds in thirds of the scored pixels, by the distance to the nearest
  measurement.
- *AUSE*: against the better of a constant sigma and one in proportion to depth; less is better.
- *worse*: frames whose MAE is more than 10 % above the network's, and the worst frame's factor.
- *imprint*: correction of log depth at a measurement, over that 4 pixels away; 1 is no trace.
- *normals*: mean angle to the ground truth's, where that has no edge; its own noise is in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from experiments.tables import markdown
from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.transforms import interpolated
from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.model_location import NAMES
from uncertainty_depth.core.records import DepthPrediction, Frame, Skipped
from uncertainty_depth.depth.model_folder.folder import RELATIVE_RANGE
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics import coverage, depth_errors
from uncertainty_depth.metrics.calibration import of_distribution
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.report.model_facts import distribution_of_model
from uncertainty_depth.sigma.error_prior import FOREIGN, ErrorPrior
from uncertainty_depth.sigma.posterior import MAX_MEASUREMENTS, corrected, posterior
from uncertainty_depth.stream.held_out import random_pixels, unmeasured
from uncertainty_depth.stream.motion import Motion
from uncertainty_depth.stream.opening import open_source

Measure = Callable[[Frame], Measurements]
Correct = Callable[[Frame, Measurements, ErrorPrior], DepthPrediction]
Pose = NDArray[np.float64]
PoseError = Callable[[Sequence[Pose]], Sequence[Pose]]

ZONE_LOG_SIGMA = 0.10
"""How far a zone's mean may be from the depth of its centre pixel."""
VOID_LIMITS_M = (0.2, 5.0)
"""Depth that counts in the protocol of VOID (Wong et al. 2020)."""
BESIDE_PX = 4
NORMAL_PX = 8
"""Half of what a normal's differences span: shorter ones are a sensor's noise."""
MAX_EDGE = 0.05
"""Part of the ground truth by which its depth differs over that span, less than at an edge."""
WORSE = 1.1
WALKER_M = 1.5
WALKER_STEP = 0.02
"""Part of the image and the walker by which it moves from image to image."""


# What is measured


def none(frame: Frame) -> Measurements:
    """Return no measurement."""
    return Measurements.none()


def pixels(count: int, frame: Frame) -> Measurements:
    """Return the ground truth of random pixels."""
    truth_m = frame.need_ground_truth()
    drawn = random_pixels(truth_m, frame.stamp_ns, count)
    return Measurements.from_map(np.where(drawn, truth_m, np.nan))


def shifted(shift: int, count: int, frame: Frame) -> Measurements:
    """Return random pixels, each said to be some columns beside its place."""
    drawn = pixels(count, frame)
    moved = replace(drawn, columns=drawn.columns + shift)
    return moved.taken(moved.columns < frame.need_ground_truth().shape[1])


def partly_wrong(share: float, count: int, frame: Frame) -> Measurements:
    """Return random pixels, of which a share is twice or half as far as the truth."""
    drawn = pixels(count, frame)
    random = np.random.default_rng(frame.stamp_ns)
    factor = np.where(random.random(len(drawn)) < 0.5, 2, 0.5)
    factor[random.random(len(drawn)) >= share] = 1
    return replace(drawn, depth_m=drawn.depth_m * factor)


def zones(frame: Frame) -> Measurements:
    """Return the mean depth of each of 8x8 zones, at its centre: a time-of-flight sensor's."""
    truth_m = frame.need_ground_truth()
    means = np.full_like(truth_m, np.nan)
    rows, columns = (np.arange(9) * size // 8 for size in truth_m.shape)
    for row in range(8):
        for column in range(8):
            zone = truth_m[rows[row] : rows[row + 1], columns[column] : columns[column + 1]]
            if np.isfinite(zone).mean() > 0.5:
                at = (rows[row] + len(zone) // 2, columns[column] + zone.shape[1] // 2)
                means[at] = np.nanmean(zone)
    return Measurements.from_map(means, ZONE_LOG_SIGMA)


def rings(count: int, frame: Frame, most: int = MAX_MEASUREMENTS) -> Measurements:
    """Return rows of the ground truth: one at the camera's height, or some evenly spread."""
    truth_m = frame.need_ground_truth()
    height, width = truth_m.shape
    rows = (2 * np.arange(count) + 1) * height // (2 * count)
    if count == 1 and frame.camera is not None:
        rows = np.array([round(frame.camera.intrinsics[1, 2])])
    columns = np.arange(0, width, -(-width * count // most))
    at = np.ix_(rows, columns)
    measured = np.full_like(truth_m, np.nan)
    measured[at] = truth_m[at]
    return Measurements.from_map(measured)


def corners(count: int, frame: Frame) -> Measurements:
    """Return the ground truth of the most distinct corners."""
    truth_m = frame.need_ground_truth()
    near, far = VOID_LIMITS_M
    known = (truth_m >= near) & (truth_m <= far)
    grey = cv2.cvtColor(frame.need_image(), cv2.COLOR_RGB2GRAY)
    found = cv2.goodFeaturesToTrack(grey, count, 1e-4, 5, mask=known.astype(np.uint8))
    measured = np.full_like(truth_m, np.nan)
    if found is not None:
        columns, rows = found[:, 0].astype(int).T
        measured[rows, columns] = truth_m[rows, columns]
    return Measurements.from_map(measured)


# What is done with it


def process(frame: Frame, measured: Measurements, prior: ErrorPrior) -> DepthPrediction:
    """Return the posterior."""
    return posterior(frame.need_prediction(), measured, frame.need_image(), prior).prediction


def one_scale(frame: Frame, measured: Measurements, _: ErrorPrior) -> DepthPrediction:
    """Return the prediction times the median ratio of measured and predicted depth."""
    prediction = frame.need_prediction()
    predicted_m = prediction.depth_m[measured.rows, measured.columns]
    scale = np.float32(np.median(measured.depth_m / predicted_m))
    return DepthPrediction(scale * prediction.depth_m, scale * prediction.sigma_m)


def as_served(frame: Frame, measured: Measurements, prior: ErrorPrior) -> DepthPrediction:
    """Return what is made of a LiDAR's pixels: interpolated too where they are everywhere."""
    prediction = frame.need_prediction()
    given = replace(frame, sparse_m=measured.map(prediction.depth_m.shape), measurements=None)
    return corrected(prediction, given, VOID_LIMITS_M, prior)


def without_unit(frame: Frame, measured: Measurements, prior: ErrorPrior) -> DepthPrediction:
    """Return what is made of inverse depth whose scale and shift, of each frame, nobody knows."""
    prediction = frame.need_prediction()
    random = np.random.default_rng(frame.stamp_ns)
    scale, shift = random.uniform([0.5, -0.05], [3.0, 0.3]).astype(np.float32)
    inverse = scale * (1 / prediction.depth_m - shift)
    sigma = scale * prediction.sigma_m / prediction.depth_m**2
    given = replace(frame, measurements=measured)
    if not measured.common_log_sigma.any():  # not by motion: what a LiDAR gives
        given = replace(frame, sparse_m=measured.map(inverse.shape), measurements=None)
    try:
        return corrected(
            DepthPrediction(inverse, sigma), given, RELATIVE_RANGE, prior,
            is_relative=True,
        )  # fmt: skip
    except MessageError:  # too few pixels for scale and shift
        unknown = np.full_like(inverse, np.nan)
        return DepthPrediction(unknown, unknown)


# Images that are bad


def blurred(pixels: int, frame: Frame, number: int) -> Frame:
    """Return a frame whose image a camera has moved through, to the side."""
    return replace(frame, image=cv2.blur(frame.need_image(), (pixels, 1)))


def with_walker(frame: Frame, number: int) -> Frame:
    """Return a frame that somebody in a patterned coat crosses, `WALKER_M` away."""
    image, truth_m = frame.need_image().copy(), frame.ground_truth_m
    height, width = image.shape[:2]
    wide, tall = width // 5, 4 * height // 5
    noise = np.random.default_rng(0).integers(0, 256, (tall // 4, wide // 4, 3), np.uint8)
    coat = cv2.resize(noise, (wide, tall), interpolation=cv2.INTER_CUBIC)
    left = int((number * WALKER_STEP) % 1 * (width + wide)) - wide
    shown = slice(max(left, 0), min(left + wide, width))
    at = (slice(height - tall, height), shown)
    image[at] = coat[:, shown.start - left : shown.stop - left]
    if truth_m is not None:
        truth_m = truth_m.copy()
        truth_m[at] = WALKER_M
    return replace(frame, image=image, ground_truth_m=truth_m)


BAD_IMAGES: dict[str, Callable[[Frame, int], Frame]] = {
    "as recorded": lambda frame, _: frame,
    "blurred by 5 pixels": partial(blurred, 5),
    "blurred by 15 pixels": partial(blurred, 15),
    "somebody walks through": with_walker,
}


# Poses that are wrong


def scaled(factor: float, poses: Sequence[Pose]) -> list[Pose]:
    """Return poses whose way is too long by a factor."""
    return [_moved(pose, factor * pose[:3, 3]) for pose in poses]


def walked(degrees: float, part: float, poses: Sequence[Pose]) -> list[Pose]:
    """Return poses that add up steps with errors: degrees about each axis, a part of the way."""
    random = np.random.default_rng(0)
    walk = [poses[0]]
    for before, after in pairwise(poses):
        step = np.linalg.inv(before) @ after
        error = Rotation.from_rotvec(np.deg2rad(degrees) * random.standard_normal(3))
        step[:3, :3] = step[:3, :3] @ error.as_matrix()
        way = np.linalg.norm(step[:3, 3])
        step[:3, 3] += part * way * random.standard_normal(3)
        walk.append(walk[-1] @ step)
    return walk


def mounted(degrees: float, poses: Sequence[Pose]) -> list[Pose]:
    """Return poses of a camera that is turned about its vertical axis against what is known."""
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler("y", degrees, degrees=True).as_matrix()
    return [pose @ turn for pose in poses]


def late(images: float, poses: Sequence[Pose]) -> list[Pose]:
    """Return the poses of a part of the time to the next image later."""
    pairs = zip(poses, [*poses[1:], poses[-1]], strict=True)
    return [interpolated(before, after, images) for before, after in pairs]


def _moved(pose: Pose, position: Floats) -> Pose:
    moved = pose.copy()
    moved[:3, 3] = position
    return moved


POSE_ERRORS: dict[str, PoseError] = {
    "as recorded": list,
    "translation 3 % too long": partial(scaled, 1.03),
    "translation 10 % too long": partial(scaled, 1.1),
    "no translation": partial(scaled, 0.0),
    "translation walks by 10 % of the way": partial(walked, 0.0, 0.1),
    "rotation walks by 0.1 degrees an image": partial(walked, 0.1, 0.0),
    "rotation walks by 0.3 degrees an image": partial(walked, 0.3, 0.0),
    "rotation walks by 1 degree an image": partial(walked, 1.0, 0.0),
    "camera mounted 1 degree off": partial(mounted, 1.0),
    "camera mounted 3 degrees off": partial(mounted, 3.0),
    "image late by a quarter": partial(late, 0.25),
    "image late by a half": partial(late, 0.5),
    "image late by one": partial(late, 1.0),
}


class ByMotion:
    """Measures by motion, with the poses of the frames or with others.

    Attributes:
        motion: what measures.
    """

    def __init__(self, poses: Sequence[Pose] | None = None) -> None:
        self.motion = Motion()
        self._poses = None if poses is None else iter(poses)

    def __call__(self, frame: Frame) -> Measurements:
        """Return what motion measures in the next frame."""
        if self._poses is not None and frame.pose is not None:
            frame = replace(frame, pose=next(self._poses))
        return self.motion.measure(frame) or Measurements.none()

    @property
    def has_poses(self) -> bool:
        """Whether any frame had one."""
        return self.motion.without_pose < self.motion.frames

    @property
    def rejected(self) -> float:
        """Share of the frames whose poses did not fit."""
        return self.motion.tracker.rejected / max(self.motion.frames, 1)


# What it brings


@dataclass(frozen=True)
class Way:
    """A way of measuring.

    Attributes:
        measure: returns a frame's measurements; one by motion sees every frame.
        correct: returns what they make of its prediction.
        limits_m: least and greatest true depth that is scored.
    """

    measure: Measure
    correct: Correct = process
    limits_m: tuple[float, float] = (EvaluationConfig().min_depth, EvaluationConfig().max_depth)


WAYS: dict[str, Way] = {
    "network alone": Way(none),
    "one scale, 64 pixels": Way(partial(pixels, 64), one_scale),
    "64 pixels, the process alone": Way(partial(pixels, 64)),
    **{
        f"{count} {'pixel' if count == 1 else 'pixels'}": Way(partial(pixels, count), as_served)
        for count in (1, 16, 64, 256, 500)
    },
    "8x8 zones": Way(zones),
    "one ring": Way(partial(rings, 1), as_served),
    "four rings": Way(partial(rings, 4), as_served),
    "eight rings": Way(partial(rings, 8, most=8 * 10_000), as_served),
    "16 rings": Way(partial(rings, 16, most=16 * 10_000), as_served),
    "64 pixels, 5 px beside": Way(partial(shifted, 5, 64), as_served),
    "64 pixels, no metres": Way(partial(pixels, 64), without_unit),
    "256 pixels, 5 % of them wrong": Way(partial(partly_wrong, 0.05, 256), as_served),
    "network alone, 0.2 to 5 m": Way(none, limits_m=VOID_LIMITS_M),
    **{
        f"{count} corners, 0.2 to 5 m": Way(partial(corners, count), as_served, VOID_LIMITS_M)
        for count in (150, 500, 1500)
    },
}


class Score:
    """What one way has brought over the frames so far."""

    def __init__(self, way: Way, distribution: str, prior: ErrorPrior) -> None:
        near, far = way.limits_m
        self.way = way
        self._distribution = distribution
        self._prior = prior
        self._metrics = OnlineMetrics(min_depth=near, max_depth=far)
        self._measured: list[int] = []
        self._mae_m: list[float] = []
        self._network_mae_m: list[float] = []
        self._scored: list[int] = []
        self._by_distance: list[list[float]] = []
        self._corrections: list[tuple[float, float]] = []
        self._angles: list[float] = []

    def add(self, frame: Frame, measured: Measurements) -> None:
        """Correct a frame's prediction, and score it where nothing was measured."""
        network = frame.need_prediction()
        corrected = network
        if len(measured):
            corrected = self.way.correct(frame, measured, self._prior)
        mask = measured.mask(network.depth_m.shape)
        truth_m = unmeasured(frame.need_ground_truth(), mask)
        depth_m, sigma_m = corrected.depth_m, corrected.sigma_m
        if self._metrics.update(depth_m, sigma_m, truth_m) is None:
            return
        near, far = self.way.limits_m
        scored = (truth_m >= near) & (truth_m <= far) & np.isfinite(depth_m)
        error_m = np.abs(depth_m - truth_m)
        network_m = depth_errors(network.depth_m[scored], truth_m[scored])["mae"]
        self._measured.append(len(measured))
        self._scored.append(int(scored.sum()))
        self._mae_m.append(float(error_m[scored].mean()))
        self._network_mae_m.append(network_m)
        if frame.camera is not None:
            self._angles.append(angle_between(depth_m, truth_m, frame.camera))
        if not len(measured):
            return
        distance = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 5)[scored]
        third = np.searchsorted(np.quantile(distance, (1 / 3, 2 / 3)), distance)
        error, sigma = error_m[scored], sigma_m[scored]
        parts = [third == index for index in range(3)]
        self._by_distance.append(
            [float(coverage(error[part], sigma[part], 0.95, self._distribution)) for part in parts]
        )
        correction = np.log(depth_m / network.depth_m)
        self._corrections.append(corrections(correction, measured.rows, measured.columns))

    @property
    def has_input(self) -> bool:
        """Whether any frame has what the way measures by: motion needs poses."""
        measure = self.way.measure
        return not isinstance(measure, ByMotion) or measure.has_poses

    def row(self) -> dict[str, str]:
        """Return the cells of the table of ways."""
        values = self._metrics.compute()
        depth, uncertainty = values["depth"], values["uncertainty"]

        def holds(percent: int) -> str:
            name = of_distribution(f"coverage_{percent}", self._distribution)
            return f"{100 * uncertainty[name]:.0f}"

        def against_trivial(name: str) -> str:
            trivial = min(
                values["baselines"][baseline]["ause"][name]
                for baseline in ("constant", "proportional_to_depth")
            )
            ause = uncertainty["ause"][name]
            return f"{round(100 * (ause / trivial - 1)):+d}" if trivial else "none"

        by_distance = np.nanmean(self._by_distance, axis=0) if self._by_distance else ()
        at, beside = np.sum(self._corrections, axis=0) if self._corrections else (0.0, 0.0)
        factors = np.array(self._mae_m) / self._network_mae_m
        return {
            "pixels": f"{np.mean(self._measured):.0f}",
            "MAE (m)": f"{depth['mae']:.3f}",
            "AbsRel": f"{depth['abs_rel']:.3f}",
            "RMSE (m)": f"{depth['rmse']:.3f}",
            "a1": f"{depth['a1']:.3f}",
            "68, 95 % holds": f"{holds(68)}, {holds(95)}",
            "by distance": " / ".join(f"{100 * held:.0f}" for held in by_distance),
            "AUSE rmse, abs_rel (%)": f"{against_trivial('rmse')}, {against_trivial('abs_rel')}",
            "worse": f"{100 * np.mean(factors > WORSE):.0f} % (x{factors.max():.2f})",
            "imprint": f"{at / beside:.2f}" if beside else "",
            "normals (deg)": f"{np.nanmean(self._angles):.1f}" if self._angles else "",
        }

    def row_of_motion(self) -> dict[str, str]:
        """Return the cells of the table of wrong poses."""
        assert isinstance(self.way.measure, ByMotion)
        offset = self.way.measure.motion.tracker.time_offset
        factors = np.array(self._mae_m) / self._network_mae_m
        mae_m, network_m = (
            np.average(each, weights=self._scored) for each in (self._mae_m, self._network_mae_m)
        )
        return {
            "pixels": f"{np.mean(self._measured):.0f}",
            "MAE over the network's": f"{mae_m / network_m:.2f}",
            "worst frame": f"x{factors.max():.2f}",
            "frames rejected": f"{100 * self.way.measure.rejected:.0f} %",
            "offset found (images)": f"{offset.seconds() / offset.interval_s:.2f}",
        }


def corrections(
    correction: NDArray[np.floating], rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> tuple[float, float]:
    """Return the mean absolute correction at some pixels of a map, and `BESIDE_PX` beside them."""
    size = np.abs(np.pad(correction, BESIDE_PX, mode="edge"))
    rows, columns = rows + BESIDE_PX, columns + BESIDE_PX
    steps = ((BESIDE_PX, 0), (-BESIDE_PX, 0), (0, BESIDE_PX), (0, -BESIDE_PX))
    beside = [size[rows + down, columns + across] for down, across in steps]
    return float(np.nanmean(size[rows, columns])), float(np.nanmean(beside))


def angle_between(
    depth_m: NDArray[np.floating], truth_m: NDArray[np.floating], camera: Camera
) -> float:
    """Return the mean angle between the normals of two depth maps, degrees; NaN without any."""
    rays = camera.rays()
    normals = [_normals(each, rays) for each in (depth_m, truth_m)]
    cosine = np.clip((normals[0] * normals[1]).sum(axis=-1), -1, 1)
    across, down = _differences(truth_m)
    smooth = np.maximum(np.abs(across), np.abs(down)) < MAX_EDGE * _inner(truth_m)
    angles = np.rad2deg(np.arccos(cosine[smooth]))
    return float(np.nanmean(angles)) if len(angles) else float("nan")


def _normals(depth_m: NDArray[np.floating], rays: Floats) -> Floats:
    across, down = _differences(depth_m[..., None] * rays)
    normals = np.cross(across, down)
    unit: Floats = normals / np.linalg.norm(normals, axis=-1, keepdims=True)
    return unit


def _differences(values: NDArray[np.floating]) -> tuple[NDArray, NDArray]:
    span = 2 * NORMAL_PX
    inner = slice(NORMAL_PX, -NORMAL_PX)
    return values[inner, span:] - values[inner, :-span], values[span:, inner] - values[
        :-span, inner
    ]


def _inner(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return values[NORMAL_PX:-NORMAL_PX, NORMAL_PX:-NORMAL_PX]


def frames_of(source: Source) -> Iterator[Frame]:
    """Yield every frame, also those without ground truth: motion tracks through them."""
    for record in source:
        frame = record.frame if isinstance(record, Skipped) else record
        if frame is not None:
            yield frame


def scores_of(
    frames: Iterator[Frame],
    ways: dict[str, Way],
    every: int,
    predict: Callable[[Frame], DepthPrediction],
    distribution: str,
    prior: ErrorPrior = FOREIGN,
) -> dict[str, Score]:
    """Return what each way brings in every so many frames, by its name."""
    scores = {name: Score(way, distribution, prior) for name, way in ways.items()}
    for number, frame in enumerate(frames):
        is_scored = number % every == 0 and frame.ground_truth_m is not None
        if is_scored:
            frame = replace(frame, prediction=predict(frame))
        for score in scores.values():
            if is_scored:
                score.add(frame, score.way.measure(frame))
            elif isinstance(score.way.measure, ByMotion):
                score.way.measure(frame)
    return scores


def main() -> None:
    """Print a table for each source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--every", type=int, default=1, help="score every so many frames")
    bad = parser.add_mutually_exclusive_group()
    bad.add_argument("--bad-poses", action="store_true", help="motion by wrong poses")
    bad.add_argument("--bad-images", action="store_true", help="motion in bad images")
    parser.add_argument("--model", choices=NAMES, default="indoor")
    arguments = parser.parse_args()
    predictor = Predictor(arguments.model, PredictorConfig(device="cpu"))
    distribution = distribution_of_model(predictor.describe())
    for notation in arguments.sources:
        source = open_source(notation, SourceConfig())
        ways = {
            **WAYS,
            "motion": Way(ByMotion()),
            "motion, no metres": Way(ByMotion(), without_unit),
        }
        if arguments.bad_poses:
            poses = [frame.pose for frame in frames_of(source) if frame.pose is not None]
            ways = {name: Way(ByMotion(wrong(poses))) for name, wrong in POSE_ERRORS.items()}
        score = partial(
            scores_of,
            every=arguments.every,
            predict=lambda it: predictor.predict(it.need_image(), it.stamp_ns, it.camera),
            distribution=distribution,
            prior=predictor.model.error_prior,
        )
        if arguments.bad_images:
            scores: dict[str, Score] = {}
            for name, spoilt in BAD_IMAGES.items():
                frames = (spoilt(frame, at) for at, frame in enumerate(frames_of(source)))
                scores |= score(frames, {name: Way(ByMotion())})
        else:
            scores = score(frames_of(source), ways)
        is_of_motion = arguments.bad_poses or arguments.bad_images
        cells = Score.row_of_motion if is_of_motion else Score.row
        rows = {name: cells(score) for name, score in scores.items() if score.has_input}
        header = list(rows[next(iter(rows))])
        print(notation, "\n")
        print(markdown(["", *header], [[name, *row.values()] for name, row in rows.items()]))


if __name__ == "__main__":
    main()
