# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Describe the training data: cameras, and the median depth of each part of the image."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.focal_length import camera_ranges, relative_focal_length
from uncertainty_depth.geometry.resampling import resample_depth

if TYPE_CHECKING:
    from uncertainty_depth.training.frames import TrainingFrames

GRID_ROWS = 16
GRID_COLUMNS = 20
KEYS = ("camera", "median_depth_m")


def domain(frames: TrainingFrames, indices: Sequence[int]) -> dict[str, Any]:
    """Return the description of the training data for `model.json`, as plain values.

    Args:
        frames: training and validation frames.
        indices: the training frames.

    Returns:
        `camera`: ranges of the cameras' geometry, None where no frame has a camera, with
        `relative_focal_length`, None where none is calibrated;
        `median_depth_m`: 16 rows of 20 columns, metres, None where no frame has ground truth.
    """
    depths_m = [frames.depth_m(index) for index in indices]
    cameras = [frames.cameras[index] for index in indices]
    camera: dict[str, Any] | None = camera_ranges(cameras)
    if camera is not None:
        camera = {**camera, "relative_focal_length": _relative_focal_lengths(cameras)}
    return {
        "camera": camera,
        "median_depth_m": median_depth(depths_m),
    }


def _relative_focal_lengths(cameras: Sequence[Camera | None]) -> list[float] | None:
    """Return [min, max] over the calibrated cameras; None without any."""
    lengths = [relative_focal_length(camera) for camera in cameras]
    calibrated = [length for length in lengths if length is not None]
    if not calibrated:
        return None
    return [round(min(calibrated), 6), round(max(calibrated), 6)]


def median_depth(depths_m: Sequence[NDArray[np.floating]]) -> list[list[float | None]]:
    """Return the pixelwise median of (H, W) depth maps at 16 x 20, metres to the millimetre.

    A predictor that ignores the image can do no better in absolute error than this median: it is
    the baseline that shows whether a network looks at its input at all.
    """
    resampled = [resample_depth(depth, GRID_COLUMNS, GRID_ROWS) for depth in depths_m]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice encountered")
        median = np.nanmedian(np.stack(resampled), axis=0)
    return [list(map(_millimetres, row)) for row in median]


def _millimetres(depth_m: np.floating) -> float | None:
    return None if np.isnan(depth_m) else round(float(depth_m), 3)
