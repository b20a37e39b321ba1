# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How well a pose's edges fit, compared with the poses around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.alignment import MAX_SHIFT, ROTATIONS

MIN_FRAMES = 3  # fewer say nothing
SIGNIFICANT = 4.0  # a pose fits from this many deviations above other poses
MARGIN = 1.2  # deviations by which another pose must fit better than the pose itself
MIN_WINS = 0.7  # fraction of the frames in which it must fit better
MIN_SHIFT = 3  # pixels of the reduced image; a smaller shift is no other pose
_WITHIN_A_PIXEL = slice(MAX_SHIFT - 1, MAX_SHIFT + 2)
_AT_POSE = (0, _WITHIN_A_PIXEL, _WITHIN_A_PIXEL)  # of a surface of alignments


@dataclass(frozen=True)
class Fit:
    """A pose's alignment, in robust standard deviations above the poses around it.

    Attributes:
        score: the pose's own score, the best within a pixel.
        best: score of the best pose around it.
        shift: the best pose's shift right and down, pixels of the reduced image.
        rotation: the best pose's rotation, clockwise, degrees.
        wins: fraction of the frames in which the best pose fits better than this one.
    """

    score: float
    best: float
    shift: tuple[int, int]
    rotation: float
    wins: float

    @property
    def contradicts_pose(self) -> bool:
        """Whether another pose is clearly better than this one."""
        is_other = max(map(abs, self.shift)) >= MIN_SHIFT or self.rotation != 0
        is_better = self.best > max(SIGNIFICANT, self.score + MARGIN)
        return is_other and is_better and self.wins >= MIN_WINS


class EdgeFit:
    """The mean alignment of one pose over frames, see `geometry.alignment`."""

    def __init__(self) -> None:
        self.frames = 0
        self._sum: NDArray[np.float64] | float = 0.0
        self._wins: NDArray[np.intp] | int = 0

    def add(self, values: NDArray[np.float32] | None) -> None:
        """Add a frame's alignment; skip None, a frame without one."""
        if values is None:
            return
        self._sum = self._sum + values.astype(np.float64)
        self._wins = self._wins + (values > values[_AT_POSE].max())
        self.frames += 1

    def fit(self) -> Fit | None:
        """Return the fit over the frames so far; None if fewer than `MIN_FRAMES`."""
        if self.frames < MIN_FRAMES:
            return None
        median = np.median(self._sum)
        deviation = 1.4826 * np.median(np.abs(self._sum - median))
        if not deviation > 0:
            return None
        scores = (self._sum - median) / deviation
        rotation, row, column = map(int, np.unravel_index(scores.argmax(), scores.shape))
        best = (rotation, row, column)
        return Fit(
            score=float(scores[_AT_POSE].max()),
            best=float(scores[best]),
            shift=(column - MAX_SHIFT, row - MAX_SHIFT),
            rotation=ROTATIONS[rotation],
            wins=float(np.asarray(self._wins)[best]) / self.frames,
        )
