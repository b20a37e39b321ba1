# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth and uncertainty as a cloud of coloured points."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera

POINT_TYPE = np.dtype([(name, np.float32) for name in ("x", "y", "z", "rgb", "uncertainty")])


def colored_points(
    depth_m: NDArray[np.float32],
    sigma_m: NDArray[np.float32],
    image: NDArray[np.uint8],
    camera: Camera,
) -> NDArray[np.void]:
    """Return every pixel as a point, (H, W) of `POINT_TYPE`.

    Its fields: x y z (metres, optical frame), rgb (packed as RViz reads it), uncertainty (metres).

    Args:
        depth_m: (H, W) metres; pixels without depth become NaN points.
        sigma_m: (H, W) metres.
        image: (H, W, 3) uint8 RGB.
        camera: of the maps' size.
    """
    rows = np.zeros(depth_m.shape, POINT_TYPE)
    finite = np.where(np.isfinite(depth_m), depth_m, np.float32(np.nan))
    points = back_projected(finite, camera)
    for axis, name in enumerate("xyz"):
        rows[name] = points[..., axis]
    red, green, blue = (image[..., channel].astype(np.uint32) for channel in range(3))
    rows["rgb"] = (red << 16 | green << 8 | blue).view(np.float32)
    rows["uncertainty"] = sigma_m
    return rows


def back_projected(depth_m: NDArray[np.float32], camera: Camera) -> NDArray[np.float32]:
    """Return the point at each pixel's centre, (H, W, 3), metres, in the optical frame.

    Args:
        depth_m: (H, W) metres along the axis of the camera, which is of this size.
        camera: of the map, whether its image is rectified or not.
    """
    points = depth_m[..., None] * _rays(camera)
    rotation = camera.frame_to_camera[:3, :3].astype(np.float32)
    shift = camera.frame_to_camera[:3, 3].astype(np.float32)
    rotated = (points - shift) @ rotation  # the transposed rotation applied to each row
    return rotated.astype(np.float32, copy=False)


@lru_cache(maxsize=4)
def _rays(camera: Camera) -> NDArray[np.float32]:
    return camera.rays().astype(np.float32)
