# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The focal length as a network sees it, and the depth of a canonical camera.

An image alone does not tell a near object under a short lens from a far one under a long lens. A
network that predicts the depth of one canonical camera learns from all cameras alike: the depth in
metres is its output times the camera's focal length over the canonical one (Yin et al. 2023,
Metric3D, section 3.2, labels transformed).

Networks see images of one size, so focal lengths are fractions of the image's: that of fx along
the width and fy along the height. Where the image's aspect is changed these two differ, and their
geometric mean counts: it keeps the solid angle of the image.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from uncertainty_depth.geometry.camera import Camera


def relative_focal_length(camera: Camera | None) -> float | None:
    """Return sqrt(fx fy / (width height)) of a camera; None where it is not known.

    Args:
        camera: at any size; a camera info without calibration has a focal length of 0.
    """
    if camera is None:
        return None
    area = camera.width * camera.height
    square = float(camera.intrinsics[0, 0]) * float(camera.intrinsics[1, 1]) / area
    return math.sqrt(square) if math.isfinite(square) and square > 0 else None


def depth_factor(camera: Camera | None, canonical: float) -> float:
    """Return the metres in one metre of the canonical camera's depth.

    Args:
        camera: of the image.
        canonical: relative focal length of the canonical camera; 0 where a network predicts metres
            whatever the camera.

    Returns:
        1 where the camera is not known, or there is no canonical one.
    """
    focal_length = relative_focal_length(camera)
    return focal_length / canonical if focal_length is not None and canonical > 0 else 1.0


def camera_ranges(cameras: Iterable[Camera | None]) -> dict[str, list[float]] | None:
    """Return [min, max] of fx / width and of width / height; None without any camera."""
    calibrated = [camera for camera in cameras if camera is not None]
    if not calibrated:
        return None
    focal_lengths = [float(camera.intrinsics[0, 0]) / camera.width for camera in calibrated]
    aspects = [camera.width / camera.height for camera in calibrated]
    return {
        "focal_length_per_width": [round(min(focal_lengths), 6), round(max(focal_lengths), 6)],
        "aspect": [round(min(aspects), 6), round(max(aspects), 6)],
    }
