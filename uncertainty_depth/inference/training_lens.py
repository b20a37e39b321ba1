# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compare a camera's focal length with those of the training, and rescale its depth."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from threading import Lock
from typing import Any

import numpy as np

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.focal_length import relative_focal_length

logger = logging.getLogger(__name__)

FAR_OFF = 1.1
"""Factor between focal lengths from which on the log is told."""


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
