# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a camera's own motion measures in its frames, and a source whose frames carry it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.protocol import MapSource, Source
from uncertainty_depth.sigma.motion import MotionTracker


def with_motion(source: Source) -> Source:
    """Return the source with `measurements` by motion, beside those it has."""
    motion = Motion()

    def step(record: Frame | Skipped) -> Frame | Skipped:
        frame = record.frame if isinstance(record, Skipped) else record
        measured = None if frame is None else motion.measure(frame)
        if isinstance(record, Skipped) or measured is None:
            return record
        return replace(record, measurements=measured.beside(record.measurements))

    return MapSource(source, step, motion.notes)


class Motion:
    """Measures the depth of a camera's frames by its motion, live and from any source."""

    def __init__(self) -> None:
        self.frames = 0
        self.without_pose = 0
        self.tracker = MotionTracker()
        self._empty = 0
        self._points = 0

    def measure(self, frame: Frame) -> Measurements | None:
        """Return what motion measures in the next frame.

        None, and tracking starts anew, if it has no pose, image or rectified camera.
        """
        self.frames += 1
        camera = frame.camera
        is_usable = (
            camera is not None and camera.distortion is None and camera.intrinsics[0, 0] > 0
        )
        if frame.image is None or camera is None or frame.pose is None or not is_usable:
            self.without_pose += 1
            self._empty += 1
            self.tracker.start_anew()
            return None
        pose = frame.pose @ np.linalg.inv(camera.frame_to_camera)
        measured = self.tracker.measure(frame.image, camera.intrinsics, pose, frame.stamp_ns)
        self._points += len(measured)
        self._empty += not len(measured)
        return measured

    def notes(self) -> list[str]:
        """Return how much motion measured."""
        if not self.frames:
            return []
        sentence = (
            f"motion measured {self._points / self.frames:.0f} pixels per image, which are not "
            f"scored, and none in {self._empty} of {self.frames} images"
        )
        reasons = []
        if self.without_pose:
            reasons.append(f"{self.without_pose} have no pose or no rectified camera")
        rejected = self.tracker.rejected
        if rejected:
            reasons.append(f"in {rejected} the poses do not fit the images")
        moved = self._empty - self.without_pose - rejected
        if moved > 0:
            reasons.append(f"in {moved} too few corners had parallax")
        notes = [f"{sentence}: {', '.join(reasons)}" if reasons else sentence]
        return [*notes, *self.warnings()]

    def warnings(self) -> list[str]:
        """Return a sentence if the poses are of other moments than the images."""
        offset_s = self.tracker.time_offset.seconds()
        if not abs(offset_s) > 0:
            return []
        side = "before" if offset_s < 0 else "after"
        return [
            f"the camera's poses fit its images best {1e3 * abs(offset_s):.0f} ms {side} the "
            "images' stamps: expected the time of exposure by the odometry's clock"
        ]
