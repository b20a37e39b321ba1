# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth and uncertainty as clouds of points in the optical frame."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera

POSITION_TYPE = np.dtype([(name, np.float32) for name in "xyz"])
POINT_TYPE = np.dtype(
    [(name, np.float32) for name in ("x", "y", "z", "uncertainty", "confidence_ratio")]
)
COLORED_POINT_TYPE = np.dtype(
    [(name, np.float32) for name in ("x", "y", "z", "rgb", "uncertainty", "confidence_ratio")]
)


class _Rays(NamedTuple):
    """The line of points that each pixel sees: `depth directions - origin`.

    Attributes:
        directions: (3, H, W) float32, for a depth of 1 along the camera's axis.
        origin: (3,) float32, metres.
    """

    directions: NDArray[np.float32]
    origin: NDArray[np.float32]


def organised_points(
    depth_m: NDArray[np.float32],
    sigma_m: NDArray[np.float32],
    camera: Camera,
    image: NDArray[np.uint8] | None = None,
    stride: int = 1,
) -> NDArray[np.void]:
    """Return every pixel as a point, (H, W) of `COLORED_POINT_TYPE`; `POINT_TYPE` without image.

    Its fields: x y z (metres, optical frame), rgb (packed as RViz reads it), uncertainty (metres)
    and confidence_ratio, which is depth / uncertainty: elevation_mapping's structured light model
    has the variance `(model deviation / confidence_ratio)^2`, which is that of uncertainty where
    the model's deviation is the depth.

    Args:
        depth_m: (H, W) metres; pixels without depth become NaN points.
        sigma_m: (H, W) metres.
        camera: of the maps' size.
        image: (H, W, 3) uint8 RGB.
        stride: every so many rows and columns make a point.
    """
    every = (slice(None, None, stride), slice(None, None, stride))
    depth = depth_m[every]
    sigma = sigma_m[every]
    points = np.empty(depth.shape, POINT_TYPE if image is None else COLORED_POINT_TYPE)
    finite = np.where(np.isinf(depth), np.float32(np.nan), depth)
    _set_positions(points, finite, _rays(camera, stride))
    points["uncertainty"] = sigma
    with np.errstate(divide="ignore", invalid="ignore"):
        points["confidence_ratio"] = depth / sigma
    if image is not None:
        points["rgb"] = _packed(image[every])
    return points


def positions(depth_m: NDArray[np.float32], camera: Camera, stride: int = 1) -> NDArray[np.void]:
    """Return the points of the pixels with a finite depth above 0, (N,) of `POSITION_TYPE`.

    Args:
        depth_m: (H, W) metres along the axis of the camera, which is of this size.
        camera: of the map, whether its image is rectified or not.
        stride: every so many rows and columns make a point.
    """
    depth = depth_m[::stride, ::stride]
    known = (depth > 0) & (depth < np.inf)
    directions, origin = _rays(camera, stride)
    points = np.empty(int(known.sum()), POSITION_TYPE)
    _set_positions(points, depth[known], _Rays(directions[:, known], origin))
    return points


def back_projected(depth_m: NDArray[np.float32], camera: Camera) -> NDArray[np.float32]:
    """Return the point at each pixel's centre, (H, W, 3), metres, in the optical frame.

    Args:
        depth_m: (H, W) metres along the axis of the camera, which is of this size.
        camera: of the map, whether its image is rectified or not.
    """
    points = np.empty(depth_m.shape, POSITION_TYPE)
    _set_positions(points, depth_m, _rays(camera, 1))
    return points.view(np.float32).reshape(*depth_m.shape, 3)


def _set_positions(points: NDArray[np.void], depth: NDArray[np.float32], rays: _Rays) -> None:
    """Set x, y, z of points; the arguments are of one shape, (3, ...) for the rays."""
    is_at_origin = not rays.origin.any()
    for name, direction, offset in zip("xyz", rays.directions, rays.origin, strict=True):
        along = depth * direction
        points[name] = along if is_at_origin else along - offset


def _packed(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return (H, W, 3) RGB as the bits of (H, W) float32, 0x00RRGGBB."""
    opaque = np.zeros((*image.shape[:2], 4), np.uint8)
    opaque[..., 2::-1] = image
    return opaque.view("<f4")[..., 0]


@lru_cache(maxsize=8)
def _rays(camera: Camera, stride: int) -> _Rays:
    """Return the rays of every `stride`-th pixel in the optical frame."""
    rotation = camera.frame_to_camera[:3, :3]
    shift = camera.frame_to_camera[:3, 3]
    directions = camera.rays()[::stride, ::stride] @ rotation  # the transpose applied to each row
    axes_first = np.ascontiguousarray(np.moveaxis(directions, -1, 0), np.float32)
    return _Rays(axes_first, (shift @ rotation).astype(np.float32))
