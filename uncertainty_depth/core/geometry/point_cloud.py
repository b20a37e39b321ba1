# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth and uncertainty as clouds of points in the optical frame."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.geometry.camera import Camera

POSITION_TYPE = np.dtype([(name, np.float32) for name in "xyz"])
POINT_TYPE = np.dtype(
    [(name, np.float32) for name in ("x", "y", "z", "uncertainty", "confidence_ratio")]
)
COLORED_POINT_TYPE = np.dtype(
    [(name, np.float32) for name in ("x", "y", "z", "rgb", "uncertainty", "confidence_ratio")]
)


class _Rays(NamedTuple):
    """The line of points that each pixel sees, `depth directions - origin`: (3, H, W), (3,)."""

    directions: NDArray[np.float32]
    origin: NDArray[np.float32]


def organised_points(
    depth_m: NDArray[np.float32],
    sigma_m: NDArray[np.float32],
    camera: Camera,
    image: NDArray[np.uint8] | None = None,
    stride: int = 1,
) -> NDArray[np.void]:
    """Return every pixel as a point, (H, W) of `COLORED_POINT_TYPE`; `POINT_TYPE` if no image.

    Its fields: x y z (metres, optical frame), rgb (packed as RViz reads it), uncertainty (metres)
    and confidence_ratio, which is depth / uncertainty: elevation_mapping's structured light model
    has the variance `(model deviation / confidence_ratio)^2`, which is uncertainty's variance if
    the model's deviation is the depth.

    Pixels without depth, or without a ray, become NaN points.
    """
    subsampling = (slice(None, None, stride), slice(None, None, stride))
    depth = np.ascontiguousarray(depth_m[subsampling])
    sigma = np.ascontiguousarray(sigma_m[subsampling])
    finite = np.where(np.isinf(depth), np.float32(np.nan), depth)
    with np.errstate(divide="ignore", invalid="ignore"):
        confidence_ratio = depth / sigma
    planes = _coordinates(finite, _rays(camera, stride))
    if image is not None:  # the bits of 0x00RRGGBB
        rgb = np.ascontiguousarray(image[subsampling])
        packed = cv2.cvtColor(rgb, cv2.COLOR_RGB2BGRA).view("<u4")[..., 0]
        packed &= 0x00FFFFFF
        planes.append(packed.view(np.float32))
    planes += [sigma, confidence_ratio]
    return _interleaved(planes, POINT_TYPE if image is None else COLORED_POINT_TYPE)


def positions(depth_m: NDArray[np.float32], camera: Camera, stride: int = 1) -> NDArray[np.void]:
    """Return the points, (N,) `POSITION_TYPE`, for pixels with a ray and a finite depth above 0.

    Depth is (H, W) metres along the camera's axis, at the camera's size; the camera may be raw.
    `stride` is that in rows and columns.
    """
    depth = np.ascontiguousarray(depth_m[::stride, ::stride])
    rays = _rays(camera, stride)
    valid = (depth > 0) & (depth < np.inf) & np.isfinite(rays.directions[0])
    points = _interleaved(_coordinates(depth, rays), POSITION_TYPE)
    return selected(points, np.flatnonzero(valid))


def selected(points: NDArray[np.void], pixels: NDArray[np.intp]) -> NDArray[np.void]:
    """Return the points of some pixels, (N,), by row-major pixel index."""
    fields = points.dtype
    blocks = points.reshape(-1).view(np.dtype((np.void, fields.itemsize)))  # far faster to copy
    return blocks.take(pixels).view(fields)


def _coordinates(depth: NDArray[np.float32], rays: _Rays) -> list[NDArray[np.float32]]:
    """Return x, y and z of the points at a depth on their rays, each of the depth's shape."""
    along = [depth * direction for direction in rays.directions]
    if not rays.origin.any():
        return along
    return [values - offset for values, offset in zip(along, rays.origin, strict=True)]


def _interleaved(planes: list[NDArray[np.float32]], fields: np.dtype[Any]) -> NDArray[np.void]:
    """Return (H, W) points, with one plane for each of `fields`."""
    points: NDArray[np.void] = cv2.merge(planes).view(fields)[..., 0]
    return points


@lru_cache(maxsize=8)
def _rays(camera: Camera, stride: int) -> _Rays:
    """Return the rays of every `stride`-th pixel in the optical frame."""
    rotation = camera.frame_to_camera[:3, :3]
    shift = camera.frame_to_camera[:3, 3]
    directions = camera.rays()[::stride, ::stride] @ rotation  # the transpose applied to each row
    axes_first = np.ascontiguousarray(np.moveaxis(directions, -1, 0), np.float32)
    return _Rays(axes_first, (shift @ rotation).astype(np.float32))
