"""The pinhole camera, and how LiDAR points become a sparse depth image in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Camera:
    """A rectified pinhole camera.

    Attributes:
        width, height: pixels.
        intrinsics: (3, 3) float64, [[fx, 0, cx], [0, fy, cy], [0, 0, 1]], pixels.
    """

    width: int
    height: int
    intrinsics: NDArray[np.float64]


def project(points: NDArray[np.floating], lidar_to_camera: NDArray[np.float64], camera: Camera) -> NDArray[np.float32]:
    """Sparse depth image of a point cloud: the nearest point of each pixel wins.

    Args:
        points: (N, 3), metres, in the LiDAR's frame; rows that are not finite are ignored.
        lidar_to_camera: (4, 4) homogeneous transform, LiDAR frame to camera optical frame.
        camera: where to project to.

    Returns:
        (height, width) float32, metres along the optical axis, NaN where no point falls.
    """
    raise NotImplementedError
