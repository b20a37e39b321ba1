# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""When a map applies: the data that it was fitted to, stored beside it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import ModelError

RANGE = (0.01, 0.99)
"""Quantiles between which 98 % of the pixels are."""


@dataclass(frozen=True)
class FittedData:
    """The data that a map was fitted to; ranges are quantiles, the camera's is None if unknown."""

    sources: tuple[str, ...]
    frames: int
    pixels: int
    depth_range_m: tuple[float, ...]
    sigma_range_m: tuple[float, ...]
    camera: dict[str, list[float]] | None

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_mapping` is the inverse."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> FittedData:
        """Read what `model.json` holds; raise `ModelError` if a value is missing or wrong."""
        try:
            fitted = cls(
                tuple(str(name) for name in values["sources"]),
                int(values["frames"]),
                int(values["pixels"]),
                tuple(float(value) for value in values["depth_range_m"]),
                tuple(float(value) for value in values["sigma_range_m"]),
                values["camera"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"calibration was fitted to {values!r}; expected sources, frames, pixels, "
                "depth_range_m, sigma_range_m and camera"
            ) from error
        if not len(fitted.depth_range_m) == len(fitted.sigma_range_m) == 2:
            raise ModelError(
                f"calibration has {len(fitted.depth_range_m)} depths and "
                f"{len(fitted.sigma_range_m)} sigmas; expected ranges of 2"
            )
        return fitted


logger = logging.getLogger(__name__)

MAX_OUTSIDE = 0.1
"""Fraction of the raw sigmas that may be outside the range that held 98 % when fitted."""
WARNING_FRAMES = 8
"""Frames seen before a warning is logged: a run's first ones may show the floor."""
STEP = 4
"""Step between a sigma map's rows and columns that are checked."""


def advice(is_recorded: bool = False) -> str:
    """Return what a user can do whose data differ from the calibration data."""
    words = "calibrate on data like these"
    if is_recorded:
        return words
    return (
        f"{words}; until then evaluate and predict give raw sigma with --no-calibrated, and the "
        "depth node corrects sigma by a LiDAR with use_online_calibration"
    )


class DataMonitor:
    """Warns once when raw sigmas differ from the named map's data. Any thread may use it."""

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
            f"{high:.3g} m, which held 98% of those that the calibration ({self._map_name}) was "
            f"fitted to, {', '.join(self.fitted_to.sources)}: {advice()}"
        )
        with self._lock:
            is_new = not self._has_warned
            self._has_warned = True
        if is_new:
            logger.warning("%s", note)
        return [note]
