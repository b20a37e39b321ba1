# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Which known depth is held out from a model's sparse input.

A model must not be scored on what it was given. Live, two processes decide that apart from each
other, the depth node what it gives and the evaluator node what it scores, perhaps from different
clouds. So the decision is a function of what both know: of pixel and stamp of the image, or of
the elevation of a point above the LiDAR's horizon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.completion.config import BY_PIXEL, RING_BAND_DEG, HeldOutConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.geometry.camera import Camera, project
from uncertainty_depth.records import Scan


def check_scorable(config: HeldOutConfig) -> None:
    """Raise `ConfigError` where nothing is held out."""
    if config.held_out_fraction == 0:
        raise ConfigError(
            "held_out_fraction is 0, so the model would be scored on the depth that it is given; "
            "expected above 0"
        )


def held_out(
    depth_m: NDArray[np.floating],
    stamp_ns: int,
    config: HeldOutConfig,
    scan: Scan | None = None,
    camera: Camera | None = None,
) -> NDArray[np.bool_]:
    """Return which pixels of a depth map are held out, (H, W); unknown ones never are.

    Args:
        depth_m: (H, W), metres, NaN where unknown.
        stamp_ns: of the image, nanoseconds.
        config: the fraction, and what decides.
        scan: what the map was projected from; rings are looked up in it.
        camera: at the map's size; needed for rings.

    Raises:
        ConfigError: rings are asked for, and the map was not projected from a LiDAR's scan.
    """
    if config.held_out_by == BY_PIXEL:
        return _selected(depth_m, pixel_hashes(depth_m, stamp_ns) < config.held_out_fraction)
    if scan is None or camera is None:
        raise ConfigError(
            "held_out_by is 'ring', but the known depth is not from a LiDAR; expected 'pixel'"
        )
    points = scan.points[:, :3]
    of_rings = points[ring_hashes(points) < config.held_out_fraction]
    # The same rounding as in `ground_truth_from_cloud`, so that equal points are equal depths.
    nearest = project(of_rings, scan.lidar_to_camera.round(12), camera)
    return np.asarray(nearest == depth_m)


def random_pixels(depth_m: NDArray[np.floating], stamp_ns: int, count: int) -> NDArray[np.bool_]:
    """Return `count` known pixels, the same in every run, (H, W); all where there are fewer."""
    hashes = pixel_hashes(depth_m, stamp_ns)
    if hashes.size <= count:
        return np.isfinite(depth_m)
    return _selected(depth_m, hashes <= np.partition(hashes, count - 1)[count - 1])


def _selected(depth_m: NDArray[np.floating], selection: NDArray[np.bool_]) -> NDArray[np.bool_]:
    mask = np.zeros(depth_m.shape, dtype=np.bool_)
    mask[np.isfinite(depth_m)] = selection
    return mask


def pixel_hashes(depth_m: NDArray[np.floating], stamp_ns: int) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each known pixel, from its index and the stamp alone, (n,)."""
    indices = np.flatnonzero(np.isfinite(depth_m)).astype(np.uint64)
    key = _mixed(np.array([stamp_ns % 2**64], dtype=np.uint64))
    return _unit(_mixed(indices ^ key))


def ring_hashes(points: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each (N, 3) point, from its band of elevation alone, (N,).

    Hashed, not alternating: rings 2 degrees apart would all fall into bands of one parity.
    """
    elevation = np.degrees(np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1])))
    bands = np.floor(np.nan_to_num(elevation) / RING_BAND_DEG).astype(np.int64)
    return _unit(_mixed(bands.view(np.uint64)))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of SplitMix64 (Steele et al. 2014) of each value."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _unit(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (hashes >> np.uint64(11)).astype(np.float64) / 2**53
