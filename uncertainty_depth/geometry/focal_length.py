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

import logging
import math
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

import numpy as np

from uncertainty_depth.geometry.camera import Camera

logger = logging.getLogger(__name__)

FAR_OFF = 1.1
"""Ratio of focal lengths above which a warning is logged."""


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


class TrainingLens:
    """Rescales depth to a camera, and warns once of one far from those of the training.

    Any thread may use it.

    Args:
        canonical: relative focal length of the camera whose depth the network predicts; 0 where
            it predicts metres.
        camera: `camera` of the training record: [min, max] by name; None where it has none.
    """

    def __init__(self, canonical: float, camera: Mapping[str, Any] | None) -> None:
        self.limits = _limits(camera or {})
        self._canonical = canonical
        self._has_warned = False
        self._lock = Lock()

    def factor(self, camera: Camera | None, rescale: str) -> np.float32:
        """Return the factor of depth and sigma for images of a camera; 1 without a camera.

        Args:
            camera: of the image.
            rescale: option `rescale_depth`: canonical, always or never.
        """
        focal_length = relative_focal_length(camera)
        if focal_length is None:
            return np.float32(1)
        trained = self._trained(rescale)
        self._warn_of_another_lens(focal_length, is_rescaled=trained is not None)
        return np.float32(1 if trained is None else focal_length / trained)

    def _trained(self, rescale: str) -> float | None:
        """Return the focal length that the network's depth is for; None disables rescaling."""
        if rescale == "never":
            return None
        if self._canonical > 0:
            return self._canonical
        if rescale == "always" and self.limits is not None:
            return math.sqrt(self.limits[0] * self.limits[1])
        return None

    def _warn_of_another_lens(self, focal_length: float, is_rescaled: bool) -> None:
        if self.limits is None:
            return
        low, high = self.limits
        off = max(low / focal_length, focal_length / high)
        with self._lock:
            is_due = off > FAR_OFF and not self._has_warned
            self._has_warned = self._has_warned or is_due
        if not is_due:
            return
        advice = (
            "depth is rescaled, but the network has seen no such view"
            if is_rescaled
            else "expect depth wrong by about that factor, or take rescale_depth always"
        )
        logger.warning(
            "the camera's focal length, sqrt(fx fy / (width height)), is %.3g, and %.3g to %.3g "
            "in the training, %.2f times off: %s",
            focal_length,
            low,
            high,
            off,
            advice,
        )


def _limits(camera: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return min and max of the relative focal length; earlier versions recorded fx instead.

    Theirs had square pixels: it is fx / width times the square root of the aspect.
    """
    own = camera.get("relative_focal_length")
    if own:
        return float(own[0]), float(own[1])
    per_width = camera.get("focal_length_per_width")
    aspect = camera.get("aspect")
    if not per_width or not aspect:
        return None
    low = float(per_width[0]) * math.sqrt(aspect[0])
    return low, max(low, float(per_width[1]) * math.sqrt(aspect[1]))
