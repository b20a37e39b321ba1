# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a robot acts on: depth maps and clouds that are gated or bounded by sigma."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config import GatingConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.point_cloud import organised_points, positions, selected


def confident_pixels(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], config: GatingConfig
) -> NDArray[np.bool_]:
    """Return the mask of sigma that is finite and within both limits, (H, W).

    Args:
        depth_m: (H, W) metres, NaN for unknown.
        sigma_m: (H, W) metres, NaN for unknown.
        config: the limits.
    """
    limit = np.float32(config.max_sigma or np.inf)
    if config.max_relative_sigma:
        limits = np.minimum(depth_m * np.float32(config.max_relative_sigma), limit)
    else:
        limits = np.where(np.isnan(depth_m), np.float32(np.nan), limit)
    return sigma_m <= limits  # false if either is NaN


def lower_bound(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], sigmas: float
) -> NDArray[np.float32]:
    """Return `depth - sigmas sigma`, at least 0, (H, W) metres: the camera sees nothing behind it.

    Args:
        depth_m: (H, W) metres, NaN for unknown.
        sigma_m: (H, W) metres.
        sigmas: how many.
    """
    return np.maximum(depth_m - np.float32(sigmas) * sigma_m, np.float32(0))  # NaN stays


def upper_bound(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], sigmas: float
) -> NDArray[np.float32]:
    """Return `depth + sigmas sigma`, (H, W) metres; arguments as for `lower_bound`."""
    return depth_m + np.float32(sigmas) * sigma_m


CLEARING_FIELD = "clearing_sigmas"
"""Of clearing points: how many sigmas lie between them and the depth. No LiDAR has it."""


class SigmaProducts:
    """Gated and bounded maps and clouds of one frame, computed on first access.

    What several of them need is computed once: the gate, and the points of every pixel.
    """

    def __init__(
        self,
        depth_m: NDArray[np.float32],
        sigma_m: NDArray[np.float32],
        config: GatingConfig,
        half_width: float,
        camera: Camera | None = None,
        image: NDArray[np.uint8] | None = None,
    ) -> None:
        """Store the prediction and its camera; nothing is computed yet.

        Args:
            depth_m: (H, W) metres, NaN for unknown.
            sigma_m: (H, W) metres, NaN for unknown.
            config: limits, stride and `clearing_sigmas`.
            half_width: of the interval between the bounds, in sigmas.
            camera: of the maps; the clouds need it.
            image: (H, W, 3) uint8 RGB; without it the points have no color.
        """
        self._depth_m = depth_m
        self._sigma_m = sigma_m
        self._config = config
        self._half_width = half_width
        self._camera = camera
        self._image = image

    @property
    def has_points(self) -> bool:
        """Whether there are clouds: the camera is calibrated."""
        return self._camera is not None and bool(self._camera.intrinsics[0, 0] > 0)

    @cached_property
    def is_confident(self) -> NDArray[np.bool_]:
        """Mask of trusted depth, (H, W)."""
        return confident_pixels(self._depth_m, self._sigma_m, self._config)

    @property
    def confident_depth_m(self) -> NDArray[np.float32]:
        """Depth, NaN if not trusted, (H, W) metres."""
        return np.where(self.is_confident, self._depth_m, np.float32(np.nan))

    @property
    def lower_m(self) -> NDArray[np.float32]:
        """Lower end of the interval, at least 0, (H, W) metres."""
        return lower_bound(self._depth_m, self._sigma_m, self._half_width)

    @property
    def upper_m(self) -> NDArray[np.float32]:
        """Upper end of the interval, (H, W) metres."""
        return upper_bound(self._depth_m, self._sigma_m, self._half_width)

    @cached_property
    def points(self) -> NDArray[np.void]:
        """Every `point_stride`-th row and column as points, organised, NaN for unknown."""
        return self.painted(self._image)

    def painted(self, image: NDArray[np.uint8] | None) -> NDArray[np.void]:
        """Return `points` in the colors of an image, (H, W, 3) uint8 RGB; without it, in none."""
        stride = self._config.point_stride
        return organised_points(
            self._depth_m, self._sigma_m, self._calibrated_camera(), image, stride
        )

    @property
    def confident_points(self) -> NDArray[np.void]:
        """The trusted ones of `points`, (N,)."""
        subsampling = (slice(None, None, self._config.point_stride),) * 2
        is_trusted = self.is_confident[subsampling] & np.isfinite(self.points["z"])
        return selected(self.points, np.flatnonzero(is_trusted))

    @property
    def clearing_points(self) -> NDArray[np.void]:
        """End of free space on each ray, (N,) x y z and `clearing_sigmas`.

        They are of all pixels, trusted or not: the less is known, the less is cleared. A ray
        whose lower bound is not in front of the camera clears nothing and has no point.
        """
        bound_m = lower_bound(self._depth_m, self._sigma_m, self._config.clearing_sigmas)
        points = positions(bound_m, self._calibrated_camera(), self._config.point_stride)
        marked = np.empty(points.shape, [*points.dtype.descr, (CLEARING_FIELD, "<f4")])
        for name in points.dtype.names or ():
            marked[name] = points[name]
        marked[CLEARING_FIELD] = self._config.clearing_sigmas
        return marked

    def _calibrated_camera(self) -> Camera:
        if self._camera is None or not self.has_points:
            raise ValueError("the camera is None or uncalibrated; expected one for points")
        return self._camera
