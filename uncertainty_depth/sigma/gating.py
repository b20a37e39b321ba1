# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a robot acts on: depth maps and clouds that are gated or bounded by sigma."""

from __future__ import annotations

from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.nodes import GatingConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.point_cloud import organised_points, positions, selected


def confident_pixels(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], config: GatingConfig
) -> NDArray[np.bool_]:
    """Return where sigma is finite and within both limits, (H, W), from maps in metres."""
    limit = np.float32(config.max_sigma or np.inf)
    if config.max_relative_sigma:
        limits = np.minimum(depth_m * np.float32(config.max_relative_sigma), limit)
    else:
        limits = np.where(np.isnan(depth_m), np.float32(np.nan), limit)
    return sigma_m <= limits  # false if either is NaN


def lower_bound(
    depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32], sigmas: float
) -> NDArray[np.float32]:
    """Return `depth - sigmas sigma`, (H, W) metres, at least 0: nothing is behind the camera."""
    return np.maximum(depth_m - np.float32(sigmas) * sigma_m, np.float32(0))  # NaN stays


RADII = (1, 2, 3, 4, 6, 8, 11, 15, 20, 28, 40, 56, 80, 112, 160)
"""Pixels that a margin around a point may have in the image; it takes the next smaller one. The
last is 0.2 m at 0.66 m before a 640x480 camera; what is nearer has less of a margin."""


def nearest_bound(
    bound_m: NDArray[np.float32], margin_m: float, focal_length: float
) -> NDArray[np.float32]:
    """Return the nearest bound that a ray passes within a margin, (H, W) metres.

    A costmap clears whole voxels. A ray that just misses the edge of an obstacle passes through
    voxels of the obstacle, unless it ends where the obstacle begins. The margin is half the width
    of a square around each point, metres; the focal length in pixels. Unknown bounds stay NaN.
    """
    if not margin_m:
        return bound_m
    unknown = np.isnan(bound_m)
    known_m = np.where(unknown, np.float32(np.inf), bound_m)
    largest_m = focal_length * margin_m / np.array(RADII, np.float32)  # bound at each radius
    nearest_m = np.full_like(known_m, np.inf)
    for index in reversed(range(len(RADII))):
        nearest_m = np.minimum(nearest_m, np.where(known_m <= largest_m[index], known_m, np.inf))
        step = RADII[index] - (RADII[index - 1] if index else 0)
        nearest_m = cv2.erode(nearest_m, np.ones((2 * step + 1, 2 * step + 1), np.uint8))
    return np.where(unknown, bound_m, np.minimum(nearest_m, known_m))


CLEARING_FIELD = "clearing_sigmas"
"""Field of points/clearing: the parameter; fraction and margin may shorten a ray further. No LiDAR
has it."""


class SigmaProducts:
    """Gated and bounded maps and clouds of one frame, computed on first access.

    What several of them need is computed once: the gate, and every pixel's points. `depth_m`,
    (H, W) metres, is the depth itself.
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
        """Store the prediction, (H, W) metres; bounds lie `half_width` sigmas from the depth."""
        self.depth_m = depth_m
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
        return confident_pixels(self.depth_m, self._sigma_m, self._config)

    @property
    def confident_depth_m(self) -> NDArray[np.float32]:
        """Depth, NaN if not trusted, (H, W) metres."""
        return np.where(self.is_confident, self.depth_m, np.float32(np.nan))

    @property
    def lower_m(self) -> NDArray[np.float32]:
        """Lower end of the interval, at least 0, (H, W) metres."""
        return lower_bound(self.depth_m, self._sigma_m, self._half_width)

    @property
    def upper_m(self) -> NDArray[np.float32]:
        """Upper end of the interval, (H, W) metres."""
        return self.depth_m + np.float32(self._half_width) * self._sigma_m

    @cached_property
    def points(self) -> NDArray[np.void]:
        """Every `point_stride`-th row and column as points, organised, NaN for unknown."""
        return self.painted(self._image)

    def painted(self, image: NDArray[np.uint8] | None) -> NDArray[np.void]:
        """Return `points` in an image's colors, (H, W, 3) uint8 RGB; without it, in none."""
        stride = self._config.point_stride
        return organised_points(
            self.depth_m, self._sigma_m, self._calibrated_camera(), image, stride
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

        Includes untrusted pixels: the less certain, the shorter the cleared ray. A ray ends at the
        `nearest_bound`; one that is not in front of the camera clears nothing.
        """
        camera, config = self._calibrated_camera(), self._config
        by_sigma_m = lower_bound(self.depth_m, self._sigma_m, config.clearing_sigmas)
        by_depth_m = np.float32(config.clearing_fraction) * self.depth_m
        bound_m = np.minimum(by_sigma_m, by_depth_m)
        focal_length = float(camera.intrinsics[0, 0])
        nearest_m = nearest_bound(bound_m, config.clearing_margin, focal_length)
        points = positions(nearest_m, camera, config.point_stride)
        marked = np.empty(points.shape, [*points.dtype.descr, (CLEARING_FIELD, "<f4")])
        for name in points.dtype.names or ():
            marked[name] = points[name]
        marked[CLEARING_FIELD] = config.clearing_sigmas
        return marked

    def _calibrated_camera(self) -> Camera:
        if self._camera is None or not self.has_points:
            raise ValueError("the camera is None or uncalibrated; expected one for points")
        return self._camera
