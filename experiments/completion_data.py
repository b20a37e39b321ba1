# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames that depth completion is scored on, and the known depth that is given of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
from tqdm import tqdm

from experiments.completion_models import (
    INPUT_FRACTION,
    TEST_WORLDS,
    Settings,
    rendered,
)
from experiments.completion_sets import MAX_DEPTH_M, MIN_DEPTH_M
from experiments.data_folders import KITTI, NYU, first_frames, spread_frames
from experiments.sparse_networks import with_known, with_random
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.geometry.camera import project
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics import depth_errors
from uncertainty_depth.metrics.depth import scorable
from uncertainty_depth.stream.held_out import unit_hashes
from uncertainty_depth.stream.opening import open_source

NYU_CROP = 214 * 281 / (240 * 320)
"""Fraction of an NYU image with known depth: the usual evaluation crop."""
HELD_OUT_RINGS = 0.9
"""Fraction of KITTI's rings: the others fill 8 % of the network's pixels; training gave 5 %."""
RING_BAND_DEG = 0.5
"""Height of a band of elevation: it holds one ring or two of a LiDAR with 64 or 128."""
FEWEST_POINTS = 4  # of a triangulation


def nyu(data: Path | None, split: str, frames: int) -> Source:
    """Return `frames` images of a split, evenly spread."""
    source = open_source(f"nyu:{NYU.find(data)}:{split}", SourceConfig())
    return spread_frames(source, frames)


def test_sources(data: Path | None, settings: Settings) -> dict[str, Source]:
    """Return the test sets with sparse depth; KITTI is left out if it is missing.

    Of rendered worlds and NYU 5 % of the network's pixels are given at random.
    """
    input_pixels = INPUT_FRACTION * float(np.prod(settings.shifted.input_size))
    worlds = rendered(settings.test_worlds, TEST_WORLDS)
    images = nyu(data, "test", settings.shifted_test)
    sources: dict[str, Source] = {
        "rendered worlds": with_random(worlds, round(input_pixels)),
        "NYU": with_random(images, round(input_pixels * NYU_CROP)),
    }
    kitti = KITTI.existing(data)
    if kitti is not None and (drives := sorted(kitti.glob("*/*_sync"))):
        drive = open_source(f"kitti:{drives[0]}", SourceConfig())
        first = first_frames(drive, settings.kitti_frames)
        sources["KITTI"] = with_known(first, lambda frame: ~rings_held_out(frame))
    return sources


def rings_held_out(frame: Frame) -> NDArray[np.bool_]:
    """Return the pixels of whole rings of the LiDAR, (H, W), which asks how well a gap is filled.

    Hashed by bands of elevation, not alternating: rings 2 degrees apart would all fall into bands
    of one parity.
    """
    assert frame.scan is not None
    assert frame.camera is not None
    points = frame.scan.points[:, :3]
    elevation = np.degrees(np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1])))
    bands = np.floor(np.nan_to_num(elevation) / RING_BAND_DEG).astype(np.int64)
    of_rings = points[unit_hashes(bands.view(np.uint64)) < HELD_OUT_RINGS]
    # The same rounding as in `ground_truth_from_cloud`, so that equal points are equal depths.
    nearest = project(of_rings, frame.scan.lidar_to_camera.round(12), frame.camera)
    return np.asarray(nearest == frame.need_ground_truth())


def interpolation_errors(source: Source, label: str) -> dict[str, float]:
    """Return the errors of linear interpolation between the given pixels, over all pixels.

    Beyond their hull the nearest is taken; what completes depth without any network.
    """
    depths = []
    truths = []
    for record in tqdm(source, label, len(source), unit="frame", leave=False):
        if isinstance(record, Frame) and record.sparse_m is not None:
            valid = scorable(record.need_ground_truth(), MIN_DEPTH_M, MAX_DEPTH_M)
            depths.append(interpolated(record.sparse_m, valid))
            truths.append(record.need_ground_truth()[valid])
    return depth_errors(np.concatenate(depths), np.concatenate(truths))


def interpolated(sparse_m: NDArray[np.floating], query: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Return depth at the query pixels, (n,) metres, from the known pixels alone.

    Args:
        sparse_m: (H, W) metres, NaN where unknown.
        query: (H, W).
    """
    places = np.argwhere(np.isfinite(sparse_m))
    values = sparse_m[np.isfinite(sparse_m)]
    positions = np.argwhere(query)
    nearest = NearestNDInterpolator(places, values)(positions)
    if len(places) < FEWEST_POINTS:
        return nearest
    between = LinearNDInterpolator(places, values)(positions)
    return np.where(np.isfinite(between), between, nearest)
