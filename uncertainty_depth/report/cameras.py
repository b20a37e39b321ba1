# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The range of cameras in an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from uncertainty_depth.geometry.camera import Camera


class CameraRange:
    """Min and max of focal length / width and of width / height over the scored frames.

    Both matter to a network that predicts metric depth.

    Attributes:
        focal_length_per_width: [min, max] of fx / width; None if no camera is known.
        aspect: [min, max] of width / height; None before the first frame.
        size: (width, height) of the last frame, pixels.
    """

    def __init__(self) -> None:
        self.focal_length_per_width: list[float] | None = None
        self.aspect: list[float] | None = None
        self.size: tuple[int, int] | None = None

    def add(self, camera: Camera | None, shape: tuple[int, ...]) -> None:
        """Add the camera of a frame whose maps have this shape, (H, W)."""
        height, width = shape
        self.size = (width, height)
        self.aspect = _widened(self.aspect, width / height)
        if camera is not None:
            focal_length = float(camera.intrinsics[0, 0]) / camera.width
            self.focal_length_per_width = _widened(self.focal_length_per_width, focal_length)

    def as_dict(self) -> dict[str, list[float] | tuple[int, int] | None]:
        """Return it as in `summary.json`."""
        return {
            "size": self.size,
            "focal_length_per_width": self.focal_length_per_width,
            "aspect": self.aspect,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CameraRange:
        """Return the range from the JSON of `as_dict`.

        Raises:
            ValueError, TypeError, KeyError: it is something else.
        """
        cameras = cls()
        cameras.focal_length_per_width = _pair(values["focal_length_per_width"])
        cameras.aspect = _pair(values["aspect"])
        size = _pair(values["size"])
        cameras.size = None if size is None else (int(size[0]), int(size[1]))
        return cameras

    def merge(self, other: CameraRange) -> None:
        """Add the cameras of another evaluation."""
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
