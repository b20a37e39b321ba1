# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compare the data that a calibration is used on with those it was fitted to."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.fitted_data import FittedData
from uncertainty_depth.geometry.camera import Camera

logger = logging.getLogger(__name__)

SIGMA = "sigma"
MAX_OUTSIDE = 0.1
"""Fraction of the pixels that may be outside the range that held 98 % of those fitted to."""
WARNING_FRAMES = 8
"""Frames seen before the log is told: the first ones of a run may be of the floor."""
STEP = 4
"""Every so many rows and columns of a sigma map are looked at."""
CAMERA_MARGIN = 0.05
"""Relative difference of a camera's geometry that makes it another camera."""


@dataclass
class Outside:
    """Counts of values outside a range.

    Attributes:
        values: how many were seen.
        outside: how many of them were outside.
    """

    values: int = 0
    outside: int = 0

    @property
    def fraction(self) -> float:
        """Return the fraction outside, 0 where no values were seen."""
        return self.outside / self.values if self.values else 0.0

    def add(self, values: NDArray[np.floating], limits: tuple[float, ...]) -> None:
        """Count finite values."""
        known = values[np.isfinite(values)]
        self.values += known.size
        self.outside += int(((known < limits[0]) | (known > limits[1])).sum())


class DataMonitor:
    """Warns once when data are unlike those a calibration was fitted to.

    Any thread may use it.

    Args:
        kind: name of the map.
        fitted: what the map was fitted to; None never warns.
    """

    def __init__(self, kind: str, fitted: FittedData | None) -> None:
        self._kind = kind
        self._fitted = fitted
        self._sigma = Outside()
        self._depth = Outside()
        self._cameras: dict[str, float] = {}
        self._frames = 0
        self._said: set[str] = set()
        self._lock = Lock()

    def add_sigma(self, raw_sigma_m: NDArray[np.floating]) -> None:
        """Take in a raw sigma map, (H, W) metres; warns once after enough frames."""
        if self._fitted is None:
            return
        with self._lock:
            self._sigma.add(raw_sigma_m[::STEP, ::STEP], self._fitted.sigma_range_m)
            self._frames += 1
            is_due = self._frames >= WARNING_FRAMES and SIGMA not in self._said
        if is_due:
            self._say(self._notes(self._fitted), SIGMA)

    def add_ground_truth(self, depth_m: NDArray[np.floating], camera: Camera | None) -> None:
        """Take in a frame's ground truth, (H, W) metres, NaN where unknown, and its camera."""
        if self._fitted is None:
            return
        with self._lock:
            self._depth.add(depth_m, self._fitted.depth_range_m)
            if camera is not None:
                focal_length = float(camera.intrinsics[0, 0]) / camera.width
                self._cameras["focal_length_per_width"] = focal_length
                self._cameras["aspect"] = camera.width / camera.height

    def notes(self) -> list[str]:
        """Return one sentence for each way in which the data are unlike those fitted to.

        What has not been in the log yet is there after.
        """
        if self._fitted is None:
            return []
        notes = self._notes(self._fitted)
        for topic in notes:
            self._say(notes, topic)
        return list(notes.values())

    def _say(self, notes: dict[str, str], topic: str) -> None:
        """Log the note on a topic, once."""
        with self._lock:
            is_new = topic in notes and topic not in self._said
            if is_new:
                self._said.add(topic)
        if is_new:
            logger.warning("%s", notes[topic])

    def _notes(self, fitted: FittedData) -> dict[str, str]:
        """Return topic to sentence."""
        notes = {}
        if self._sigma.fraction > MAX_OUTSIDE:
            notes[SIGMA] = self._sigma_note(fitted)
        if self._depth.fraction > MAX_OUTSIDE:
            notes["depth"] = self._depth_note(fitted)
        return notes | self._camera_notes(fitted)

    def _depth_note(self, fitted: FittedData) -> str:
        low, high = fitted.depth_range_m
        return (
            f"{self._depth.fraction:.0%} of the ground truth is outside {low:.3g} to "
            f"{high:.3g} m, the depths that {self._origin(fitted)}"
        )

    def _sigma_note(self, fitted: FittedData) -> str:
        low, high = fitted.sigma_range_m
        return (
            f"{self._sigma.fraction:.0%} of the raw sigmas are outside {low:.3g} to {high:.3g} m, "
            f"which held 98 % of those that {self._origin(fitted)}"
        )

    def _camera_notes(self, fitted: FittedData) -> dict[str, str]:
        notes = {}
        for name, value in self._cameras.items():
            low, high = (fitted.camera or {}).get(name, (value, value))
            if not low * (1 - CAMERA_MARGIN) <= value <= high * (1 + CAMERA_MARGIN):
                notes[name] = (
                    f"the camera's {name.replace('_', ' ')} is {value:.3g}, and {low:.3g} to "
                    f"{high:.3g} in the data that {self._origin(fitted)}"
                )
        return notes

    def _origin(self, fitted: FittedData) -> str:
        return (
            f"the calibration ({self._kind}) was fitted to, {', '.join(fitted.sources)}: "
            "calibrate on data like these, or take --no-calibrated"
        )
