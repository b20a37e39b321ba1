# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Maps of real drives: the shipped model for any camera, measured poses, and depth's scale.

Half of the error of an image's depth is common to its pixels, which no weight of a pixel mends, so
each way to weigh is also fused with the scale that a LiDAR would have given two frames before,
with the true one of each frame, and after the camera's motion has corrected depth and sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import data_folders, mapping_report
from experiments.mapping_grids import Area, DistanceGrid, Measurement, weights
from experiments.robot_worlds import View, model_digest
from experiments.runner import resume
from synthetic.sensors import OPTICAL_TO_CAMERA_LINK
from uncertainty_depth.core.config.nodes import OnlineCorrectionConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.model_location import MODELS
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.sigma.online.correction import OnlineCorrected
from uncertainty_depth.sigma.online.estimates import frame_log_scale
from uncertainty_depth.sigma.posterior import corrected
from uncertainty_depth.stream.motion import with_motion
from uncertainty_depth.stream.opening import open_source

Floats = NDArray[np.float64]
MODEL = "indoor"
DRIVES = {
    "hololens": "",
    "kitchen": ",k=262.5/262.5/160/120,depth_k=292.5/292.5/160/120,depth_xyz=-0.025/0/0",
}
"""Folder to the options of its notation."""
MOTION = "by motion, "
SEEN = (0.01, 0.99)
"""Quantiles of the measured points, along each axis, that a map reaches to."""
THINNED = 8
MAX_STEP = 2
"""Frames from one to the next: the scale of the frames before must still be this one's."""


@dataclass(frozen=True)
class Drives:
    """How real drives are cut: each part is mapped by itself, and resampled as a whole.

    Attributes:
        parts: per drive.
        frames: per part, one after the other at the drive's step.
    """

    parts: int = 10
    frames: int = 25


def resumed(
    output: Path,
    quick: bool,
    data: Path | None,
    settings: dict[str, Any],
    score: Callable[[Path, Drives], list[Any]],
) -> dict[str, list[Any]]:
    """Return the score of each part of each real drive in the data sets, by drive.

    Args:
        output: folder of the experiment.
        quick: for two short parts.
        data: folder of the data sets; None takes the one that the environment names.
        settings: all that a score depends on besides the drives and the model.
        score: returns the scores of the parts of a drive's folder.
    """
    folder = data_folders.RGBD.existing(data)
    names = [name for name in DRIVES if folder and (folder / name).is_dir()]
    if not folder or not names:
        return {}
    drives = Drives(2, 3) if quick else Drives()
    results = resume(
        output / "results_real",
        names,
        {**settings, **asdict(drives), "model": model_digest(MODELS / MODEL)},
        lambda name: score(folder / name, drives),
        f"{output.name}: real drives",
    )
    return dict(zip(names, results, strict=True))


def parts(folder: Path, drives: Drives) -> Iterator[list[tuple[Frame, dict[str, View]]]]:
    """Yield the frames of each part of a drive, with their views by scale."""
    source = open_source(f"rgbd:{folder}{DRIVES[folder.name]}", SourceConfig())
    wanted = drives.parts * drives.frames
    step = min(max(len(source) // wanted, 1), MAX_STEP)
    tracked = enumerate(with_motion(source))
    records = (record for index, record in tracked if index % step == 0)
    frames = (
        record for record in records if isinstance(record, Frame) and record.pose is not None
    )
    moments = _moments(islice(frames, wanted))
    for _ in range(drives.parts):
        if part := list(islice(moments, drives.frames)):
            yield part


def score(folder: Path, drives: Drives, cell_m: float, kept_fraction: float) -> list[Any]:
    """Return the sums of each part of a drive, by grid and way to fuse."""
    return [
        _score_part(part, cell_m, kept_fraction, number)
        for number, part in enumerate(parts(folder, drives))
    ]


def _moments(frames: Iterator[Frame]) -> Iterator[tuple[Frame, dict[str, View]]]:
    """Yield each frame with its views by scale: the model's own, the followed, the true one.

    And as motion has corrected it.
    """
    predictor = Predictor(MODEL, PredictorConfig(device="cpu", samples=8))
    own: list[DepthPrediction] = []

    def predict(frame: Frame) -> DepthPrediction:
        own[:] = [predictor.predict(frame.need_image(), frame.stamp_ns, frame.camera)]
        return own[0]

    publish = OnlineCorrected(predict, OnlineCorrectionConfig(use_depth_scale=True))
    for frame in frames:
        published = publish(frame)
        truth_m = frame.need_ground_truth()
        log_scale = frame_log_scale(own[0].depth_m, truth_m)
        if log_scale is None:
            continue
        by_motion = corrected(own[0], frame, predictor.depth_range, predictor.model.error_prior)
        yield (
            frame,
            {
                "": _view(frame, own[0], 1.0),
                "online scale, ": _view(frame, published, 1.0),
                "true scale, ": _view(frame, own[0], math.exp(log_scale)),
                MOTION: _view(frame, by_motion, 1.0),
            },
        )


def _view(frame: Frame, prediction: DepthPrediction, scale: float) -> View:
    """Return a frame's view; all ways use the same pixels, those with known depth."""
    assert frame.camera is not None
    assert frame.pose is not None
    truth_m = frame.need_ground_truth().ravel().astype(np.float64)
    rays = frame.camera.rays().reshape(-1, 3) @ OPTICAL_TO_CAMERA_LINK[:3, :3].T
    depth_m = np.where(np.isfinite(truth_m), scale * prediction.depth_m.ravel(), np.nan)
    sigma_m = scale * prediction.sigma_m.ravel().astype(np.float64)
    return View(frame.camera, rays, frame.pose, truth_m, depth_m, sigma_m, frame.stamp_ns)


def _score_part(
    part: list[tuple[Frame, dict[str, View]]], cell_m: float, kept_fraction: float, seed: int
) -> dict[str, Any]:
    area = Area.of(_extent([frame for frame, _ in part]), cell_m)
    truth = DistanceGrid(area)
    maps: dict[str, DistanceGrid] = {}
    rng = np.random.default_rng(seed)
    for _, views in part:
        plain = views[""]
        truth.add(Measurement(plain, plain.truth_m, np.ones_like(plain.truth_m)))
        for scale, view in views.items():
            for way, weight in weights(view, kept_fraction, rng).items():
                if scale in ("", MOTION) or way in ("1 / z^2", "1 / sigma^2"):
                    grid = maps.setdefault(scale + way, DistanceGrid(area))
                    grid.add(Measurement(view, view.depth_m, weight))
    values = {way: grid.values() for way, grid in maps.items()}
    return {"distance": mapping_report.sums("distance", truth.values(), values)}


def _extent(frames: list[Frame]) -> Floats:
    """Return the (2, 3) corners of what was measured, gross errors aside, metres."""
    points = []
    for frame in frames:
        assert frame.camera is not None
        assert frame.pose is not None
        depth_m = frame.need_ground_truth()[::THINNED, ::THINNED]
        known = np.isfinite(depth_m)
        optical = (frame.camera.rays()[::THINNED, ::THINNED] * depth_m[..., None])[known]
        points.append(optical @ frame.pose[:3, :3].T + frame.pose[:3, 3])
    extent: Floats = np.quantile(np.concatenate(points), SEEN, axis=0)
    return extent
