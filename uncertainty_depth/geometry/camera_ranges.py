# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The geometry of several cameras as far as a network can tell them apart."""

from __future__ import annotations

from collections.abc import Iterable

from uncertainty_depth.geometry.camera import Camera


def camera_ranges(cameras: Iterable[Camera | None]) -> dict[str, list[float]] | None:
    """Return [min, max] of fx / width and of width / height; None without any camera."""
    known = [camera for camera in cameras if camera is not None]
    if not known:
        return None
    focal_lengths = [float(camera.intrinsics[0, 0]) / camera.width for camera in known]
    aspects = [camera.width / camera.height for camera in known]
    return {
        "focal_length_per_width": [round(min(focal_lengths), 6), round(max(focal_lengths), 6)],
        "aspect": [round(min(aspects), 6), round(max(aspects), 6)],
    }
