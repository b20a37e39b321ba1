# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What do some rings of a LiDAR bring on a street, scored on the points of the others?

python -m benchmarks.rings KITTI_DRIVE_DIR MODEL_DIR

Of 64 rings every second, fourth, ... measures; of all 64 a random half of the points. The second
half of the drive is scored: `python -m benchmarks.elsewhere` trains a model on the first, and
finds how it errs there. *By indoor's prior* is what becomes of it if `indoor`'s errors are taken
for the model's. *Linear* interpolates the logarithm of the given depth, without a model.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import griddata

from experiments.nyu_scores import CONFIG
from experiments.tables import markdown
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.sigma.error_prior import FOREIGN
from uncertainty_depth.sigma.posterior import corrected
from uncertainty_depth.stream.held_out import unmeasured
from uncertainty_depth.stream.opening import open_source

RINGS = 64
Choose = Callable[[NDArray[np.floating]], NDArray[np.bool_]]


def ring_of(points: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the ring of each of a scan's points, (N,).

    KITTI stores ring after ring, each from straight ahead once around.
    """
    azimuth = np.unwrap(np.arctan2(points[:, 1], points[:, 0]))
    rings: NDArray[np.intp] = np.floor(azimuth / (2 * np.pi)).astype(np.intp)
    return rings


def some_rings(count: int, points: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return which points are of so many rings, evenly among all; of one, of the middle one."""
    step = RINGS // count
    return ring_of(points) % step == step // 2


def half(points: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return a random half of the points."""
    return np.random.default_rng(len(points)).random(len(points)) < 0.5


def given(frame: Frame, choose: Choose | None) -> Frame:
    """Return the frame with what the chosen points measure, and without it in the truth."""
    if choose is None:
        return frame
    scan, camera = frame.scan, frame.camera
    assert scan is not None
    assert camera is not None
    chosen = scan.points[choose(scan.points)]
    sparse_m = ground_truth_from_cloud(chosen, scan.lidar_to_camera, camera)
    truth_m = unmeasured(frame.need_ground_truth(), np.isfinite(sparse_m))
    return Frame(frame.stamp_ns, frame.name, camera, frame.image, sparse_m, truth_m)


WAYS: dict[str, Choose | None] = {
    "image alone": None,
    "1 ring": partial(some_rings, 1),
    **{f"{count} rings": partial(some_rings, count) for count in (4, 8, 16, 32)},
    "64 rings, half of the points": half,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("drive")
    parser.add_argument("model", type=Path)
    arguments = parser.parse_args()
    predictor = Predictor(arguments.model, PredictorConfig(device="cpu"))
    drive = list(open_source(f"kitti:{arguments.drive}", SourceConfig()))
    own, foreign = predictor.model.error_prior, FOREIGN
    rows = {name: [OnlineMetrics(CONFIG) for _ in range(3)] for name in WAYS}
    pixels: dict[str, list[int]] = {name: [] for name in WAYS}
    for frame in drive[len(drive) // 2 :]:
        if not isinstance(frame, Frame):
            continue
        alone = predictor.predict(frame.need_image(), frame.stamp_ns, frame.camera)
        for name, choose in WAYS.items():
            one = given(frame, choose)
            results = [alone]
            if one.sparse_m is not None:
                pixels[name].append(int(np.isfinite(one.sparse_m).sum()))
                correct = partial(corrected, alone, one, predictor.depth_range)
                results = [correct(own), correct(foreign), linear(one.sparse_m)]
            for metrics, result in zip(rows[name], results, strict=False):
                metrics.update(result.depth_m, result.sigma_m, one.need_ground_truth())
    table = []
    for name, each in rows.items():
        values, by_indoors, plain = (flatten(metrics.compute()) for metrics in each)
        cells = [f"{values[f'depth.{key}']:.3f}" for key in ("mae", "abs_rel", "rmse", "a1")]
        cells.append(_holds(values))
        measured = "0"
        if pixels[name]:
            measured = f"{np.mean(pixels[name]):.0f}"
            cells += [f"{by_indoors['depth.rmse']:.3f}", _holds(by_indoors)]
            cells += [f"{plain['depth.mae']:.3f}", f"{plain['depth.rmse']:.3f}"]
        table.append([name, measured, *cells, *([""] * (9 - len(cells)))])
    header = ["MAE (m)", "AbsRel", "RMSE (m)", "a1", "68, 95 % holds"]
    header += ["by indoor's prior: RMSE (m)", "68, 95 % holds", "linear: MAE (m)", "RMSE (m)"]
    print(markdown(["", "pixels", *header], table))


def linear(sparse_m: NDArray[np.floating]) -> DepthPrediction:
    """Return known depth interpolated linearly between three pixels; beyond all, the nearest's."""
    rows, columns = np.nonzero(np.isfinite(sparse_m))
    places = np.stack([rows, columns], axis=1)
    log_depth = np.log(sparse_m[rows, columns])
    wanted = tuple(np.indices(sparse_m.shape))
    between = griddata(places, log_depth, wanted, "linear")
    nearest = griddata(places, log_depth, wanted, "nearest")
    depth_m = np.exp(np.where(np.isfinite(between), between, nearest)).astype(np.float32)
    return DepthPrediction(depth_m, depth_m)  # says nothing of its error


def _holds(values: Mapping[str, float]) -> str:
    parts = [100 * values[f"uncertainty.coverage_{level}_laplace"] for level in (68, 95)]
    return ", ".join(f"{part:.0f}" for part in parts)


if __name__ == "__main__":
    main()
