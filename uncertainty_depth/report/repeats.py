# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames that show what an earlier frame showed are no new evidence.

A camera that stands still: the frame belongs to the block of the frame before. A bag that loops, a
copied recording, also with a scale or some noise: the frame is counted, and intervals are those of
the other frames' number. Stamps do not matter: a bag that loops may have new ones.

A camera that shakes shows something new in each frame, and still one place: no more blocks count
as independent than there are places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.records import Frame
from uncertainty_depth.metrics.frame import ScoredPixels
from uncertainty_depth.metrics.state import BLOCK_CELLS, DISTANCE, MAX_BLOCKS

SAME_DEPTH = 0.015
SAME_SHARE = 80
"""Per cent of the cells whose mean ground truth must be the same, as a fraction of it. Most of a
road is as far in the next frame, wherever the car is: not the median. Cells, as noise averages out
in them, and as a LiDAR's point that comes nearer moves to another pixel. Of the frames of kitchen
and HoloLens, each beside the next, all 21 that moved less than half the limits below are the same,
and 4 of the 373 that moved more than twice these."""
MOVED_M = 0.02
TURNED_RAD = 0.01
PLACE_DEPTH = 0.15
"""As `SAME_DEPTH`, for frames of one place. Sixty frames of NYU, HoloLens and kitchen, each shaken
by 2 % of its width (one deviation), make at most 4 places; 24 frames of a street, 24 m, make 4,
the 250 frames of the HoloLens 109."""
PLACE_M = 0.1
PLACE_RAD = 0.1
MAX_FRAMES = 100_000
"""Frames whose keys are remembered; about 10 MB."""
MAX_PATTERNS = 1000
"""Frames whose errors by cell are remembered; 640 kB."""
MIN_CELL_PIXELS = 5
MIN_CELLS = 20
"""Cells known in both frames, fewer tell nothing."""
SAME_ERRORS = 0.998
"""Correlation of the log errors by cell: a copy with 2 % of noise is above it. No two frames of
KITTI, HoloLens, kitchen and NYU are, unless the camera stood still."""
SAME_TRUTH = 0.003
"""Mean difference in the log ground truth by cell, after the scale is taken out."""


class RepeatDetector:
    """Compares each frame with earlier ones.

    Attributes:
        still: frames that showed what the frame before had shown.
        repeated: other frames that have an earlier one's errors.
        places: how many places, counted up to as many blocks as a state can have.
    """

    def __init__(
        self,
        still: int = 0,
        repeated: int = 0,
        places: int = 0,
        keys: Iterable[int] = (),
        patterns: Iterable[NDArray[np.float32]] = (),
    ) -> None:
        """Start with the counts and an earlier run's arrays."""
        self.still = still
        self.repeated = repeated
        self.places = places
        self._leaders: list[_View] = []
        self._keys = set(keys)
        self._patterns = list(patterns)
        self._first: _View | None = None
        self._last: Frame | None = None
        self._pattern: NDArray[np.float32] | None = None
        self._is_still = False

    def look(self, frame: Frame, pixels: ScoredPixels) -> Floats | None:
        """Look at the next frame.

        A pose decides if both frames have one; else the ground truth must be the same as in the
        first frame of this view. An image is not asked: a live run has none. Nor is the predicted
        depth: how much it changes for a camera that stands still is what is measured.

        Returns (2, K) pixels and squared changes of the predicted depth since the frame before,
        m^2, by `DISTANCE`, if the camera stood still; else None.
        """
        last = self._last
        self._last = frame
        self._pattern = _pattern(pixels)
        view = _View(frame.pose, self._pattern)
        self._is_still = self._first is not None and self._first.is_same(view)
        self._find_place(view)
        if last is None or not self._is_still:
            self._first = view
            return None
        self.still += 1
        return _changes(last, frame)

    def _find_place(self, view: _View) -> None:
        """Count a place unless this view is of one that was seen, the last one most likely."""
        for index in range(len(self._leaders) - 1, -1, -1):
            if self._leaders[index].is_same(view, PLACE_DEPTH, PLACE_M, PLACE_RAD):
                self._leaders.append(self._leaders.pop(index))
                return
        if len(self._leaders) < MAX_BLOCKS:
            self._leaders.append(view)
            self.places += 1

    def add(self, row: Mapping[str, float]) -> None:
        """Add the frame last looked at, by its metrics: only a copy has the same bits."""
        values = np.fromiter(row.values(), np.float64, len(row))
        key = int.from_bytes(blake2b(values.tobytes(), digest_size=8).digest(), "little")
        is_known = key in self._keys
        self._remember([key])
        if self._is_still:
            return
        pattern = None if is_known else self._pattern
        if is_known or (pattern is not None and self._has(pattern)):
            self.repeated += 1
        elif pattern is not None and len(self._patterns) < MAX_PATTERNS:
            self._patterns.append(pattern)

    def merge(self, other: RepeatDetector) -> None:
        """Add another recording's frames, which show other places."""
        self.still += other.still
        self.places += other.places
        self.repeated += other.repeated + self.common(other)
        self._remember(other._keys)

    def common(self, other: RepeatDetector) -> int:
        """Return how many different frames both have, to the last bit."""
        return len(self._keys & other._keys)

    def includes(self, other: RepeatDetector) -> bool:
        """Return whether all frames of another recording, at least one, are here."""
        return bool(other._keys) and other._keys <= self._keys

    def arrays(self) -> dict[str, NDArray]:
        """Return the arrays to start again with."""
        keys = np.fromiter(self._keys, np.uint64, len(self._keys))
        patterns = np.array(self._patterns, np.float32).reshape(-1, 2, BLOCK_CELLS)
        return {"frame_keys": keys, "frame_patterns": patterns}

    def _remember(self, keys: Iterable[int]) -> None:
        if len(self._keys) < MAX_FRAMES:
            self._keys.update(keys)

    def _has(self, pattern: NDArray[np.float32]) -> bool:
        """Return whether an earlier frame had the same errors and ground truth, up to a scale."""
        if not self._patterns:
            return False
        known = np.stack(self._patterns)
        common = np.isfinite(known[:, 0]) & np.isfinite(pattern[0])
        known, common = (each[common.sum(axis=1) >= MIN_CELLS] for each in (known, common))
        if not len(known):
            return False
        gap = np.where(common, known[:, 1] - pattern[1], 0.0)
        number = common.sum(axis=1)
        gap -= (gap.sum(axis=1) / number)[:, None]
        is_near = np.abs(gap).sum(axis=1, where=common) < SAME_TRUTH * number
        for errors, cells in zip(known[is_near, 0], common[is_near], strict=True):
            first = errors[cells] - errors[cells].mean()
            second = pattern[0, cells] - pattern[0, cells].mean()
            if first @ second > SAME_ERRORS * np.sqrt((first @ first) * (second @ second)):
                return True
        return False

    def __deepcopy__(self, _: dict[int, Any]) -> RepeatDetector:
        """Return a copy; keys, as integers, need none, and patterns do not change."""
        return RepeatDetector(self.still, self.repeated, self.places, self._keys, self._patterns)


class _View(NamedTuple):
    """What tells whether the camera has moved: its pose, and the `_pattern` of what it sees."""

    pose: NDArray[np.float64] | None
    pattern: NDArray[np.float32] | None

    def is_same(
        self,
        other: _View,
        depth: float = SAME_DEPTH,
        moved_m: float = MOVED_M,
        turned_rad: float = TURNED_RAD,
    ) -> bool:
        if self.pose is not None and other.pose is not None:
            motion = np.linalg.inv(self.pose) @ other.pose
            cosine = (np.trace(motion[:3, :3]) - 1) / 2
            angle = float(np.arccos(np.clip(cosine, -1, 1)))
            return float(np.linalg.norm(motion[:3, 3])) < moved_m and angle < turned_rad
        if self.pattern is None or other.pattern is None:
            return False
        change = np.abs(np.expm1(other.pattern[1] - self.pattern[1]))
        common = change[np.isfinite(change)]
        if len(common) < MIN_CELLS:
            return False
        return float(np.percentile(common, SAME_SHARE)) < depth


def _pattern(pixels: ScoredPixels) -> NDArray[np.float32] | None:
    """Return log mean error and log mean ground truth by cell, NaN for unknown; (2, cells)."""
    if pixels.cells is None:
        return None
    number = np.bincount(pixels.cells, minlength=BLOCK_CELLS)
    values = (pixels.error, pixels.ground_truth)
    sums = [np.bincount(pixels.cells, each, BLOCK_CELLS) for each in values]
    with np.errstate(divide="ignore", invalid="ignore"):
        pattern = np.log(np.stack(sums) / number)
    is_known = (number >= MIN_CELL_PIXELS) & np.isfinite(pattern)
    return np.where(is_known, pattern, np.nan).astype(np.float32)


def _changes(last: Frame, frame: Frame) -> Floats:
    before_m = last.need_depth().depth_m
    depth_m = frame.need_depth().depth_m
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
