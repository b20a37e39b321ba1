"""Depth and uncertainty as a cloud of coloured points."""

from __future__ import annotations

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
    """Every pixel as a point, (H, W) of `POINT_TYPE`: x y z (metres, optical frame), rgb (packed as RViz reads it), uncertainty (metres).

    Args:
        depth_m: (H, W) metres; pixels without depth become NaN points.
        sigma_m: (H, W) metres.
        image: (H, W, 3) uint8 RGB.
        camera: of the maps' size.
    """
    rows = np.zeros(depth_m.shape, POINT_TYPE)
    finite = np.where(np.isfinite(depth_m), depth_m, np.float32(np.nan))
    for name, values in zip("xyz", back_projected(finite, camera), strict=True):
        rows[name] = values
    red, green, blue = (image[..., channel].astype(np.uint32) for channel in range(3))
    rows["rgb"] = (red << 16 | green << 8 | blue).view(np.float32)
    rows["uncertainty"] = sigma_m
    return rows


def back_projected(
    depth_m: NDArray[np.float32], camera: Camera
) -> tuple[NDArray[np.float32], ...]:
    """x, y, z of each pixel centre, each (H, W), metres, for a camera of the map's size."""
    height, width = depth_m.shape
    (fx, _, cx), (_, fy, cy), _ = camera.intrinsics
    across = ((np.arange(width) - cx) / fx).astype(np.float32)
    down = ((np.arange(height) - cy) / fy).astype(np.float32)
    return depth_m * across[None, :], depth_m * down[:, None], depth_m
