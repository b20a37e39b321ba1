# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A source whose frames carry what the camera's own motion measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.protocol import MapSource, Source
from uncertainty_depth.sigma.motion import MotionTracker
from uncertainty_depth.stream.held_out import MEASURED_MARGIN, scored_pixels


def with_motion(source: Source) -> Source:
    """Return the source with `measurements` by motion, and no ground truth where they are.

    A frame without a pose, an image or a rectified camera measures nothing, and tracking starts
    anew.
    """
    step = _Motion()
    return MapSource(source, step, step.notes)


class _Motion:
    """Tracks from frame to frame, and counts."""

    def __init__(self) -> None:
        self._tracker = MotionTracker()
        self._frames = 0
        self._without_pose = 0
        self._empty = 0
        self._points = 0

    def notes(self) -> list[str]:
        """Return how much motion measured."""
        if not self._frames:
            return []
        sentence = (
            f"motion measured {self._points / self._frames:.0f} pixels per image, which are not "
            f"scored, and none in {self._empty} of {self._frames} images"
        )
        reasons = []
        if self._without_pose:
            reasons.append(f"{self._without_pose} have no pose or no rectified camera")
        if self._tracker.rejected:
            reasons.append(f"in {self._tracker.rejected} the poses do not fit the images")
        moved = self._empty - self._without_pose - self._tracker.rejected
        if moved > 0:
            reasons.append(f"in {moved} too few corners had parallax")
        return [f"{sentence}: {', '.join(reasons)}" if reasons else sentence]

    def __call__(self, frame: Frame | Skipped) -> Frame | Skipped:
        if isinstance(frame, Skipped):
            return frame
        self._frames += 1
        is_rectified = frame.camera is not None and frame.camera.distortion is None
        if frame.image is None or frame.camera is None or frame.pose is None or not is_rectified:
            self._without_pose += 1
            self._empty += 1
            self._tracker.start_anew()
            return frame
        pose = frame.pose @ np.linalg.inv(frame.camera.frame_to_camera)
        measured = self._tracker.measure(frame.image, frame.camera.intrinsics, pose)
        self._points += len(measured)
        self._empty += not len(measured)
        return replace(
            frame,
            measurements=measured,
            ground_truth_m=_unmeasured(frame.ground_truth_m, measured),
        )


def _unmeasured(
    truth_m: NDArray[np.float32] | None, measurements: Measurements
) -> NDArray[np.float32] | None:
    """Return the ground truth of pixels that nothing measured."""
    if truth_m is None or not len(measurements):
        return truth_m
    scored = scored_pixels(truth_m, measurements.mask(truth_m.shape), MEASURED_MARGIN)
    return np.where(scored, truth_m, np.float32(np.nan))
