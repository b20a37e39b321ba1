# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Relative focal length, and canonical-camera depth.

In an image alone, a near object under a short lens looks like a far object under a long lens. A
network that predicts one canonical camera's depth learns from all cameras alike. Its depth in
metres is its output times the camera's focal length divided by the canonical one (Yin et al. 2023,
Metric3D, section 3.2, labels transformed).

Networks see images of one size, so focal lengths are relative to the image: fx to its width, fy to
its height. The two differ if resizing changes the aspect; their geometric mean is used, because it
keeps the image's solid angle.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uncertainty_depth.core import strict
from uncertainty_depth.core.geometry.camera import Camera

logger = logging.getLogger(__name__)

FAR_OFF = 1.1
"""Ratio of focal lengths above which a warning is logged."""


def relative_focal_length(camera: Camera | None) -> float | None:
    """Return a camera's sqrt(fx fy / (width height)); None if unknown, or without calibration."""
    if camera is None:
        return None
    area = camera.width * camera.height
    square = float(camera.intrinsics[0, 0]) * float(camera.intrinsics[1, 1]) / area
    return math.sqrt(square) if math.isfinite(square) and square > 0 else None


def depth_factor(camera: Camera | None, canonical: float) -> float:
    """Return the factor from canonical-camera depth to metres; 1 if the camera is unknown.

    `canonical` is the canonical camera's relative focal length; 0 if the network predicts metres
    for every camera.
    """
    focal_length = relative_focal_length(camera)
    return focal_length / canonical if focal_length is not None and canonical > 0 else 1.0


@dataclass
class CameraRange:
    """Size, and min and max of fx / width and width / height over the frames; None if unknown."""

    size: tuple[int, int] | None = None
    focal_length_per_width: list[float] | None = None
    aspect: list[float] | None = None

    def add(self, camera: Camera | None, shape: tuple[int, ...]) -> None:
        """Add the camera of a frame whose maps have this shape, (H, W)."""
        height, width = shape
        self.size = (width, height)
        self.aspect = _widened(self.aspect, width / height)
        if camera is not None:
            focal_length = float(camera.intrinsics[0, 0]) / camera.width
            self.focal_length_per_width = _widened(self.focal_length_per_width, focal_length)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CameraRange:
        """Return the range in `summary.json`; raise ValueError, TypeError or KeyError for none."""
        size = _pair(values["size"])
        return cls(
            None if size is None else (int(size[0]), int(size[1])),
            _pair(values["focal_length_per_width"]),
            _pair(values["aspect"]),
        )

    def merge(self, other: CameraRange) -> None:
        """Add another evaluation's cameras."""
        for value in other.focal_length_per_width or []:
            self.focal_length_per_width = _widened(self.focal_length_per_width, value)
        for value in other.aspect or []:
            self.aspect = _widened(self.aspect, value)
        self.size = other.size or self.size


def _pair(value: Any) -> list[float] | None:
    if value is None:
        return None
    low, high = map(float, value)
    return [low, high]


def _widened(limits: list[float] | None, value: float) -> list[float] | None:
    if not math.isfinite(value):
        return limits
    if limits is None:
        return [value, value]
    return [min(limits[0], value), max(limits[1], value)]


def camera_ranges(cameras: Iterable[Camera | None]) -> dict[str, list[float]] | None:
    """Return [min, max] of fx / width and width / height; None without any camera."""
    calibrated = [camera for camera in cameras if camera is not None]
    ranges = CameraRange()
    for camera in calibrated:
        ranges.add(camera, (camera.height, camera.width))
    if not calibrated:
        return None
    names = ("focal_length_per_width", "aspect")
    return {name: [round(end, 6) for end in getattr(ranges, name) or []] for name in names}


class FocalLengthRescaling:
    """Rescales depth to a camera, and warns once if that is unknown or unlike the training's."""

    def __init__(self, canonical: float, camera: Any) -> None:
        record = camera if isinstance(camera, Mapping) else {}
        self._limits = strict.limits_of(record.get("relative_focal_length"))
        self._canonical = canonical
        self._told: set[str] = set()

    def factor(self, camera: Camera | None) -> np.float32:
        """Return the factor for a camera's depth and sigma."""
        focal_length = relative_focal_length(camera)
        if focal_length is None:
            if self._canonical > 0:
                self._warn_once(
                    "the camera's focal length is unknown: depth and sigma are those of a camera "
                    "whose sqrt(fx fy / (width height)) is %.3g, and off by as much as yours "
                    "differs from it; expected a camera info, `predict --focal-length PIXELS`, or "
                    "in Python predict(image, camera=...)",
                    self._canonical,
                )
        elif self._limits is not None:
            low, high = self._limits
            off = max(low / focal_length, focal_length / high)
            if off > FAR_OFF:
                advice = (
                    "depth is rescaled, and `uncertainty-depth evaluate` says how good it then is"
                    if self._canonical > 0
                    else "expect depth wrong by about that factor"
                )
                self._warn_once(
                    "the camera's focal length, sqrt(fx fy / (width height)), is %.3g, and that "
                    "of the training's cameras is %.3g to %.3g, %.2f times off: %s",
                    focal_length,
                    low,
                    high,
                    off,
                    advice,
                )
        return np.float32(depth_factor(camera, self._canonical))

    def _warn_once(self, sentence: str, *values: Any) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            logger.warning(sentence, *values)
