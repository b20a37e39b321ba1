# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whether the camera stands still: frames that show the same again are no new evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.block import DISTANCE
from uncertainty_depth.records import Frame

THUMBNAIL = (30, 40)
"""Rows and columns that an image is compared at: the noise of its pixels averages out."""
SAME_GREY = 1.5
"""Median difference of two thumbnails, of 255 grey levels, up to which nothing moved."""
SAME_DEPTH = 0.015
DEPTH_SHARE = 80
"""Per cent of the pixels whose ground truth must be the same, as a fraction of it. Most of a road
is as far in the next frame, wherever the car is: not the median."""
MIN_COMMON = 50
"""Pixels with ground truth in both frames, fewer tell nothing."""
MOVED_M = 0.02
TURNED_RAD = 0.01


class Stillness:
    """Compares each frame with the first one of the view that it may still show.

    A pose decides if both frames have one; else image and ground truth must both be the same, as
    far as there are any.

    Attributes:
        frames: how many frames so far showed what an earlier one had shown.
    """

    def __init__(self, frames: int = 0) -> None:
        self.frames = frames
        self._first: Frame | None = None
        self._last: Frame | None = None

    def add(self, frame: Frame) -> NDArray[np.float64] | None:
        """Add the next frame, which has a prediction and ground truth.

        Returns:
            (2, K) pixels and squared changes of the predicted depth since the frame before, m^2,
            by `DISTANCE`, if the camera stood still; else None.
        """
        last = self._last
        self._last = frame
        if self._first is None or last is None or not _is_same_view(self._first, frame):
            self._first = frame
            return None
        self.frames += 1
        return _changes(last, frame)


def _is_same_view(first: Frame, frame: Frame) -> bool:
    if first.pose is not None and frame.pose is not None:
        motion = np.linalg.inv(first.pose) @ frame.pose
        cosine = (np.trace(motion[:3, :3]) - 1) / 2
        angle = float(np.arccos(np.clip(cosine, -1, 1)))
        return float(np.linalg.norm(motion[:3, 3])) < MOVED_M and angle < TURNED_RAD
    has_same_image = True
    if first.image is not None and frame.image is not None:
        has_same_image = _has_same_image(first.image, frame.image)
    return has_same_image and _has_same_truth(first.need_ground_truth(), frame.need_ground_truth())


def _has_same_image(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> bool:
    if first.shape != second.shape:
        return False
    gap = np.abs(_thumbnail(first) - _thumbnail(second))
    return float(np.median(gap)) < SAME_GREY


def _thumbnail(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the means of equal cells; the pixels beyond the last whole cell are left out."""
    height, width = (
        max(size // cells, 1) for size, cells in zip(image.shape, THUMBNAIL, strict=False)
    )
    rows, columns = (min(size, cells) for size, cells in zip(image.shape, THUMBNAIL, strict=False))
    whole = image[: rows * height, : columns * width].astype(np.float32)
    means: NDArray[np.float32] = whole.reshape(rows, height, columns, width, -1).mean(axis=(1, 3))
    return means


def _has_same_truth(first_m: NDArray[np.float32], second_m: NDArray[np.float32]) -> bool:
    if first_m.shape != second_m.shape:
        return False
    common = np.isfinite(first_m) & np.isfinite(second_m) & (first_m > 0)
    if np.count_nonzero(common) < MIN_COMMON:
        return False
    change = np.abs(second_m[common] - first_m[common]) / first_m[common]
    return float(np.percentile(change, DEPTH_SHARE)) < SAME_DEPTH


def _changes(last: Frame, frame: Frame) -> NDArray[np.float64]:
    before_m = last.need_prediction().depth_m
    depth_m = frame.need_prediction().depth_m
    truth_m = frame.need_ground_truth()
    if before_m.shape != depth_m.shape:
        return np.zeros((2, DISTANCE.number))
    known = np.isfinite(before_m) & np.isfinite(depth_m) & np.isfinite(truth_m) & (truth_m > 0)
    place = DISTANCE.index(truth_m[known].astype(np.float64)) if known.any() else np.zeros(0, int)
    squares = (depth_m[known].astype(np.float64) - before_m[known]) ** 2
    return np.stack(
        [
            np.bincount(place, minlength=DISTANCE.number),
            np.bincount(place, squares, DISTANCE.number),
        ]
    )
