# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compare raw sigmas in use with the calibration's."""

from __future__ import annotations

import logging
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.fitted_data import FittedData

logger = logging.getLogger(__name__)

MAX_OUTSIDE = 0.1
"""Fraction of the raw sigmas that may be outside the range that held 98 % of those fitted to."""
WARNING_FRAMES = 8
"""Frames seen before a warning is logged: the first ones of a run may be of the floor."""
STEP = 4
"""Step between the rows and columns of a sigma map that are checked."""


class DataMonitor:
    """Warns once when raw sigmas differ from the calibration data.

    The verdict checks depths and camera, which need ground truth. Any thread may use it.

    Args:
        map_name: name of the map.
        fitted_to: what the map was fitted to; None never warns.
    """

    def __init__(self, map_name: str, fitted_to: FittedData | None) -> None:
        self.fitted_to = fitted_to
        self._map_name = map_name
        self._values = 0
        self._outside = 0
        self._frames = 0
        self._has_warned = False
        self._lock = Lock()

    def add_sigma(self, raw_sigma_m: NDArray[np.floating]) -> None:
        """Add a raw sigma map, (H, W) metres; warns once after enough frames."""
        if self.fitted_to is None:
            return
        sigma = raw_sigma_m[::STEP, ::STEP]
        sigma = sigma[np.isfinite(sigma)]
        low, high = self.fitted_to.sigma_range_m
        with self._lock:
            self._values += sigma.size
            self._outside += int(((sigma < low) | (sigma > high)).sum())
            self._frames += 1
            is_due = self._frames >= WARNING_FRAMES
        if is_due:
            self.notes()

    def notes(self) -> list[str]:
        """Return the warning that raw sigmas differ from the calibration data, if logged."""
        if self.fitted_to is None or self._outside <= MAX_OUTSIDE * self._values:
            return []
        low, high = self.fitted_to.sigma_range_m
        note = (
            f"{self._outside / self._values:.0%} of the raw sigmas are outside {low:.3g} to "
            f"{high:.3g} m, which held 98 % of those that the calibration ({self._map_name}) was "
            f"fitted to, {', '.join(self.fitted_to.sources)}: calibrate on data like these, or "
            "take --no-calibrated"
        )
        with self._lock:
            is_new = not self._has_warned
            self._has_warned = True
        if is_new:
            logger.warning("%s", note)
        return [note]
